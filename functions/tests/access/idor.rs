//! Each route with ids that the sender may not see: those of another customer, of another app, and of another tenant.
//! Prints the figure `console.idor` of docs/figures.md. The console sends each request with the person's own token, so
//! the answers of the API are all that its pages can show.

use freehold_app::testing::Memory;
use freehold_functions::api::routes::{Operation, Route};
use serde_json::{Value, json};

use super::tenant::{ABSENT, GLOBEX, Ids, Sender, Tenant, UMBRELLA, person};

/// An attempt to see something.
#[derive(Debug)]
struct Attempt {
    what: String,
    /// Whether the answer shows what it may not.
    shows: bool,
    /// Whether somebody who may see the thing gets another answer. Otherwise the attempt proves nothing.
    counts: bool,
}

/// A tenant that is the same before each request.
struct Place {
    tenant: Tenant,
    before: Memory,
}

impl Place {
    fn of(tenant: Tenant) -> Self {
        let before = Memory::default();
        before.restore(&tenant.memory);
        Self { tenant, before }
    }

    /// Returns the status and the text of an answer, with a word in place of the ids.
    async fn ask(&self, sender: &Sender, route: &Route, ids: Ids) -> (i64, String) {
        self.tenant.memory.restore(&self.before);
        let (status, answer) = super::ask(&self.tenant, sender, route, ids).await;
        let text = answer["error"]["message"].as_str().map_or_else(|| answer.to_string(), str::to_owned);
        (status, ids.blanked(&text))
    }

    /// Returns the names of the items of a list.
    async fn names(&self, sender: &Sender, path: &str, field: &str) -> Vec<String> {
        self.tenant.memory.restore(&self.before);
        let (_, answer) = self.tenant.send(sender, "GET", path, &Value::Null).await;
        let items = answer["items"].as_array().cloned().unwrap_or_default();
        items.iter().map(|item| item[field].as_str().unwrap().to_owned()).collect()
    }

    async fn caller(&self, sender: &Sender) -> Value {
        self.tenant.send(sender, "GET", "/v1/caller", &Value::Null).await.1
    }
}

fn decided() -> impl Iterator<Item = Route> {
    super::routes().filter(|route| !super::OF_ALL.contains(&route.operation))
}

/// Returns the attempts of members of two customers, and of two developers of one app each, to see the other's things.
async fn within_a_tenant() -> Vec<Attempt> {
    let tenant = Tenant::new().await;
    let owner = tenant.join("olga", &["owner"], &json!({})).await;
    let mut senders = Vec::new();
    for (name, group, limits, hidden) in [
        ("eve", "customer", json!({ "installs": [UMBRELLA.install] }), GLOBEX),
        ("gil", "customer", json!({ "installs": [GLOBEX.install] }), UMBRELLA),
        ("dan", "developer", json!({ "apps": [UMBRELLA.app] }), GLOBEX),
        ("dora", "developer", json!({ "apps": [GLOBEX.app] }), UMBRELLA),
    ] {
        senders.push((name, tenant.join(name, &[group], &limits).await, hidden));
    }
    let (place, mut attempts) = (Place::of(tenant), Vec::new());
    for (name, sender, hidden) in &senders {
        for route in decided() {
            let found = place.ask(sender, &route, *hidden).await;
            let absent = place.ask(sender, &route, ABSENT).await;
            let owners = place.ask(&owner, &route, *hidden).await;
            let is_of_tenant = super::class(route.operation).1 == "tenant";
            let is_refused = if is_of_tenant { found.0 == 403 } else { found.0 == 404 && found == absent };
            let what = format!("{name}: {:?} of {}: {found:?}, absent: {absent:?}", route.operation, hidden.install);
            attempts.push(Attempt { what, shows: !is_refused, counts: owners != found });
        }
        for (path, field, id) in [("/v1/apps", "app", hidden.app), ("/v1/installs", "install", hidden.install)] {
            let (found, owners) = (place.names(sender, path, field).await, place.names(&owner, path, field).await);
            let has = |names: &[String]| names.iter().any(|name| name == id);
            attempts.push(Attempt {
                what: format!("{name}: {path}: {found:?}"),
                shows: has(&found),
                counts: has(&owners),
            });
        }
    }
    attempts
}

