//! `freehold member`, `freehold access` and `freehold whoami`: what they ask the tenant for, and what they print.

mod members;
mod policies;

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::support::{loopback, tenant_api, text};

/// The requests that an API was sent and that change something, as path and body.
type Sent = Arc<Mutex<Vec<(String, Value)>>>;

/// Starts an API that answers each method and path so; returns its address and what it is sent.
fn api(answer: impl Fn(&str, &str) -> (u16, Value) + Send + 'static) -> (String, Sent) {
    let sent: Sent = Arc::default();
    let seen = Arc::clone(&sent);
    let api = loopback::listen(move |method, path, body| {
        if method == "POST" {
            seen.lock().unwrap().push((path.to_owned(), serde_json::from_str(body).unwrap()));
        }
        let (status, answer) = answer(method, path);
        (status, answer.to_string())
    });
    (api, sent)
}

/// Runs `freehold`; returns its exit code, and what it printed and complained of.
fn run(api: &str, place: &Path, args: &[&str]) -> (i32, String, String) {
    let done = tenant_api::freehold(api, place, args).output().unwrap();
    (done.status.code().unwrap(), text(&done.stdout), text(&done.stderr))
}
