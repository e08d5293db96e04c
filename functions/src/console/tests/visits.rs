//! Visits of browsers: signing in and out, the limits of a session, forged forms, and what every response has.

use freehold_pages::style_path;
use freehold_protocol::Digest;

use super::world::{ORIGIN, World, header, sent_back};
use crate::console::cookies::{SESSION, SIGN_IN};
use crate::console::response::Response;
use crate::console::server::script_path;
use crate::console::sessions::{IDLE_SECS, LONGEST_SECS};

const OWN: [(&str, &str); 2] = [("origin", ORIGIN), ("sec-fetch-site", "same-origin")];

fn location(response: &Response) -> &str {
    header(response, "location").unwrap_or_default()
}

#[tokio::test]
async fn a_person_signs_in_and_gets_the_page_that_they_asked_for() {
    let world = World::new();

    let asked = world.get("/installs/globex", "").await;
    let page = world.get("/sign-in?return=%2Finstalls%2Fglobex", "").await;
    let started = world.get("/sign-in/start?return=%2Finstalls%2Fglobex", "").await;
    let back = world.get("/callback?code=c&state=state-1", &sent_back(&started, SIGN_IN)).await;

    assert_eq!((asked.status, location(&asked)), (303, "/sign-in?return=%2Finstalls%2Fglobex"));
    assert!(page.body.contains("href=\"/sign-in/start?return=%2Finstalls%2Fglobex\""), "{}", page.body);
    assert_eq!((started.status, location(&started)), (303, "https://id.example/authorize?state=state-1"));
    assert_eq!((back.status, location(&back)), (303, "/installs/globex"));
    assert!(world.is_signed_in(&sent_back(&back, SESSION)).await);
}

#[tokio::test]
async fn the_cookies_have_exactly_these_attributes() {
    let world = World::new();

    let started = world.get("/sign-in/start?return=/", "").await;
    let back = world.get("/callback?code=c&state=state-1", &sent_back(&started, SIGN_IN)).await;

    let attributes = |cookie: &String| cookie.split_once(';').unwrap().1.to_owned();
    let lasting = |secs: u64| format!(" Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age={secs}");
    assert_eq!(started.cookies.iter().map(attributes).collect::<Vec<_>>(), [lasting(600)]);
    assert_eq!(back.cookies.iter().map(attributes).collect::<Vec<_>>(), [lasting(LONGEST_SECS), lasting(0)]);
    assert!(
        back.cookies[0].starts_with("__Host-freehold=") && back.cookies[1].starts_with("__Host-freehold-sign-in=;")
    );
    assert_eq!(sent_back(&back, SESSION).len(), "__Host-freehold=".len() + 43);
}

#[tokio::test]
async fn a_planted_cookie_is_never_a_session() {
    let world = World::new();
    let planted = format!("{SESSION}={}", "A".repeat(43));
    let started = world.get("/sign-in/start?return=/", &planted).await;

    let cookies = format!("{planted}; {}", sent_back(&started, SIGN_IN));
    let back = world.get("/callback?code=c&state=state-1", &cookies).await;

    assert_ne!(sent_back(&back, SESSION), planted);
    assert!(!world.is_signed_in(&planted).await);
    // A session of before ends, so that its cookie is worth nothing either.
    let (before, started) = (sent_back(&back, SESSION), world.get("/sign-in/start?return=/", "").await);
    let cookies = format!("{before}; {}", sent_back(&started, SIGN_IN));
    let again = world.get("/callback?code=c&state=state-1", &cookies).await;
    assert!(world.is_signed_in(&sent_back(&again, SESSION)).await && !world.is_signed_in(&before).await);
}

#[tokio::test]
async fn an_answer_of_the_issuer_counts_once_in_the_browser_that_asked() {
    let world = World::new();
    let started = world.get("/sign-in/start?return=/", "").await;
    let cookie = sent_back(&started, SIGN_IN);

    let elsewhere = world.get("/callback?code=c&state=state-1", "").await;
    let other = world.get("/callback?code=c&state=state-2", &cookie).await;
    let replayed = world.get("/callback?code=c&state=state-1", &cookie).await;

    for response in [elsewhere, other, replayed] {
        assert_eq!(response.status, 400, "{}", response.body);
        assert!(response.cookies.is_empty(), "{:?}", response.cookies);
    }
}

#[tokio::test]
async fn a_sign_in_leads_to_no_other_host() {
    let world = World::new();
    for foreign in ["//evil.example", "https%3A%2F%2Fevil.example", "%2F%5Cevil.example", "%2F%09%2Fevil.example"] {
        let page = world.get(&format!("/sign-in?return={foreign}"), "").await;
        let started = world.get(&format!("/sign-in/start?return={foreign}"), "").await;
        let back = world.get("/callback?code=c&state=state-1", &sent_back(&started, SIGN_IN)).await;

        assert_eq!(location(&back), "/", "{foreign}");
        assert!(!page.body.contains("evil"), "{foreign}");
    }
}

