//! The whole way from a directory to an app version.

use freehold_protocol::AppName;
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::{canonical, limits};
use freehold_template::nearest;

use crate::Fetched;
use crate::Loaded;
use crate::build::actions;
use crate::build::branch;
use crate::build::components;
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
use crate::check::cycles;
use crate::check::links;
use crate::check::operation_roles;
use crate::check::validate::{Checked, validate};
use crate::kinds::{FOLDERS, Kind, ROOT};
use crate::read::addresses::Addresses;
use crate::read::document;
use crate::read::files::{Files, Place, reason};
use crate::read::shape;
use crate::read::tree::Tree;
use crate::report::diagnostic::{Diagnostics, Draft, Severity};

/// What a directory is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To make an app version of it: what cannot be deployed is an error.
    Sync,
    /// To say what is wrong with it.
    Check,
}

impl Purpose {
    /// Returns how bad something is that the format has and that cannot be done yet.
    pub(crate) const fn unsupported(self) -> Severity {
        match self {
            Self::Sync => Severity::Error,
            Self::Check => Severity::Warning,
        }
    }
}

/// A directory while it is read.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) files: Files,
    pub(crate) checked: Vec<Checked>,
    /// Kinds of the files that are not TOML.
    pub(crate) broken: Vec<Kind>,
    pub(crate) drafts: Vec<Draft>,
    pub(crate) purpose: Purpose,
    /// Texts behind addresses, fetched before.
    pub(crate) fetched: Fetched,
    pub(crate) addresses: Addresses,
}

impl App {
    /// Returns the files of `kind`.
    pub(crate) fn of(&self, kind: Kind) -> impl Iterator<Item = &Checked> {
        self.checked.iter().filter(move |checked| checked.kind == kind)
    }
}

/// Reads the app in `tree`; the result is there when a version could be made, which errors may still forbid to use.
pub(crate) fn read(tree: Tree, purpose: Purpose, fetched: &Fetched) -> (Option<Loaded>, Diagnostics) {
    let mut app = App {
        files: Files::new(tree),
        checked: Vec::new(),
        broken: Vec::new(),
        drafts: Vec::new(),
        purpose,
        fetched: fetched.clone(),
        addresses: Addresses::default(),
    };
    let name = app_name(&mut app);
    read_files(&mut app);
    let built = version(&mut app, name);
    let found = app.drafts.into_iter().map(|draft| draft.finish(&app.files)).collect();
    (built, Diagnostics::new(found, &app.files))
}

fn app_name(app: &mut App) -> Option<AppName> {
    match app.files.tree().name().parse() {
        Ok(name) => Some(name),
        Err(error) => {
            let file = app.files.add(".".to_owned(), String::new());
            let draft = Draft::error(Place { file, span: 0..0 }, format!("the directory names the app, but {error}"));
            app.drafts.push(draft.help("rename the directory"));
            None
        }
    }
}

fn read_files(app: &mut App) {
    let folders = FOLDERS.map(|(name, _)| name);
    let paths = match app.files.toml_files(&folders) {
        Ok(paths) => paths,
        Err(error) => {
            let file = app.files.add(".".to_owned(), String::new());
            let message = format!("the app's directory cannot be read: {}", reason(&error));
            app.drafts.push(Draft::error(Place { file, span: 0..0 }, message));
            return;
        }
    };
    for path in paths {
        read_file(app, &path, kind_of(&path));
    }
    input_sources::read(app);
    if app.of(Kind::Metadata).next().is_none() && !app.broken.contains(&Kind::Metadata) {
        let file = app.files.add("metadata.toml".to_owned(), String::new());
        let draft = Draft::error(Place { file, span: 0..0 }, "the app has no `metadata.toml`");
        app.drafts.push(draft.help("create it with `version = \"v2\"`, and a `display_name` and `description`"));
    }
}

/// Reads the file at `path`, relative to the app's directory, as one of `kind`.
pub(crate) fn read_file(app: &mut App, path: &str, kind: Option<Kind>) {
    let file = match app.files.read(path) {
        Ok(file) => file,
        Err(reason) => {
            let file = app.files.add(path.to_owned(), String::new());
            app.drafts.push(Draft::error(Place { file, span: 0..0 }, format!("the file cannot be read: {reason}")));
            return;
        }
    };
    let Some(kind) = kind else {
        let draft = Draft::warning(Place { file, span: 0..0 }, format!("`{path}` is no known file; it has no effect"));
        app.drafts.push(draft.meant(nearest(path, ROOT.iter().map(|(name, _)| *name))));
        return;
    };
    match document::parse(app.files.text(file)) {
        Ok(root) => {
            let (kind, root) = shape::of(kind, root);
            let checked = validate(app, file, kind, root);
            app.checked.push(checked);
        }
        Err(error) => {
            app.broken.push(kind);
            app.drafts.push(Draft::error(Place { file, span: error.span }, format!("not TOML: {}", error.message)));
        }
    }
}

fn kind_of(path: &str) -> Option<Kind> {
    let found = match path.split_once('/') {
        Some((folder, _)) => FOLDERS.iter().find(|(name, _)| *name == folder),
        None => ROOT.iter().find(|(name, _)| *name == path),
    };
    found.map(|(_, kind)| *kind)
}

fn version(app: &mut App, name: Option<AppName>) -> Option<Loaded> {
    let inputs = inputs::build(app);
    let index = links::index(app);
    let edges = links::check(app, &index);
    cycles::check(app, &edges);
    let mut sources = Sources::new(app.purpose.unsupported());
    let components = components::build(app, &index, &edges, &mut sources);
    let actions = actions::build(app, &index, &mut sources);
    let runbooks = runbooks::build(app, &index);
    let roles = roles::build(app);
    let operation_roles = operation_roles::build(app, &index, &roles);
    let metadata = metadata::build(app, &index);
    let sandbox = sandbox::build(app, &index, &mut sources);
    let (secrets, stack, policies) = (secrets::build(app), stack::build(app), policies::build(app, &index));
    installs::check(app, &index, &inputs);
    branch::check(app);
    let version = AppVersion {
        display_name: metadata.display_name,
        description: metadata.description,
        readme: metadata.readme,
        kubernetes_contexts: metadata.kubernetes_contexts,
        input_groups: inputs::groups(app),
        inputs,
        secrets,
        sandbox,
        runner: stack::runner(app),
        stack,
        components,
        actions,
        runbooks,
        roles: roles.modes,
        named_roles: roles.named,
        operation_roles,
        policies,
        ..AppVersion::empty(name?)
    };
    refuse_too_large(app, &version);
    let (sources, unresolved) = sources.finish(app);
    let addresses = std::mem::take(&mut app.addresses.missing).into_iter().collect();
    Some(Loaded { version, sources, unresolved, addresses, warnings: Diagnostics::default() })
}

fn refuse_too_large(app: &mut App, version: &AppVersion) {
    let size = canonical::to_vec(version).map_or(usize::MAX, |bytes| bytes.len());
    if size > limits::MAX_APP_VERSION_BYTES {
        let file = app.files.add(".".to_owned(), String::new());
        let message = format!("the app version takes {size} bytes, more than {}", limits::MAX_APP_VERSION_BYTES);
        let draft = Draft::new(app.purpose.unsupported(), Place { file, span: 0..0 }, message);
        app.drafts.push(draft.help("move long scripts and values into the components' own sources"));
    }
}
