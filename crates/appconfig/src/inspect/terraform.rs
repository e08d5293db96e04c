//! Checks Terraform modules: their files can be parsed, the modules that they call exist, and they get the variables
//! that they need.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use freehold_protocol::terraform::ProviderSource;
use freehold_template::nearest;
use hcl_edit::Span;
use hcl_edit::structure::{Block, Body};

use super::brackets;
use super::declarations::Outputs;
use super::reader::Reader;
use super::variable_reads;
use crate::read::files::Place;
use crate::read::paths::{join, normal};
use crate::report::draft::Draft;
use crate::state::file::Checked;
use crate::state::source::{Held, provider_source};

/// The endings of module files in HCL. OpenTofu prefers `.tofu` (OpenTofu manual, "Files and Directories").
const NATIVE: [&str; 2] = [".tf", ".tofu"];
/// The endings of module files in JSON.
const JSON: [&str; 2] = [".tf.json", ".tofu.json"];
/// The lock file beside the module's files, with the versions and digests of providers (Terraform documentation,
/// "Dependency Lock File").
const LOCK: &str = ".terraform.lock.hcl";
const WRITE_LOCK: &str = "run `terraform providers lock -platform=linux_amd64 -platform=linux_arm64` in the module, and \
                          keep the file that it writes";
/// The prefix of the resource types that are built into Terraform and need no provider.
const BUILT_IN: &str = "terraform_";

/// The declarations in the files of one directory.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// The variables: whether each of them needs a value, and the place that declares it.
    variables: BTreeMap<String, (bool, Place)>,
    /// The variables that expressions read, each with its first place.
    reads: BTreeMap<String, Place>,
    /// The directories of the modules that this module calls, as this module names them.
    calls: Vec<(String, Place)>,
    /// The types of the resources that this module always creates, with their places.
    pub(super) types: Vec<(String, Place)>,
    /// The outputs of the module. [`Outputs::whole`] is true only if all declarations of the module are known.
    pub(super) outputs: Outputs,
    /// The first place that needs a provider, if the module needs a provider that is not part of Terraform.
    provider: Option<Place>,
}

/// Checks the module in `held`, and every module in `held` that it calls. Returns the declarations of the module
/// itself.
pub(super) fn look(reader: &mut Reader<'_>, checked: &Checked, held: &Held) -> Module {
    let mut seen = BTreeSet::from([String::new()]);
    let Some(mut root) = directory(reader, held, "", &held.place) else { return Module::default() };
    variables(reader, checked, held, &root);
    let mut provider = root.provider.take();
    let mut calls: Vec<(String, String, Place)> = called("", std::mem::take(&mut root.calls));
    while let Some((from, source, place)) = calls.pop() {
        let Some(path) = normal(&join(&from, &source)) else {
            let message =
                format!("module `{source}` is outside of the source `{}`, and only the source is packed", held.word);
            reader.say(
                Draft::error(place, message)
                    .help("move the module into the source, or name a source directory that contains it"),
            );
            continue;
        };
        if seen.insert(path.clone())
            && let Some(module) = directory(reader, held, &path, &place)
        {
            calls.extend(called(&path, module.calls));
            provider = provider.or(module.provider);
        }
    }
    if let Some(place) = provider.filter(|_| !held.paths.contains(LOCK)) {
        let fetches = provider_source(&checked.root) == ProviderSource::Registry;
        reader.say(if fetches { unpinned(held, place) } else { without_lock(held, place) });
    }
    root
}

fn called(from: &str, calls: Vec<(String, Place)>) -> Vec<(String, String, Place)> {
    calls.into_iter().map(|(source, place)| (from.to_owned(), source, place)).collect()
}

