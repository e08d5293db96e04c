//! Secrets of an app across two accounts: a thousand canaries reach the jobs of the customer, in every spelling, and nothing that
//! the vendor has and no list of processes shows one.

#![cfg(test)]

mod sealed_inputs;
mod sensitive_outputs;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use freehold_protocol::Digest;
use freehold_protocol::app_version::parameter_id;
use freehold_tests::harness::{Capability, Needs, World, app};
use serde_json::{Value, json};

const NEEDS: Needs = Needs { cloud: &[Capability::HttpApi, Capability::IamEnforced], programs: &["bwrap"] };

/// Secrets that the customer enters, and lines of each: every line is a canary.
const ENTERED: usize = 50;
const LINES: usize = 20;
/// What every canary of this test begins with. Those of the other tests, which run at the same time, begin otherwise.
const MARK: &str = "cAn4rY/";

/// Prints all secrets as they are, in base64, escaped for JSON and for URLs, and as outputs.
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
{{ range $name, $value := .nuon.secrets }}{{ $value }}
{{ end }}END
cat all
number=0
while read -r line; do
  number=$((number + 1))
  echo "line $number: $line"
  printf '%s' "$line" | base64 -w 0; echo
done < all
base64 -w 0 all; echo
sed 's/\\\\/\\\\\\\\/g; s/"/\\\\"/g' all
sed 's/%/%25/g; s/"/%22/g; s/&/%26/g; s/+/%2B/g; s#/#%2F#g' all
sed 's/"/\\\\"/g; s/^/{"output of '"$$"'": "/; s/$/"}/' all | head -n 1 > "$FREEHOLD_OUTPUTS"
echo "arn: {{ .nuon.install_stack.outputs.generated_arn }}"
"""

[[steps]]
name = "fail"
inline_contents = """
#!/bin/sh
echo '{{ .nuon.secrets.entered_7 }}' >&2
exit 3
"""
"#;

fn canary(mark: &str, secret: usize, line: usize) -> String {
    let digest = Digest::of(format!("{secret}.{line}").as_bytes());
    format!("{mark}{}+\"&{secret}.{line}", &digest.hex()[..16])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_canaries_reach_the_jobs_and_nothing_that_the_vendor_has() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_secrets", NEEDS).await? else { return Ok(()) };
    let directory = app::small(world.directory())?;
    let asked = (0..ENTERED)
        .map(|n| format!("[[secret]]\nname = \"entered_{n}\"\ndescription = \"one of many\"\nrequired = true\n\n"));
    let generated = "[[secret]]\nname = \"generated\"\ndescription = \"of the stack\"\nauto_generate = true\n";
    app::write(&directory, "secrets.toml", &(asked.collect::<String>() + generated))?;
    app::write(&directory, "actions/say.toml", ACTION)?;
    world.vendor(&["app", "sync", &directory.display().to_string()]).await?;
    let answers: Vec<String> = (0..ENTERED)
        .map(|n| {
            let lines: Vec<String> = (0..LINES).map(|line| canary(MARK, n, line)).collect();
            format!("{}={}", parameter_id("AppSecret", &format!("entered_{n}")), lines.join("\n"))
        })
        .collect();
    let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
    let install = world.install_answering("globex", "small", &answers).await?;
    let _runner = world.runner(&install).await?;
    let provisioned = world.provisioned(&install).await?;
    assert_eq!(provisioned["state"], "succeeded", "{provisioned}");

    let processes = Processes::watch();
    let run = world.run(&["action", "run", "globex", "say", "--json"]).await?.ended_with(1)?;
    let seen = processes.end();

    let mut documents = serde_json::Deserializer::from_str(&run).into_iter::<Value>();
    let run = documents.next().context("no answer")?.with_context(|| run.clone())?;
    let job = run["nodes"][0]["job"].as_str().with_context(|| format!("no job: {run}"))?;
    let has_arn = |log: &str| log.contains("arn: arn:aws:secretsmanager:");
    let log = world.log(job, |log| has_arn(log) && redacted_lines(log) == ENTERED * LINES).await?;
    let redacted = redacted_lines(&log);
    assert_eq!(redacted, ENTERED * LINES, "{log}");
    assert!(has_arn(&log), "{log}");
    let held = what_the_vendor_has(&world).await?;
    assert!(held.len() > 10_000 && held.contains("entered_49"), "the search looks at something else");
    let leaks: usize = [&held, &log, &run.to_string(), &seen].iter().map(|text| leaks(MARK, text)).sum();
    print_figures(redacted, leaks);
    assert_eq!(leaks, 0);
    Ok(())
}

/// Returns how many numbered lines of the action are redacted in its log.
fn redacted_lines(log: &str) -> usize {
    (1..=ENTERED * LINES).filter(|number| log.contains(&format!("line {number}: [redacted]\n"))).count()
}

/// Prints what `tests/figures/secrets` hands to the page of figures.
fn print_figures(redacted: usize, leaks: usize) {
    let all = ENTERED * LINES;
    for (name, value, passed) in
        [("secrets.canaries", all, redacted), ("secrets.leaked", leaks, all.saturating_sub(leaks))]
    {
        println!("{}", json!({"name": name, "value": value, "attempted": all, "passed": passed, "seed": 0}));
    }
}

/// Returns how often `mark`, the beginning of the canaries, is in a text, in any spelling.
fn leaks(mark: &str, text: &str) -> usize {
    spellings(mark).iter().map(|spelling| text.matches(spelling.as_str()).count()).sum()
}

/// Returns the spellings of `mark`: as it is, for JSON, for URLs, in hex, and in base64 wherever a group begins.
fn spellings(mark: &str) -> Vec<String> {
    let hex: String = mark.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut all = vec![mark.to_owned(), mark.replace('/', "\\/"), mark.replace('/', "%2F"), hex];
    for before in 0..3 {
        // Only digits that depend on the mark alone.
        let encoded = STANDARD_NO_PAD.encode(format!("{}{mark}", " ".repeat(before)));
        let first = (before * 8).div_ceil(6);
        let last = (before + mark.len()) * 8 / 6;
        all.push(encoded[first..last].to_owned());
    }
    all
}

/// Returns all rows of the tenant's table, with orders, reports and logs, and all objects of its buckets.
async fn what_the_vendor_has(world: &World) -> anyhow::Result<String> {
    let vendor = world.administrator(world.tenant_account())?;
    let table = aws_sdk_dynamodb::Client::new(&vendor);
    let mut held = String::new();
    let mut from = None;
    loop {
        let page =
            table.scan().table_name(format!("fh-{}", world.tenant())).set_exclusive_start_key(from).send().await?;
        for row in page.items() {
            for value in row.values() {
                held.push_str(&text(value));
                held.push('\n');
            }
        }
        from = page.last_evaluated_key;
        if from.is_none() {
            break;
        }
    }
    let objects = aws_sdk_s3::Client::new(&vendor);
    for bucket in objects.list_buckets().send().await?.buckets() {
        let Some(name) = bucket.name().filter(|name| name.starts_with(&format!("fh-{}--", world.tenant()))) else {
            continue;
        };
        for object in objects.list_objects_v2().bucket(name).send().await?.contents() {
            let key = object.key().unwrap_or_default();
            let body = objects.get_object().bucket(name).key(key).send().await?.body.collect().await?;
            held.push_str(&String::from_utf8_lossy(&body.into_bytes()));
        }
    }
    Ok(held)
}

/// Returns a value of the table as text; a deflated one is read.
fn text(value: &aws_sdk_dynamodb::types::AttributeValue) -> String {
    match value {
        aws_sdk_dynamodb::types::AttributeValue::S(text) => text.clone(),
        aws_sdk_dynamodb::types::AttributeValue::B(bytes) => inflated(bytes.as_ref()),
        other => format!("{other:?}"),
    }
}

fn inflated(bytes: &[u8]) -> String {
    use std::io::Read as _;

    let mut text = Vec::new();
    match flate2::read::DeflateDecoder::new(bytes).read_to_end(&mut text) {
        Ok(_) => String::from_utf8_lossy(&text).into_owned(),
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Looks at the argument lists of all processes of the machine until it is ended.
struct Processes {
    over: Arc<AtomicBool>,
    watching: std::thread::JoinHandle<String>,
}

impl Processes {
    /// The pause between two looks. A program that gets a secret runs for longer.
    const PAUSE: Duration = Duration::from_millis(2);
    /// After so many looks with the same arguments, a process is read in one look of as many.
    const STEADY: u32 = 10;

    fn watch() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&over);
        let watching = std::thread::spawn(move || {
            let (mut seen, mut known, mut looks) = (BTreeSet::new(), BTreeMap::new(), 0_u32);
            while !until.load(Ordering::Relaxed) {
                let mut present = BTreeMap::new();
                for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
                    let (before, same): (Vec<u8>, u32) = known.remove(&process.file_name()).unwrap_or_default();
                    if same >= Self::STEADY && !looks.is_multiple_of(Self::STEADY) {
                        present.insert(process.file_name(), (before, same));
                        continue;
                    }
                    let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
                    let same = if line == before { same.saturating_add(1) } else { 0 };
                    if same == 0 {
                        seen.insert(String::from_utf8_lossy(&line).into_owned());
                    }
                    present.insert(process.file_name(), (line, same));
                }
                known = present;
                looks = looks.wrapping_add(1);
                std::thread::sleep(Self::PAUSE);
            }
            seen.into_iter().collect::<Vec<_>>().join("\n")
        });
        Self { over, watching }
    }

    fn end(self) -> String {
        self.over.store(true, Ordering::Relaxed);
        let seen = self.watching.join().unwrap_or_default();
        assert!(seen.contains("freehold"), "the watch saw no program of ours");
        seen
    }
}
