//! A tenant API on loopback with prepared answers, and the environment in which `freehold` asks it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use freehold_app::AppError;
use freehold_domain::absence::Absence;
use freehold_protocol::api::{ErrorBody, ErrorDetail};
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
        found.map_or_else(|| absent(path), |body| (200, body.to_string()))
    })
}

/// Answers as the functions do about an error: with the status of its kind.
pub(crate) fn refusal(error: AppError) -> (u16, String) {
    let detail = ErrorDetail { kind: error.kind, message: error.message, soon: error.soon };
    (error.kind.status(), serde_json::to_string(&ErrorBody { error: detail }).unwrap())
}

/// Returns the API's answer about something that does not exist.
pub(crate) fn absent(path: &str) -> (u16, String) {
    let install = path.strip_prefix("/v1/installs/").and_then(|rest| rest.split('/').next()?.parse().ok());
    refusal(match install {
        Some(install) => Absence::Install(install).into(),
        None => AppError::not_found(format!("no answer for `{path}`")),
    })
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