/// Reads the module in the directory `path` of the source. `place` is where the config or another module names the
/// directory. Reports a directory without module files.
fn directory(reader: &mut Reader<'_>, held: &Held, path: &str, place: &Place) -> Option<Module> {
    let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
    let inside =
        |name: &&String| name.strip_prefix(&prefix).is_some_and(|rest| !rest.contains('/') && is_module_file(rest));
    let names: Vec<&String> = held.paths.iter().filter(inside).collect();
    if names.is_empty() {
        reader.say(without_files(held, path, place));
        return None;
    }
    let mut module = Module::default();
    module.outputs.whole = true;
    for name in names {
        match reader.open(held, name) {
            Some(file) => read(reader, file, name, &mut module),
            None => module.outputs.whole = false,
        }
    }
    undeclared(reader, held, path, &module);
    Some(module)
}

/// Warns about the variables that the module in the directory `path` of the source reads and does not declare:
/// Terraform refuses the module.
fn undeclared(reader: &mut Reader<'_>, held: &Held, path: &str, module: &Module) {
    if !module.outputs.whole {
        return;
    }
    let directory = join(&held.path, path);
    let directory = directory.trim_end_matches('/');
    for (name, place) in module.reads.iter().filter(|(name, _)| !module.variables.contains_key(*name)) {
        let message = format!("the module in `{directory}` reads `var.{name}`, which none of its files declares");
        let draft = Draft::warning(place.clone(), message);
        reader.say(match nearest(name, module.variables.keys().map(String::as_str)) {
            near @ Some(_) => draft.meant(near),
            None => draft.help(format!("declare it: `variable \"{name}\" {{}}`, or correct the name")),
        });
    }
}

/// Returns the error for a module without a lock file whose providers come from a registry: a runner only fetches
/// pinned providers.
fn unpinned(held: &Held, place: Place) -> Draft {
    let directory = held.path.trim_end_matches('/');
    let message = format!("the module in `{directory}` needs a provider, and has no `{LOCK}` that pins it");
    Draft::error(place, message)
        .help(format!("{WRITE_LOCK}; or remove `providers`: each build then pins and packs the provider"))
}

fn without_lock(held: &Held, place: Place) -> Draft {
    let directory = held.path.trim_end_matches('/');
    let message = format!(
        "the module in `{directory}` needs a provider, and has no `{LOCK}` that pins it: each build takes the newest \
         version"
    );
    Draft::warning(place, message).help(WRITE_LOCK)
}

fn without_files(held: &Held, path: &str, place: &Place) -> Draft {
    let directory = join(&held.path, path);
    let directory = directory.trim_end_matches('/');
    let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
    let below = held.paths.iter().filter_map(|name| name.strip_prefix(&prefix));
    let (mut exists, mut near) = (path.is_empty(), None);
    for name in below {
        exists = true;
        let parent = name.rsplit_once('/').filter(|(_, file)| is_module_file(file)).map(|(parent, _)| parent);
        near = near.or(parent);
    }
    let message = if exists {
        format!("the module in `{directory}` has no `.tf` file")
    } else {
        format!("the module in `{directory}` does not exist")
    };
    let help = match near {
        Some(near) if path.is_empty() => format!("did you mean `{}`?", join(held.word.trim_end_matches('/'), near)),
        Some(near) => format!("did you mean `./{}`?", join(path, near)),
        None => "write its files there, such as `main.tf`, or correct the path".to_owned(),
    };
    Draft::error(place.clone(), message).help(help)
}

/// Returns whether Terraform reads a file as part of a module. Terraform ignores hidden files and files of editors.
fn is_module_file(name: &str) -> bool {
    let known = NATIVE.iter().chain(&JSON).any(|end| name.ends_with(end));
    known && !name.starts_with(['.', '#'])
}

fn read(reader: &mut Reader<'_>, file: usize, name: &str, module: &mut Module) {
    let text = reader.text(file);
    let fault = if JSON.iter().any(|end| name.ends_with(end)) {
        module.outputs.whole = false;
        json(file, text)
    } else {
        match native(text) {
            Ok((body, start)) => {
                declare(&body, file, start, module);
                None
            }
            Err(wrong) => {
                module.outputs.whole = false;
                Some(draft(file, text, wrong))
            }
        }
    };
    if let Some(fault) = fault {
        reader.say(fault);
    }
}

