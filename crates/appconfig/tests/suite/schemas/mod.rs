//! The JSON Schemas say what the reader says, of real configs, of faulty ones, and of good ones with a key changed.

mod component_samples;
mod faulty_samples;
mod samples;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use freehold_appconfig::SchemaKind;
use freehold_appconfig::Severity;
use freehold_appconfig::check;
use freehold_appconfig::reference;
use freehold_appconfig::schema_kinds;
use freehold_appconfig::schemas;
use freehold_appconfig::taplo_config;
use jsonschema::Validator;
use serde_json::{Map, Value, json};
use toml_edit::{Document, Item, TableLike};

use crate::config::{Config, good};
use crate::real_apps::real_apps;
use component_samples::COMPONENTS;
use faulty_samples::FAULTY;
use samples::FILES;

/// Returns kind, path and text of each file without a mistake.
fn good_samples() -> impl Iterator<Item = &'static (&'static str, &'static str, &'static str)> {
    FILES.iter().chain(COMPONENTS)
}

fn compiled() -> BTreeMap<&'static str, Validator> {
    schemas().map(|(name, schema)| (name, jsonschema::draft7::new(&schema).unwrap())).collect()
}

/// Parses TOML into what an editor holds against a schema.
fn json_of(text: &str) -> Value {
    table(Document::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}")).as_table())
}

fn table(table: &dyn TableLike) -> Value {
    table.iter().map(|(key, item)| (key.to_owned(), item_json(item))).collect::<Map<_, _>>().into()
}

fn item_json(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => value_json(value),
        Item::Table(inner) => table(inner),
        Item::ArrayOfTables(tables) => tables.iter().map(|inner| table(inner)).collect(),
    }
}

fn value_json(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => json!(text.value()),
        toml_edit::Value::Integer(number) => json!(number.value()),
        toml_edit::Value::Float(number) => json!(number.value()),
        toml_edit::Value::Boolean(flag) => json!(flag.value()),
        toml_edit::Value::Datetime(date) => json!(date.value().to_string()),
        toml_edit::Value::Array(items) => items.iter().map(value_json).collect(),
        toml_edit::Value::InlineTable(inner) => table(inner),
    }
}

/// Prints a file; its tables stand in one line each.
fn toml_of(file: &Value) -> String {
    file.as_object().unwrap().iter().map(|(key, value)| format!("\"{key}\" = {}\n", toml_value(value))).collect()
}

