//! Reads a directory and builds its app version, step by step.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::AppName;
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::{canonical, limits};

use crate::build::actions;
use crate::build::branch;
use crate::build::components;
use crate::build::file;
use crate::build::input_sources;
use crate::build::inputs;
use crate::build::installs;
use crate::build::metadata;
use crate::build::policies;
use crate::build::roles;
use crate::build::runbooks;
use crate::build::sandbox;
use crate::build::secrets;
use crate::build::sources::Sources;
use crate::build::stack;
use crate::check::absent_dependencies;
use crate::check::cycles;
use crate::check::ignored_files;
use crate::check::links;
use crate::check::missing_cluster;
use crate::check::missing_permissions::{self, DefinedRoles};
use crate::check::missing_programs;
use crate::check::operation_roles;
use crate::check::policy_answers;
use crate::check::pulumi_programs;
use crate::check::undeployable_parts;
use crate::check::unused_keys;
use crate::inspect;
use crate::kinds::{DIRECTORIES, Kind};
use crate::load_result::Loaded;
use crate::read::addresses::{Addresses, Fetched};
use crate::read::files::{Files, Place};
use crate::read::paths::reason;
use crate::read::tree::Tree;
use crate::report::diagnostics::Diagnostics;
use crate::report::draft::Draft;
use crate::state::app::{App, Purpose};

/// Reads the app in `tree`. The result may have a version even when there are errors; the caller must then not use the
/// version.
pub(crate) fn read(tree: Box<dyn Tree>, purpose: Purpose, fetched: &Fetched) -> (Option<Loaded>, Diagnostics) {
    let mut app = App {
        files: Files::new(tree),
        checked: Vec::new(),
        broken: Vec::new(),
        drafts: Vec::new(),
        unreadable: BTreeMap::new(),
        purpose,
        fetched: fetched.clone(),
        addresses: Addresses::default(),
        elsewhere: BTreeSet::new(),
    };
    let name = app_name(&mut app);
    read_files(&mut app);
    let built = version(&mut app, name);
    let found = app.drafts.into_iter().map(|draft| draft.finish(&app.files)).collect();
    let elsewhere = std::mem::take(&mut app.elsewhere);
    (built, Diagnostics::new(found, &app.files).with_elsewhere(elsewhere))
}

fn app_name(app: &mut App) -> Option<AppName> {
    match app.files.tree().name().parse() {
        Ok(name) => Some(name),
        Err(error) => {
            let file = app.files.add(".".to_owned(), String::new());
            let message = format!("the name of the directory is the name of the app, but {error}");
            let draft = Draft::error(Place { file, span: 0..0 }, message);
            app.drafts.push(draft.help("rename the directory"));
            None
        }
    }
}

fn read_files(app: &mut App) {
    let directories = DIRECTORIES.map(|(name, _)| name);
    let paths = match app.files.toml_files(&directories) {
        Ok(paths) => paths,
        Err(error) => {
            let file = app.files.add(".".to_owned(), String::new());
            let message = format!("the app's directory cannot be read: {}", reason(&error));
            app.drafts.push(Draft::error(Place { file, span: 0..0 }, message));
            return;
        }
    };
    for path in paths {
        file::read(app, &path, file::kind_of(&path));
    }
    input_sources::read(app);
    if app.of(Kind::Metadata).next().is_none() && !app.broken.contains(&Kind::Metadata) {
        let file = app.files.add("metadata.toml".to_owned(), String::new());
        let draft = Draft::error(Place { file, span: 0..0 }, "the app has no `metadata.toml`");
        app.drafts.push(draft.help("create it with `version = \"v2\"`, and a `display_name` and `description`"));
    }
}

fn version(app: &mut App, name: Option<AppName>) -> Option<Loaded> {
    let inputs = inputs::build(app);
    let index = links::index(app);
    let edges = links::check(app, &index);
    cycles::check(app, &edges);
    let mut sources = Sources::new(app.purpose.unsupported());
    let mut components = components::build(app, &index, &edges, &mut sources);
    let mut actions = actions::build(app, &index, &mut sources);
    let runbooks = runbooks::build(app, &index, &mut actions);
    let roles = roles::build(app);
    policy_answers::check(app, &inputs);
    let operation_roles = operation_roles::build(app, &index, &roles);
    let metadata = metadata::build(app, &index);
    let mut sandbox = sandbox::build(app, &index, &mut sources);
    let (secrets, stack, policies) = (secrets::build(app), stack::build(app), policies::build(app, &index));
    let runner = stack::runner(app, &components);
    let programs = stack::Programs { components: &mut components, actions: &mut actions, sandbox: sandbox.as_mut() };
    stack::add_environment(app, &index, programs);
    let installs = installs::build(app, &index, &inputs);
    let post_deploy_runbooks = branch::build(app, &runbooks, &actions);
    let (role_places, incomplete_roles, is_whole) = (roles.places, roles.incomplete, roles.is_whole);
    let version = AppVersion {
        display_name: metadata.display_name,
        description: metadata.description,
        readme: metadata.readme,
        default_labels: metadata.default_labels,
        kubernetes_contexts: metadata.kubernetes_contexts,
        input_groups: inputs::groups(app),
        inputs,
        secrets,
        sandbox,
        runner,
        stack,
        components,
        actions,
        runbooks,
        post_deploy_runbooks,
        roles: roles.modes,
        named_roles: roles.named,
        operation_roles,
        policies,
        ..AppVersion::empty(name?)
    };
    refuse_unwritable(app, &version);
    undeployable_parts::check(app, &version, &role_places);
    pulumi_programs::check(app, &version);
    unused_keys::check(app, &version);
    missing_programs::check(app, &version);
    absent_dependencies::check(app, &version);
    let declared = inspect::look(app, &sources.held);
    missing_cluster::check(app, &version, declared.sandbox_outputs.as_ref());
    missing_permissions::check(
        app,
        &version,
        DefinedRoles { places: &role_places, incomplete: &incomplete_roles, is_whole },
        &declared.made,
    );
    ignored_files::check(app, &sources.held);
    let (sources, unresolved) = sources.finish(app);
    let addresses = std::mem::take(&mut app.addresses.missing).into_iter().collect();
    let (warnings, refused) = (Diagnostics::default(), Diagnostics::default());
    Some(Loaded { version, installs, sources, unresolved, addresses, warnings, refused })
}

/// Reports an error if the version cannot be written in canonical form, or is too large.
fn refuse_unwritable(app: &mut App, version: &AppVersion) {
    let max = limits::MAX_APP_VERSION_BYTES;
    let (message, help) = match canonical::to_vec(version).map(|bytes| bytes.len()) {
        Ok(size) if size <= max => return,
        Ok(size) => (
            format!("the app version takes {size} bytes, more than {max}"),
            "move long scripts and values into the components' own sources",
        ),
        Err(error) => {
            (error.to_string(), "write the number as a string: in JSON, only 15 digits of a number are safe (RFC 8785)")
        }
    };
    let file = app.files.add(".".to_owned(), String::new());
    let draft = Draft::new(app.purpose.unsupported(), Place { file, span: 0..0 }, message);
    app.drafts.push(draft.help(help));
}