fn json(file: usize, text: &str) -> Option<Draft> {
    let error = serde_json::from_str::<serde::de::IgnoredAny>(text).err()?;
    let before: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let reason = error.to_string();
    let message = format!("not JSON: {}", reason.split(" at line ").next().unwrap_or_default());
    Some(Draft::error(Reader::place(file, before + error.column().saturating_sub(1), 1), message))
}

/// Parses a file in HCL. Returns its body, and the byte at which the body starts: after the byte order mark, if any.
fn native(text: &str) -> Result<(Body, usize), (usize, String)> {
    let plain = text.strip_prefix('\u{feff}').unwrap_or(text);
    let start = text.len() - plain.len();
    hcl_edit::parser::parse_body(plain)
        .map(|body| (body, start))
        .map_err(|error| (start + error.location().offset(), error.message().to_owned()))
}

fn draft(file: usize, text: &str, (offset, message): (usize, String)) -> Draft {
    let place = Reader::place(file, offset.min(text.len()), 1);
    // `at most` names a limit of the parser, such as 64 nested levels. Terraform does not have this limit.
    if message.contains("at most ") {
        return Draft::warning(place, format!("the rest of the file is not checked: {message}"));
    }
    if message.contains("redefined object key") {
        let draft = Draft::warning(place, "a key of an object is given twice; the last one counts");
        return draft.help("remove one of them; the rest of the file is not checked");
    }
    if message.contains("redefined attribute") {
        return Draft::error(place, "not Terraform: an attribute is given twice").help("remove one of them");
    }
    match brackets::unclosed(text) {
        Some((at, '<')) => {
            let draft = Draft::error(Reader::place(file, at, 2), "not Terraform: the heredoc is never closed");
            return draft.help("end it with its closing word on a line of its own");
        }
        Some((at, open)) => {
            let help = format!("close it with `{}`", brackets::closing(open));
            let message = format!("not Terraform: `{open}` is never closed");
            return Draft::error(Reader::place(file, at, 1), message).help(help);
        }
        None => {}
    }
    let found = text.get(offset..).and_then(|rest| rest.chars().next());
    let found = match found.filter(|_| offset + 1 < text.len()) {
        Some('\n' | '\r') => "the line ends here".to_owned(),
        Some(c) => format!("`{c}` does not belong here"),
        None => "the file ends here; is a block or a list still open?".to_owned(),
    };
    let expected = message.split("; ").find_map(|part| part.strip_prefix("expected ")).unwrap_or_default().to_owned();
    let draft = Draft::error(place, format!("not Terraform: {found}"));
    if expected.is_empty() { draft } else { draft.expected(expected) }
}

/// Adds the declarations of a file's blocks to `module`.
fn declare(body: &Body, file: usize, start: usize, module: &mut Module) {
    let at = |span: Option<Range<usize>>| {
        let span = span.unwrap_or(0..0);
        Place { file, span: span.start + start..span.end + start }
    };
    for (name, span) in variable_reads::read(body) {
        module.reads.entry(name).or_insert_with(|| at(span));
    }
    for block in body.blocks() {
        module.provider = module.provider.take().or_else(|| needs_provider(block).map(at));
        let place = at(block.labels.first().and_then(Span::span).or_else(|| block.ident.span()));
        match block.ident.as_str() {
            "variable" => {
                let Some(name) = label(block, 0) else { continue };
                let needs = !block.body.has_attribute("default");
                let known = module.variables.entry(name).or_insert_with(|| (needs, place));
                known.0 &= needs;
            }
            "output" => {
                let Some(name) = label(block, 0) else { continue };
                let sensitive = block.body.get_attribute("sensitive").and_then(|one| one.value.as_bool());
                module.outputs.names.insert(name, sensitive.unwrap_or(false));
            }
            "module" => {
                let source = block.body.get_attribute("source");
                let local = source.and_then(|source| Some((source.value.as_str()?, at(source.value.span()))));
                let local = local.filter(|(text, _)| text.starts_with("./") || text.starts_with("../"));
                module.calls.extend(local.map(|(text, place)| (text.to_owned(), place)));
            }
            // A resource with one of these arguments may never be created, or may be created under another role, so its
            // type is left out.
            "resource" if !["count", "for_each", "provider"].iter().any(|key| block.body.has_attribute(key)) => {
                module.types.extend(label(block, 0).map(|kind| (kind, place)));
            }
            _ => {}
        }
    }
}