#[tokio::test]
async fn a_form_needs_the_token_of_its_session_and_the_origin_of_the_console() {
    let world = World::new();
    let (ana, ben) = (world.sign_in("ana").await, world.sign_in("ben").await);
    let token = world.form_token(&ana).await;
    let form = |token: &str| format!("csrf={token}&confirmed=yes");

    let wrong = [
        world.post("/sign-out", "", &OWN, &ana).await,
        world.post("/sign-out", &form(""), &OWN, &ana).await,
        world.post("/sign-out", &form("wrong"), &OWN, &ana).await,
        world.post("/sign-out", &form(&world.form_token(&ben).await), &OWN, &ana).await,
        world.post("/sign-out", &form(&token), &[], &ana).await,
        world.post("/sign-out", &form(&token), &[("origin", "https://evil.example")], &ana).await,
        world.post("/sign-out", &form(&token), &[("origin", ORIGIN), ("sec-fetch-site", "same-site")], &ana).await,
        world.post("/installs/globex/deploy", &form("wrong"), &OWN, &ana).await,
    ];
    let right = world.post("/sign-out", &form(&token), &OWN, &ana).await;

    for (at, response) in wrong.iter().enumerate() {
        assert_eq!(response.status, 401, "{at}: {}", response.body);
    }
    assert_eq!((right.status, location(&right)), (303, "/sign-in?out=yes"));
    assert!(!world.is_signed_in(&ana).await && world.is_signed_in(&ben).await);
    assert_eq!(*world.issuer.revoked.lock().unwrap(), ["refresh-of-ana"]);
}

#[tokio::test]
async fn a_person_signs_out_everywhere_after_a_confirmation() {
    let world = World::new();
    let (here, there) = (world.sign_in("ana").await, world.sign_in("ana").await);
    let token = world.form_token(&here).await;

    let asked = world.post("/sign-out/everywhere", &format!("csrf={token}"), &OWN, &here).await;
    assert!(asked.status == 400 && world.is_signed_in(&there).await);
    let done = world.post("/sign-out/everywhere", &format!("csrf={token}&confirmed=yes"), &OWN, &here).await;

    assert_eq!(done.status, 303);
    assert!(!world.is_signed_in(&here).await && !world.is_signed_in(&there).await);
}

#[tokio::test]
async fn a_session_that_is_over_leads_to_the_page_for_signing_in() {
    for secs in [IDLE_SECS, LONGEST_SECS] {
        let world = World::new();
        let cookie = world.sign_in("ana").await;
        world.memory.advance_secs(secs);

        let page = world.get("/apps", &cookie).await;
        let form = world.post("/installs/globex/deploy", "csrf=x", &OWN, &cookie).await;
        let live = world.get("/jobs/job_4b5e57f6eb2f42b9039b/live?since=x", &cookie).await;

        assert_eq!((page.status, location(&page)), (303, "/sign-in?return=%2Fapps"));
        assert_eq!((form.status, location(&form)), (303, "/sign-in?return=%2F"));
        assert!(page.cookies[0].starts_with("__Host-freehold=;"), "{:?}", page.cookies);
        assert_eq!((live.status, live.body.as_str()), (401, ""));
    }
}

#[tokio::test]
async fn tokens_are_renewed_and_a_session_ends_with_them() {
    let world = World::new();
    let cookie = world.sign_in("ana").await;
    assert_eq!(world.access_token(&cookie).await.as_deref(), Some("access-1"));

    world.use_for_an_hour(&cookie).await;
    assert_eq!(world.access_token(&cookie).await.as_deref(), Some("access-2"));

    world.use_for_an_hour(&cookie).await;
    *world.issuer.renews.lock().unwrap() = false;
    assert_eq!(location(&world.get("/apps", &cookie).await), "/sign-in?return=%2Fapps");
}

#[tokio::test]
async fn a_request_uses_the_tokens_that_another_one_has_renewed_at_the_same_time() {
    let world = World::new();
    let cookie = world.sign_in("ana").await;
    world.use_for_an_hour(&cookie).await;
    *world.issuer.rival.lock().unwrap() = Some((world.console.sessions.clone(), cookie.clone()));

    let token = world.access_token(&cookie).await;

    assert_eq!(token.as_deref(), Some("access-of-rival"));
}

#[tokio::test]
async fn every_response_has_the_headers_of_security() {
    let world = World::new();
    let cookie = world.sign_in("ana").await;
    let responses = [
        world.get("/", "").await,
        world.get("/sign-in", "").await,
        world.get("/callback", "").await,
        world.get("/apps/%ff", "").await,
        world.get(&style_path(), "").await,
        world.get(&script_path(), "").await,
        world.post("/sign-out", "", &[], &cookie).await,
    ];

    for response in responses {
        let policy = header(&response, "content-security-policy").unwrap();
        assert_eq!(
            policy,
            "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; form-action \
             'self'; frame-ancestors 'none'; base-uri 'none'"
        );
        assert_eq!(header(&response, "x-content-type-options"), Some("nosniff"));
        assert_eq!(header(&response, "referrer-policy"), Some("same-origin"));
        assert_eq!(header(&response, "strict-transport-security"), Some("max-age=63072000; includeSubDomains"));
        let is_asset = response.status == 200 && !response.body.starts_with("<!DOCTYPE");
        let kept = if is_asset { "public, max-age=31536000, immutable" } else { "no-store" };
        assert_eq!(header(&response, "cache-control"), Some(kept));
    }
}

#[tokio::test]
async fn the_script_is_small_and_runs_nothing_that_it_reads() {
    let script = World::new().get(&script_path(), "").await.body;

    assert!(script.len() < 2_000, "{} bytes", script.len());
    for word in ["eval", "Function", "http:", "https:", "document.write", "localStorage", "cookie"] {
        assert!(!script.contains(word), "the script has `{word}`");
    }
    assert!(script_path().contains(Digest::of(script.as_bytes()).hex().get(..16).unwrap()));
}
