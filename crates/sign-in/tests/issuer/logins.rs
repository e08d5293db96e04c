//! Logins in files, and commands that renew one at the same time.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use freehold_sign_in::{Error, Login, Store, StoreError};
use url::Url;

use crate::client::http;
use crate::server::{CLIENT, Server};

fn api() -> Url {
    "https://abc.execute-api.eu-west-1.amazonaws.com".parse().unwrap()
}

/// Signs in, and keeps the login in a new directory. Its access token is valid for `lifetime_secs`.
async fn kept(server: &Server, place: &Path, lifetime_secs: u64) -> (Store, Login) {
    server.state().lifetime_secs = lifetime_secs;
    let issuer = server.issuer().await;
    let tokens = server.sign_in(&issuer).await.unwrap();
    let login = Login {
        api: api().to_string(),
        tenant: Some("acme".parse().unwrap()),
        issuer: issuer.settings().issuer.clone(),
        client_id: CLIENT.to_owned(),
        tokens,
    };
    let store = Store::new(place.join("state/freehold/logins"));
    store.save(&login).await.unwrap();
    (store, login)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn files(place: &Path) -> Vec<PathBuf> {
    fs::read_dir(place.join("state/freehold/logins")).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test]
async fn a_login_is_in_files_that_only_its_person_can_read() {
    let (server, place) = (Server::start(), tempfile::tempdir().unwrap());

    let (store, login) = kept(&server, place.path(), 3600).await;

    let (loaded, all) = (store.load(&api()).unwrap().unwrap(), store.all().unwrap());
    assert_eq!(loaded.tokens.access.expose(), login.tokens.access.expose());
    assert_eq!((all.len(), all[0].tenant.as_ref().unwrap().as_str()), (1, "acme"));
    assert_eq!(mode(&place.path().join("state/freehold/logins")), 0o700);
    for file in files(place.path()) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    assert!(store.load(&"https://other.example.com".parse().unwrap()).unwrap().is_none());
}

#[tokio::test]
async fn a_login_that_others_can_read_is_refused_and_so_is_such_a_directory() {
    let (server, place) = (Server::start(), tempfile::tempdir().unwrap());
    let (store, login) = kept(&server, place.path(), 3600).await;
    let files = files(place.path());
    let file = files.iter().find(|path| path.extension().is_some_and(|ending| ending == "json")).unwrap();

    fs::set_permissions(file, fs::Permissions::from_mode(0o640)).unwrap();
    let exposed = store.load(&api()).unwrap_err();
    fs::set_permissions(file.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    let open = store.save(&login).await.unwrap_err();

    assert!(exposed.to_string().starts_with(&format!("others can read `{}`", file.display())), "{exposed}");
    assert!(matches!(open, StoreError::Exposed { .. }), "{open}");
}

#[tokio::test]
async fn a_file_that_is_not_a_login_is_named() {
    let (server, place) = (Server::start(), tempfile::tempdir().unwrap());
    let (store, _) = kept(&server, place.path(), 3600).await;
    for file in files(place.path()) {
        fs::write(file, "{}").unwrap();
    }

    assert!(matches!(store.load(&api()), Err(StoreError::Unreadable { .. })));
}

#[tokio::test]
async fn two_commands_that_renew_at_once_ask_the_issuer_once() {
    let (server, place) = (Server::start(), tempfile::tempdir().unwrap());
    let (store, login) = kept(&server, place.path(), 30).await;
    server.state().lifetime_secs = 3600;

    let (first, second) = tokio::join!(store.fresh(&login, http(), None), store.fresh(&login, http(), None));

    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!((first.tokens.access.expose(), second.tokens.access.expose()), ("access-1", "access-1"));
    let renewals = server.state().asked.iter().filter(|kind| *kind == "/token refresh_token").count();
    assert_eq!(renewals, 1);
    assert_eq!(store.load(&api()).unwrap().unwrap().tokens.refresh.unwrap().expose(), "refresh-1");
}

#[tokio::test]
async fn a_login_that_is_valid_asks_nobody() {
    let (server, place) = (Server::start(), tempfile::tempdir().unwrap());
    let (store, login) = kept(&server, place.path(), 3600).await;
    let before = server.state().asked.len();

    let fresh = store.fresh(&login, http(), None).await.unwrap();

    assert_eq!(fresh.tokens.access.expose(), "access-0");
    assert_eq!(server.state().asked.len(), before);
}

#[tokio::test]
async fn a_login_that_was_removed_or_has_ended_is_not_renewed() {
    let (server, place) = (Server::start(), tempfile::tempdir().unwrap());
    let (store, login) = kept(&server, place.path(), 30).await;
    server.state().refresh = None;

    let ended = store.fresh(&login, http(), None).await.unwrap_err();
    let removed = store.remove(&login.api).await.unwrap();
    let gone = store.fresh(&login, http(), None).await.unwrap_err();

    assert!(matches!(ended, StoreError::Issuer(Error::Ended)), "{ended}");
    assert!(removed.is_some() && store.all().unwrap().is_empty());
    assert!(matches!(gone, StoreError::SignedOut { .. }), "{gone}");
}
