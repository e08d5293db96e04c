//! How long `check` takes: of the largest real app beside the project, and of a generated one of 1,000 components. Prints a
//! JSON line for each run; `tests/bench/run` makes a table of them.

#![expect(clippy::expect_used, reason = "a bench may panic")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use freehold_appconfig::Severity;
use freehold_appconfig::check;

/// How many components the generated app has.
const COMPONENTS: usize = 1_000;

fn main() {
    // Cargo passes `--bench`; without it this is a test run, which measures nothing.
    if !std::env::args().any(|word| word == "--bench") {
        return;
    }
    match largest_real_app() {
        Some(app) => {
            eprintln!("bench: `{}`, {} files", app.display(), files(&app));
            measure("check_real.wall", &app, 40);
        }
        None => println!(r#"{{"name": "check_real", "skipped": "no real app configs beside the project"}}"#),
    }
    let place = tempfile::tempdir().expect("a directory for the generated app");
    let app = place.path().join("generated");
    generate(&app).expect("the generated app");
    let errors = check(&app).count(Severity::Error);
    assert_eq!(errors, 0, "the generated app is faulty: {}", check(&app));
    measure("check_generated.wall", &app, 10);
}

/// Checks `app` so often, after once for the file cache, and prints the milliseconds of each time.
fn measure(name: &str, app: &Path, runs: u32) {
    std::hint::black_box(check(app));
    for _ in 0..runs {
        let began = Instant::now();
        std::hint::black_box(check(app));
        let millis = began.elapsed().as_secs_f64() * 1e3;
        println!(r#"{{"name": "{name}", "value": {millis}, "unit": "ms"}}"#);
    }
}

/// Returns the real app with the most files; they are not part of the project.
fn largest_real_app() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/appconfigs");
    let apps = std::fs::read_dir(root).ok()?.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
    apps.max_by_key(|app| (files(app), app.clone()))
}

/// Returns how many files are in `directory` and below.
fn files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { 1 }).sum()
}

/// Writes an app of five kinds of components in turn; each names two before it in its templates, and a third in words.
fn generate(app: &Path) -> std::io::Result<()> {
    let write = |file: String, text: &str| {
        let path = app.join(file);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, text)
    };
    let metadata = "version = \"v2\"\ndisplay_name = \"Generated\"\ndescription = \"for measurements only\"\n";
    write("metadata.toml".into(), metadata)?;
    let mut inputs = "[[group]]\nname = \"all\"\ndisplay_name = \"All\"\ndescription = \"all\"\n".to_owned();
    for at in 0..50 {
        let _ = write!(
            inputs,
            "\n[[input]]\nname = \"input_{at}\"\ndisplay_name = \"Input {at}\"\ndescription = \"answer {at}\"\n\
             group = \"all\"\ndefault = \"{at}\"\n"
        );
    }
    write("inputs.toml".into(), &inputs)?;
    let sandbox = "terraform_version = \"1.11.3\"\n\n[public_repo]\nrepo = \"example/sandboxes\"\nbranch = \"main\"\n";
    write("sandbox.toml".into(), sandbox)?;
    for mode in ["provision", "maintenance", "deprovision"] {
        let role = format!(
            "type = \"{mode}\"\nname = \"{{{{ .nuon.install.id }}}}-{mode}\"\ndisplay_name = \"{mode}\"\n\
             description = \"{mode}\"\n"
        );
        write(format!("permissions/{mode}.toml"), &role)?;
    }
    for at in 0..COMPONENTS {
        write(format!("components/{at}-c{at}.toml"), &component(at))?;
    }
    for at in 0..COMPONENTS / 10 {
        let after = format!("[[triggers]]\ntype = \"post-deploy-component\"\ncomponent_name = \"c{at}\"\n");
        let step =
            format!("[[steps]]\nname = \"run\"\ncommand = \"echo {{{{ .nuon.components.c{at}.outputs.id }}}}\"\n");
        write(format!("actions/a{at}.toml"), &format!("name = \"a{at}\"\ntimeout = \"1m\"\n\n{after}\n{step}"))?;
    }
    Ok(())
}

fn component(at: usize) -> String {
    let before = |back: usize| at.checked_sub(back).map(|at| format!("c{at}"));
    let mut value = format!("{{{{ .nuon.install.id }}}}-{{{{ .nuon.inputs.inputs.input_{} }}}}", at % 50);
    for name in [before(1), before(7)].into_iter().flatten() {
        let _ = write!(value, "-{{{{ .nuon.components.{name}.outputs.id | default \"none\" }}}}");
    }
    let dependencies = before(13).map(|name| format!("dependencies = [\"{name}\"]\n")).unwrap_or_default();
    let (kind, keys) = match at % 5 {
        0 => (
            "terraform_module",
            format!(
                "terraform_version = \"1.11.3\"\n\n[public_repo]\nrepo = \"example/modules\"\ndirectory = \"c{at}\"\n\
                 branch = \"main\"\n\n[vars]\nname = '{value}'\nregion = \"{{{{ .nuon.cloud_account.aws.region }}}}\"\n"
            ),
        ),
        1 => (
            "helm_chart",
            format!(
                "chart_name = \"c{at}\"\nnamespace = \"c{at}\"\n\n[helm_repo]\nrepo_url = \"https://charts.example.com\"\n\
                 chart = \"c{at}\"\nversion = \"1.0.0\"\n\n[[values_file]]\ncontents = '''\nname: {value}\nreplicas: 2\n'''\n"
            ),
        ),
        2 => (
            "kubernetes_manifest",
            format!(
                "namespace = \"c{at}\"\nmanifest = '''\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c{at}\ndata:\n  \
                 name: {value}\n'''\n"
            ),
        ),
        3 => ("container_image", format!("\n[public]\nimage_url = \"docker.io/example/c{at}\"\ntag = \"1.{at}\"\n")),
        _ => (
            "terraform_module",
            format!(
                "terraform_version = \"1.11.3\"\n\n[connected_repo]\nrepo = \"example/modules\"\ndirectory = \"c{at}\"\n\
                 branch = \"main\"\n\n[[var_file]]\ncontents = '''\nname = \"{value}\"\n'''\n"
            ),
        ),
    };
    format!("name = \"c{at}\"\ntype = \"{kind}\"\n{dependencies}{keys}")
}
