//! The small app that the reference of the config format shows, file by file.

macro_rules! files {
    ($($path:literal),+ $(,)?) => { [$(($path, include_str!(concat!("../../../../examples/queue/", $path)))),+] };
}

/// The files of `examples/queue`, each with its text.
const FILES: [(&str, &str); 7] = files![
    "metadata.toml",
    "inputs.toml",
    "components/queue.toml",
    "components/queue.yaml",
    "actions/health-check.toml",
    "permissions.toml",
    "queue.json",
];

const HEAD: &str = "\
## An example

`examples/queue` in the repository is a whole app: a queue in each customer's account, an input that says how long the queue keeps a
message, a health check, and the permissions for all of it. `freehold app check` has no finding there. `freehold app init DIR` writes a
larger app to start from, with a Terraform module too.

";

/// Returns the section of the reference that shows the app.
pub(super) fn section() -> String {
    let mut text = String::from(HEAD);
    for (path, content) in FILES {
        let language = path.rsplit('.').next().unwrap_or_default();
        text.push_str(&format!("`{path}`:\n\n```{language}\n{content}```\n\n"));
    }
    text
}
