//! Sensitive inputs of the vendor across two accounts: a thousand canaries are sealed by the command and opened by the runner,
//! and nothing between the two shows one.

use std::fmt::Write as _;

use anyhow::Context as _;
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{World, app};
use serde_json::Value;

use super::{LINES, NEEDS, Processes, canary, leaks, what_the_vendor_has};

/// Inputs that the vendor gives, with [`LINES`] lines each: every line is a canary.
const GIVEN: usize = 50;
/// What every canary of this test begins with.
const MARK: &str = "cAn4iN/";

/// Prints all sensitive inputs as they are and in base64, and one as an output.
const ACTION: &str = r#"name = "say"
timeout = "2m"

[[triggers]]
type = "manual"

[[steps]]
name = "say"
inline_contents = """
#!/bin/sh
set -eu
cat > all <<'END'
{{ range $name, $value := .nuon.inputs.inputs }}{{ $value }}
{{ end }}END
cat all
base64 -w 0 all; echo
sed 's/"/\\\\"/g; s/^/{"output": "/; s/$/"}/' all | head -n 1 > "$FREEHOLD_OUTPUTS"
echo "lines: $(grep -c '^cAn4iN' all)"
"""
"#;

fn inputs() -> String {
    let mut text = "[[group]]\nname = \"app\"\ndisplay_name = \"The app\"\ndescription = \"All of it\"\n\n".to_owned();
    for n in 0..GIVEN {
        let _ = write!(
            text,
            "[[input]]\nname = \"given_{n}\"\ndisplay_name = \"{n}\"\ndescription = \"One of many\"\ngroup = \"app\"\n\
             required = true\nsensitive = true\n\n"
        );
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_canaries_are_read_by_the_runner_alone() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_sealed_inputs", NEEDS).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    app::write(&directory, "inputs.toml", &inputs())?;
    app::write(&directory, "actions/say.toml", ACTION)?;
    world.vendor(&["app", "sync", &directory.display().to_string()]).await?;
    too_early(&world).await?;
    let install = world.install("globex", "small").await?;
    let _runner = world.runner(&install).await?;
    let asks = until("the install asks for its inputs", SOON, || async {
        let view = world.vendor(&["install", "show", "globex"]).await?;
        let problems = view["problems"].as_array().cloned().unwrap_or_default();
        Ok((problems.len() == GIVEN).then_some(problems))
    });
    let asks = asks.await?;
    assert!(
        asks[0].as_str().is_some_and(|text| text.starts_with("input `given_0` is sensitive and required")),
        "{asks:?}"
    );

    let processes = Processes::watch(&[]);
    let given = give(&world).await?;
    let provisioned = world.provisioned(&install).await?;
    let run = world.vendor(&["action", "run", "globex", "say"]).await?;
    let seen = processes.end("freehold");

    assert_eq!(provisioned["state"], "succeeded", "{provisioned}");
    let job = run["nodes"][0]["job"].as_str().with_context(|| format!("no job: {run}"))?;
    let is_whole = |log: &str| {
        log.matches("[redacted]").count() >= GIVEN * LINES && log.contains(&format!("lines: {}", GIVEN * LINES))
    };
    let log = world.log(job, is_whole).await?;
    assert!(is_whole(&log), "{log}");
    let show = world.vendor(&["job", "show", job]).await?;
    assert_eq!(show["outputs"]["output"], "[redacted]", "{show}");
    let held = what_the_vendor_has(&world).await?;
    assert!(
        held.len() > 10_000 && held.contains("given_49") && held.contains("sealed.v1."),
        "another place was searched"
    );
    let install_json = world.run(&["install", "show", "globex", "--json"]).await?.ended_with(0)?;
    let texts = [&held, &log, &run.to_string(), &seen, &given.to_string(), &show.to_string(), &install_json];
    assert_eq!(texts.iter().map(|text| leaks(MARK, text)).sum::<usize>(), 0);
    a_value_that_is_given_again_is_used(&world).await
}

/// A value for an install without a runner is refused before it leaves the machine.
async fn too_early(world: &World) -> anyhow::Result<()> {
    let account = world.new_customer()?;
    let create = ["install", "create", "early", "--app", "small", "--account", &account, "--region", "eu-west-1"];
    let given = ["--input", "given_0=x"];

    let output = world.run(&[&create[..], &given].concat()).await?.ended_with(2)?;

    assert!(output.contains("`freehold install inputs early --input given_0=@FILE`"), "{output}");
    Ok(())
}

/// Gives all inputs by files, and returns the answer.
async fn give(world: &World) -> anyhow::Result<Value> {
    let mut words = vec!["install".to_owned(), "inputs".to_owned(), "globex".to_owned()];
    for n in 0..GIVEN {
        let file = world.directory().join(format!("given_{n}"));
        let lines: Vec<String> = (0..LINES).map(|line| canary(MARK, n, line)).collect();
        std::fs::write(&file, lines.join("\n"))?;
        words.extend(["--input".to_owned(), format!("given_{n}=@{}", file.display())]);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    world.vendor(&words).await
}

async fn a_value_that_is_given_again_is_used(world: &World) -> anyhow::Result<()> {
    world.vendor(&["install", "inputs", "globex", "--input", "given_0=shorter than before"]).await?;

    let run = world.vendor(&["action", "run", "globex", "say"]).await?;

    let job = run["nodes"][0]["job"].as_str().with_context(|| format!("no job: {run}"))?;
    let lines = format!("lines: {}", (GIVEN - 1) * LINES);
    let log = world.log(job, |log| log.contains(&lines)).await?;
    assert!(log.contains(&lines), "{log}");
    assert!(!log.contains("shorter than before"), "{log}");
    Ok(())
}
