//! The list of apps, and the page of one app: its versions, releases, channels and builds.

use freehold_pages::{Facts, Page, Table, badge, code, encoded, pagination, time};
use freehold_protocol::api::{AppView, BuildView, ChannelView, Page as List, ReleaseView, VersionView};
use maud::{Markup, html};

use super::view::{View, app_link, next_path};

/// The lists of an app, each with its first page.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) versions: List<VersionView>,
    pub(crate) releases: List<ReleaseView>,
    pub(crate) channels: Vec<ChannelView>,
    pub(crate) builds: List<BuildView>,
}

/// Returns the page with the list of apps.
pub(crate) fn list(view: &View<'_>, apps: &List<AppView>) -> String {
    let mut table = Table::new("Apps", ["App", "Version", "Number", "Updated"]);
    for app in &apps.items {
        table.row([app_link(&app.app), code(app.latest.short()), html! { (app.number) }, time(app.updated_at)]);
    }
    let content = html! {
        (table.render_or("There are no apps that you may see. `freehold app sync` makes one."))
        (pagination(next_path("/apps", apps.next.as_deref()).as_deref()))
    };
    view.document(Page::new("Apps", content).at(view.path))
}

/// Returns the page of an app.
pub(crate) fn show(view: &View<'_>, app: &AppView, parts: &Parts) -> String {
    let title = format!("App {}", app.app);
    let facts = Facts::new()
        .with("Latest version", code(&app.latest))
        .with("Number", app.number)
        .with("Updated", time(app.updated_at));
    let path = format!("/apps/{}", app.app);
    let content = html! {
        (facts.render())
        h2 { "Channels" }
        (channels(&parts.channels).render_or("The app has no channels."))
        h2 { "Releases" }
        (releases(&parts.releases.items).render_or("The app has no releases."))
        h2 { "Versions" }
        (versions(&path, &parts.versions.items).render_or("The app has no versions."))
        (pagination(next_path(&path, parts.versions.next.as_deref()).as_deref()))
        h2 { "Builds" }
        (builds(&parts.builds.items).render_or("Nothing was built."))
    };
    view.document(Page::new(&title, content).at(view.path).below("Apps", "/apps"))
}

fn channels(channels: &[ChannelView]) -> Table {
    let mut table = Table::new("Channels of the app", ["Channel", "Release", "Installs", "Moved", "By"]);
    for channel in channels {
        table.row([
            html! { (channel.channel.to_string()) },
            html! { (channel.release.to_string()) },
            html! { (channel.installs) },
            time(channel.moved_at),
            html! { (channel.moved_by.to_string()) },
        ]);
    }
    table
}

fn releases(releases: &[ReleaseView]) -> Table {
    let mut table = Table::new("Releases of the app", ["Release", "Version", "Created", "Components"]);
    for release in releases {
        table.row([
            html! { (release.name.to_string()) },
            code(release.contents.version.short()),
            time(release.created_at),
            html! { (release.contents.artifacts.len()) },
        ]);
    }
    table
}

fn versions(path: &str, versions: &[VersionView]) -> Table {
    let mut table = Table::new("Versions of the app", ["Version", "Number", "Created", "Components"]);
    for version in versions {
        table.row([
            version_link(path, version, versions),
            html! { (version.number) },
            time(version.created_at),
            html! { (version.components) },
        ]);
    }
    table
}

/// Returns the link to a version, compared with the one before it if that is in the list.
fn version_link(path: &str, version: &VersionView, versions: &[VersionView]) -> Markup {
    let before = versions.iter().find(|other| other.number.checked_add(1) == Some(version.number));
    let query = before.map(|before| format!("?before={}", encoded(before.version.as_str()))).unwrap_or_default();
    let href = format!("{path}/versions/{}{query}", encoded(version.version.as_str()));
    html! { a href=(href) { (version.version.short()) } }
}

fn builds(builds: &[BuildView]) -> Table {
    let mut table = Table::new("Builds of the app", ["Build", "Component", "State", "Artifact", "Reason"]);
    for build in builds {
        table.row([
            code(&build.build),
            html! { (build.component.to_string()) },
            badge(&build.state),
            html! { @if let Some(artifact) = &build.artifact { (code(artifact.short())) } },
            html! { (build.reason) " " (build.revoked.as_deref().unwrap_or_default()) },
        ]);
    }
    table
}