/// Returns the attempts of the owner of one tenant to see what another tenant has.
async fn across_tenants() -> Vec<Attempt> {
    let (first, second) = (Tenant::new().await, Tenant::new().await);
    let olga = first.join("olga", &["owner"], &json!({})).await;
    let owner = second.join("otto", &["owner"], &json!({})).await;
    let mut foreign = person("otto");
    foreign.authorizer["jwt"]["claims"]["iss"] = json!("https://people-of-another-tenant.example");
    let (own, place, mut attempts) = (Place::of(first), Place::of(second), Vec::new());
    for (name, sender, refused) in [("same issuer", &olga, 403), ("another issuer", &foreign, 401)] {
        for (route, ids) in decided().flat_map(|route| [(route, GLOBEX), (route, UMBRELLA)]) {
            let found = place.ask(sender, &route, ids).await;
            let owners = place.ask(&owner, &route, ids).await;
            let what = format!("{name}: {:?} of {}: {found:?}", route.operation, ids.install);
            attempts.push(Attempt { what, shows: found.0 != refused, counts: owners != found });
        }
        for (path, field) in [("/v1/apps", "app"), ("/v1/installs", "install")] {
            let (found, owners) = (place.names(sender, path, field).await, place.names(&owner, path, field).await);
            let (shows, counts) = (!found.is_empty(), !owners.is_empty());
            attempts.push(Attempt { what: format!("{name}: {path}: {found:?}"), shows, counts });
        }
    }
    let (found, owners) = (place.caller(&olga).await, place.caller(&owner).await);
    let is_member = |caller: &Value| caller["is_member"] != json!(false) || caller["groups"] != json!([]);
    let (shows, counts) = (is_member(&found), is_member(&owners));
    attempts.push(Attempt { what: format!("the caller of another tenant: {found}"), shows, counts });
    attempts.push(invitation(&own, &place, &olga).await);
    attempts
}

/// Returns the attempt to accept an invitation at another tenant than the one whose owner made it.
async fn invitation(own: &Place, other: &Place, owner: &Sender) -> Attempt {
    let request = json!({ "member": "nina", "groups": ["owner"] });
    let (_, invited) = own.tenant.send(owner, "POST", "/v1/members", &request).await;
    let (accept, path) = (json!({ "code": invited["code"] }), "/v1/invitations/accept");
    let (there, _) = other.tenant.send(&person("nina"), "POST", path, &accept).await;
    let (here, _) = own.tenant.send(&person("nina"), "POST", path, &accept).await;
    let what = format!("{:?} at another tenant: {there}", Operation::AcceptInvitation);
    Attempt { what, shows: there != 404, counts: here == 200 }
}

#[tokio::test]
async fn no_route_shows_what_the_sender_may_not_see() {
    let mut attempts = within_a_tenant().await;
    attempts.extend(across_tenants().await);

    let void: Vec<&str> = attempts.iter().filter(|one| !one.counts).map(|one| one.what.as_str()).collect();
    let counted: Vec<&Attempt> = attempts.iter().filter(|one| one.counts || one.shows).collect();
    let shown: Vec<&str> = counted.iter().filter(|one| one.shows).map(|one| one.what.as_str()).collect();
    let (attempted, value) = (counted.len(), shown.len());
    let passed = attempted - value;
    eprintln!("{} attempts prove nothing: {void:?}", void.len());
    println!(
        "{}",
        json!({ "name": "console.idor", "value": value, "attempted": attempted, "passed": passed, "seed": 0 })
    );
    assert_eq!(shown, [""; 0]);
    assert!(attempted > 500 && void.len() * 5 < attempted, "{attempted} attempts count, and {void:?} do not");
}
