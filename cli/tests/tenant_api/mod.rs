//! A tenant API on loopback with prepared answers, and the environment in which `freehold` asks it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Starts an API that gives these answers by path; returns its address.
pub(crate) fn of_answers(answers: Vec<(&'static str, Value)>) -> String {
    serve(move |path, _| answers.iter().find(|(known, _)| *known == path).map(|(_, body)| body.clone()))
}

/// Starts an API whose answer depends on the path and on how often it was asked for before; returns its address.
pub(crate) fn serve(answer: impl Fn(&str, usize) -> Option<Value> + Send + 'static) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut asked_for: BTreeMap<String, usize> = BTreeMap::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let head = head_of(&mut reader);
            let asked = head.first().map(String::as_str).unwrap_or_default();
            let length = head.iter().find_map(|line| line.strip_prefix("content-length: "));
            let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
            std::io::Read::read_exact(&mut reader, &mut body).unwrap();
            let path = asked.split(' ').nth(1).unwrap_or_default().to_owned();
            let before = asked_for.entry(path.clone()).or_default();
            let (status, body) = match answer(&path, *before) {
                Some(body) => (200, body.to_string()),
                None if path.starts_with("/v1/installs/") => {
                    let name = path.split('/').nth(3).unwrap_or_default();
                    let message =
                        format!("install `{name}` does not exist; `freehold install list` shows those that do");
                    (404, serde_json::json!({ "error": { "kind": "not_found", "message": message } }).to_string())
                }
                None => (404, format!(r#"{{"error":{{"kind":"not_found","message":"no answer for `{path}`"}}}}"#)),
            };
            *before += 1;
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    address
}

/// Returns the lines of a request's head.
fn head_of(reader: &mut impl BufRead) -> Vec<String> {
    let mut all = Vec::new();
    let mut line = String::new();
    while reader.read_line(&mut line).unwrap() > 2 {
        all.push(line.trim_end().to_owned());
        line.clear();
    }
    all
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
