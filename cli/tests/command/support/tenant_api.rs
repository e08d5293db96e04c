//! A tenant API on loopback with prepared answers, and the environment in which `freehold` asks it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::loopback;

/// Starts an API that gives these answers by path; returns its address.
pub(crate) fn of_answers(answers: Vec<(&'static str, Value)>) -> String {
    serve(move |path, _| answers.iter().find(|(known, _)| *known == path).map(|(_, body)| body.clone()))
}

/// Starts an API whose answer depends on the path and on how often it was asked for before; returns its address.
pub(crate) fn serve(answer: impl Fn(&str, usize) -> Option<Value> + Send + 'static) -> String {
    let mut asked_for: BTreeMap<String, usize> = BTreeMap::new();
    loopback::listen(move |_, path, _| {
        let before = asked_for.entry(path.to_owned()).or_default();
        let found = answer(path, *before);
        *before += 1;
        found.map_or_else(|| (404, absent(path)), |body| (200, body.to_string()))
    })
}

/// Returns the API's answer about something that does not exist.
pub(crate) fn absent(path: &str) -> String {
    let message = match path.strip_prefix("/v1/installs/") {
        Some(rest) => {
            let name = rest.split('/').next().unwrap_or_default();
            format!("install `{name}` does not exist; `freehold install list` shows all installs")
        }
        None => format!("no answer for `{path}`"),
    };
    serde_json::json!({ "error": { "kind": "not_found", "message": message } }).to_string()
}

/// Returns `freehold` as the vendor runs it against `api`.
pub(crate) fn freehold(api: &str, dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_freehold"));
    command.args(args).current_dir(dir).env_clear().stdin(std::process::Stdio::null()).envs([
        ("FREEHOLD_API", api),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ACCESS_KEY_ID", "AKID"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ]);
    command
}