/// Returns the place in a block that needs a provider which is not part of Terraform. The outer `None` means that the
/// block needs none; the inner `None` means that the place is not known.
fn needs_provider(block: &Block) -> Option<Option<Range<usize>>> {
    match block.ident.as_str() {
        "resource" | "data" | "ephemeral" => {
            let kind = block.labels.first()?;
            (!kind.as_str().starts_with(BUILT_IN)).then(|| kind.span())
        }
        "terraform" => {
            let required = block.body.get_blocks("required_providers").next()?;
            let mut names = required.body.attributes().filter(|one| one.key.as_str() != "terraform");
            names.next().map(|one| one.key.span())
        }
        _ => None,
    }
}

fn label(block: &Block, at: usize) -> Option<String> {
    block.labels.get(at).map(|label| label.as_str().to_owned())
}

/// Compares the variables of the module with the values in the config.
fn variables(reader: &mut Reader<'_>, checked: &Checked, held: &Held, module: &Module) {
    if !module.outputs.whole {
        return;
    }
    let vars = checked.root.get("vars");
    let given = vars.map(crate::read::document::Node::entries).unwrap_or_default();
    for entry in given.iter().filter(|entry| !module.variables.contains_key(&entry.key)) {
        let message = format!("the module in `{}` has no variable `{}`; the value has no effect", held.path, entry.key);
        let draft = Draft::warning(checked.key_place(entry), message);
        let known = module.variables.keys().map(String::as_str);
        reader.say(match nearest(&entry.key, known) {
            near @ Some(_) => draft.meant(near),
            None => draft.help(format!("declare it: `variable \"{}\" {{}}`, or remove the value", entry.key)),
        });
    }
    // Values in a values file are not known here: the file is a template, or Terraform reads it itself.
    let values_file = |name: &&String| {
        let ends = [".auto.tfvars", ".auto.tfvars.json"].iter().any(|end| name.ends_with(end));
        !name.contains('/') && (ends || ["terraform.tfvars", "terraform.tfvars.json"].contains(&name.as_str()))
    };
    if !checked.root.tables("var_file").is_empty() || held.paths.iter().any(|name| values_file(&name)) {
        return;
    }
    let environment = checked.root.get("env_vars");
    if environment.is_some_and(|env| env.entries().iter().any(|entry| entry.key.starts_with("TF_CLI_ARGS"))) {
        return;
    }
    let from_environment = |name: &str| environment.and_then(|env| env.get(&format!("TF_VAR_{name}")));
    for (name, (needs, declared)) in &module.variables {
        if !needs || given.iter().any(|entry| entry.key == *name) || from_environment(name).is_some() {
            continue;
        }
        let place = checked.root.entry("vars").map_or_else(|| held.place.clone(), |entry| checked.key_place(entry));
        let message =
            format!("the module in `{}` needs variable `{name}`, but the config has no value for it", held.path);
        let draft = Draft::error(place, message).related(declared.clone(), "declared here without a default");
        reader.say(draft.help(format!("add `{name} = \"...\"` to `[vars]`, or give the variable a default")));
    }
}
