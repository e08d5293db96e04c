//! The error about a file that is not the config of a runner, with the way out.

use super::role::Role;

/// Returns what is wrong with a file that is not a config, and the way out. The message of a missing key leaves the
/// position out, because the position does not help.
pub(super) fn explain(text: &str, file: &str, role: Role, error: &toml_edit::de::Error) -> (String, String) {
    let is_missing = error.message().starts_with("missing field");
    let detail = if is_missing {
        error.message().replace("missing field", "it has no key")
    } else {
        error.to_string().trim_end().to_owned()
    };
    let parsed = text.parse::<toml_edit::DocumentMut>().ok();
    let install = parsed.as_ref().and_then(|keys| keys.get("install")?.as_str()).unwrap_or("INSTALL");
    let command = match role {
        Role::Install => format!("freehold install runner-config {install} --out {file}"),
        Role::Build => format!("freehold tenant build-runner --out {file}"),
    };
    let way_out = match parsed {
        Some(keys) if !keys.contains_key("tenant") && !keys.contains_key("install") => {
            return not_a_config(&keys, role);
        }
        Some(_) => format!("correct the file, or write it again with `{command} --force`"),
        // The command replaces a file only if it can read which settings of the machine to keep.
        None => format!("correct the file, or remove it and write it again with `{command}`"),
    };
    // An excerpt of the file has several lines, and its last line marks the mistake.
    let way_out = format!("{}{way_out}", if detail.contains('\n') { "\n" } else { "; " });
    (detail, way_out)
}

/// Returns what is wrong with a file that names neither tenant nor install. The command in the message must not replace
/// this file, which may be the `runner.toml` of an app.
fn not_a_config(keys: &toml_edit::DocumentMut, role: Role) -> (String, String) {
    let is_of_an_app =
        ["runner_type", "tool_image", "env_vars", "helm_driver"].iter().any(|key| keys.contains_key(key));
    let detail = if is_of_an_app {
        "it describes the runner of an app, and is not the config of a runner"
    } else {
        "it is not the config of a runner: it names no tenant and no install"
    };
    let way_out = match role {
        Role::Install => "; write one with `freehold install runner-config INSTALL --out INSTALL-runner.toml`",
        Role::Build => "; write one with `freehold tenant build-runner --out build-runner.toml`",
    };
    (detail.to_owned(), way_out.to_owned())
}