fn toml_value(value: &Value) -> String {
    match value {
        Value::Object(table) => {
            let inside: Vec<String> =
                table.iter().map(|(key, value)| format!("\"{key}\" = {}", toml_value(value))).collect();
            format!("{{ {} }}", inside.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(toml_value).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// Returns the schemas for the file at `path`: of its kind, and of its type when it is a component.
fn kinds_of(path: &str, file: &Value) -> Vec<&'static str> {
    let fits = |glob: &String| match glob.split_once("/**") {
        Some((folder, _)) => path.split_once('/').is_some_and(|(first, _)| first == folder),
        None => path == glob,
    };
    let kind = schema_kinds().find(|kind| kind.files().iter().any(fits)).unwrap_or_else(|| panic!("{path}"));
    let of_type = file["type"].as_str().filter(|_| kind.name() == "component");
    let of_type = of_type.and_then(|word| word.parse::<SchemaKind>().ok()).map(SchemaKind::name);
    std::iter::once(kind.name()).chain(of_type).collect()
}

/// Returns what the schemas of their kinds say against the TOML files below `app`.
fn objections(app: &Path, schemas: &BTreeMap<&str, Validator>) -> (usize, Vec<String>) {
    let mut files = Vec::new();
    every_file(app, &mut files);
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    let mut found = Vec::new();
    for file in &files {
        let path = file.strip_prefix(app).unwrap().to_str().unwrap();
        let value = json_of(&fs::read_to_string(file).unwrap());
        for kind in kinds_of(path, &value) {
            let errors = schemas[kind].iter_errors(&value);
            found.extend(errors.map(|error| format!("{}: {kind}: {}: {error}", file.display(), error.instance_path())));
        }
    }
    (files.len(), found)
}

fn every_file(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            every_file(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn every_schema_is_one() {
    for (name, schema) in schemas() {
        assert!(jsonschema::draft7::meta::is_valid(&schema), "{name}");
        assert_eq!(schema["$id"], format!("urn:freehold:app-config:{name}"));
        assert!(schema["title"].as_str().is_some_and(|title| !title.is_empty()), "{name}");
    }
    assert!(schemas().count() >= 25);
}

#[test]
fn an_editor_that_knows_neither_finds_no_reference_and_no_union_of_all() {
    for (name, schema) in schemas() {
        let text = schema.to_string();

        assert!(!text.contains("\"$ref\"") && !text.contains("\"allOf\""), "{name}");
    }
}

#[test]
fn a_schema_is_found_by_its_name_its_folder_and_the_words_of_comments() {
    let found = |word: &str| word.parse::<SchemaKind>().map_or_else(|error| error.to_string(), |kind| kind.to_string());

    for kind in schema_kinds() {
        assert_eq!(kind.name().parse(), Ok(kind));
    }
    assert_eq!(found("helm"), "helm_chart");
    assert_eq!(found("terraform"), "terraform_module");
    assert_eq!(found("kubernetes-manifest"), "kubernetes_manifest");
    assert_eq!(found("docker-build"), "docker_build");
    assert_eq!(found("container-image"), "container_image");
    assert_eq!(found("external_image"), "container_image");
    assert_eq!(found("install"), "install");
    assert_eq!(found("components"), "component");
    assert_eq!(found("actions"), "action");
    assert_eq!(found("sandbx"), "there is no schema `sandbx`; did you mean `sandbox`?");
    assert!(found("zzzzzzzz").starts_with("there is no schema `zzzzzzzz`; the schemas are metadata, inputs, "));
}

#[test]
fn every_real_file_is_accepted() {
    let Some(apps) = real_apps() else { return };
    let schemas = compiled();

    let found: Vec<(usize, Vec<String>)> = apps.iter().map(|app| objections(app, &schemas)).collect();

    let files: usize = found.iter().map(|(files, _)| files).sum();
    let rejected: Vec<String> = found.into_iter().flat_map(|(_, rejected)| rejected).collect();
    assert!(files >= 400, "only {files} files");
    assert!(rejected.is_empty(), "{}", rejected.join("\n"));
}

#[test]
fn every_file_of_the_demo_is_accepted() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/demo");

    let (files, rejected) = objections(&demo, &compiled());

    assert!(files >= 10, "only {files} files");
    assert!(rejected.is_empty(), "{}", rejected.join("\n"));
}

#[test]
fn the_app_that_the_reference_shows_is_shown_whole_and_has_no_finding() {
    let app = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/queue");
    let mut files = Vec::new();
    every_file(&app, &mut files);

    let found = check(&app);
    let (_, rejected) = objections(&app, &compiled());

    assert!(found.is_empty(), "{found}");
    assert!(rejected.is_empty(), "{}", rejected.join("\n"));
    let page = reference();
    let absent: Vec<_> = files.iter().filter(|file| !page.contains(&fs::read_to_string(file).unwrap())).collect();
    assert!(files.len() >= 7 && absent.is_empty(), "the reference does not show {absent:?}");
}

/// The template of the sample of a stack.
const BUCKET: &str = "Parameters:\n  A: {Type: String, Default: b}\nResources:\n  Bucket: {Type: AWS::S3::Bucket}\n";

/// Returns a config that each good sample fits into.
fn small() -> Config {
    good()
        .with_sandbox()
        .with("overlays/shop/kustomization.yaml", "")
        .with("components/bucket.yaml", BUCKET)
        .with("permissions/make.toml", good_samples().find(|(_, path, _)| *path == "permissions/make.toml").unwrap().2)
        .with("input_groups/rest.toml", "name = \"rest\"\n")
}

/// Returns a config of every good sample.
fn complete() -> Config {
    good_samples().fold(small(), |config, (_, path, text)| config.with(path, text))
}

/// Returns the first mistake that the reader finds in the file at `path`.
fn mistake(config: &Config, path: &str) -> Option<String> {
    let found = check(&config.dir);
    found.iter().find(|one| one.severity == Severity::Error && one.file == path).map(|one| one.message.clone())
}

#[test]
fn every_good_file_is_accepted_by_reader_and_schema() {
    let schemas = compiled();
    let config = complete();

    assert!(!config.check().has_errors(), "{}", config.check());
    for (kind, path, text) in good_samples() {
        let file = json_of(text);
        assert!(kinds_of(path, &file).contains(kind), "{path}");
        for kind in kinds_of(path, &file) {
            assert!(schemas[kind].is_valid(&file), "{kind} {path}: {:?}", schemas[kind].validate(&file));
        }
    }
}

#[test]
fn every_faulty_file_is_refused_by_reader_and_schema() {
    let schemas = compiled();

    let mut taken = Vec::new();
    for (kind, path, text) in FAULTY {
        let file = json_of(text);
        if mistake(&good().with(path, text), path).is_none() {
            taken.push(format!("the reader takes {path}:\n{text}"));
        }
        let kinds = kinds_of(path, &file).into_iter().chain([*kind]).filter(|kind| schemas[kind].is_valid(&file));
        taken.extend(kinds.map(|kind| format!("the schema `{kind}` takes:\n{text}")));
    }

    assert!(taken.is_empty(), "{}", taken.join("\n\n"));
    assert!(FAULTY.len() >= 25);
}

#[test]
fn an_unknown_key_is_accepted_as_the_reader_only_warns_of_it() {
    for (name, schema) in compiled() {
        let errors: Vec<String> = schema.iter_errors(&json!({ "no_such_key": 1 })).map(|e| e.to_string()).collect();

        assert!(!errors.iter().any(|error| error.contains("no_such_key") && error.contains("unexpected")), "{name}");
    }
}

/// Texts that name something else, or are in another language: their shape does not depend on it.
const NAMES_ELSEWHERE: [&str; 20] = [
    "role",
    "post_deploy_runbooks",
    "group",
    "dependencies",
    "component_name",
    "component",
    "components",
    "repo",
    "source",
    "template",
    "contents",
    "permissions_boundary",
    "drift_schedule",
    "cron_schedule",
    "region",
    "repo_url",
    "iam_role_arn",
    "template_url",
    "tool_image",
    "instance_type",
];

/// Returns `file` with one key gone or one value another, in every way; each with the keys that lead there.
fn changed(file: &Value) -> Vec<(Vec<String>, Value)> {
    let others =
        [json!("zz"), json!(""), json!(7), json!(true), json!([]), json!([1]), json!(["zz"]), json!([{}]), json!({})];
    let mut found = Vec::new();
    match file {
        Value::Object(entries) => {
            for (key, value) in entries {
                let with = |value: Option<Value>| {
                    let mut file = entries.clone();
                    match value {
                        Some(value) => file.insert(key.clone(), value),
                        None => file.remove(key),
                    };
                    Value::Object(file)
                };
                found.push((vec![key.clone()], with(None)));
                found.extend(others.iter().map(|other| (vec![key.clone()], with(Some(other.clone())))));
                for (mut path, inner) in changed(value) {
                    path.insert(0, key.clone());
                    found.push((path, with(Some(inner))));
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                for (path, inner) in changed(item) {
                    let mut items = items.clone();
                    items[at] = inner;
                    found.push((path, Value::Array(items)));
                }
            }
        }
        _ => {}
    }
    found
}

/// Whether the file still says things of the right shape under `path`, which only other files can prove wrong.
fn is_elsewhere(path: &[String], file: &Value) -> bool {
    let Some(key) = path.iter().rev().find(|key| NAMES_ELSEWHERE.contains(&key.as_str())) else { return false };
    let before: Vec<&String> = path.iter().take_while(|part| *part != key).collect();
    let mut values = vec![file];
    for part in before.into_iter().chain([key]) {
        values = values
            .into_iter()
            .flat_map(|value| value.as_array().map_or(vec![value], |all| all.iter().collect()))
            .filter_map(|value| value.get(part))
            .collect();
    }
    let text = |value: &Value| value.is_string();
    values.into_iter().all(|value| text(value) || value.as_array().is_some_and(|all| all.iter().all(text)))
}

#[test]
fn a_good_file_with_one_key_changed_is_taken_by_both_or_by_none() {
    let schemas = compiled();
    let mut tried = [0, 0];
    let mut differ = Vec::new();

    for (kind, path, text) in good_samples() {
        let mut config = small();
        for (keys, file) in changed(&json_of(text)) {
            config = config.with(path, &toml_of(&file));
            let read = mistake(&config, path);
            let schemed = schemas[kind].validate(&file).map_err(|error| error.to_string());
            tried[usize::from(read.is_none())] += 1;
            if read.is_none() != schemed.is_ok() && !(schemed.is_ok() && is_elsewhere(&keys, &file)) {
                let keys = keys.join(".");
                differ.push(format!("{kind} {keys}: reader {read:?}, schema {schemed:?}\n{}", toml_of(&file)));
            }
        }
    }

    assert!(differ.is_empty(), "{} of {tried:?} differ:\n{}", differ.len(), differ.join("\n"));
    assert!(tried.iter().all(|tried| *tried > 300), "{tried:?}");
}

#[test]
fn the_editor_knows_every_file() {
    let config = json_of(&taplo_config());

    let rules = config["rule"].as_array().unwrap();
    for kind in schema_kinds().filter(|kind| !kind.files().is_empty()) {
        let rule = rules.iter().find(|rule| rule["schema"]["path"] == format!("schemas/{kind}.json")).unwrap();
        assert_eq!(rule["include"], json!(kind.files()));
    }
    assert_eq!(rules[1]["include"], json!(["inputs.toml"]));
    assert!(rules.iter().any(|rule| rule["include"] == json!(["policies.toml", "policies/**/*.toml"])));
}

#[test]
fn the_published_reference_is_the_one_that_the_tables_make() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/app-config.md");
    let made = reference();
    if std::env::var_os("FREEHOLD_UPDATE").is_some() {
        fs::write(path, &made).unwrap();
    }

    let published = fs::read_to_string(path).unwrap_or_default();

    assert!(
        published == made,
        "docs/app-config.md is out of date; run `FREEHOLD_UPDATE=1 cargo test -p freehold-appconfig`"
    );
}
