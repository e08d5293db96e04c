//! The page of an app version: the sources of its components, and what differs from an earlier version.

use freehold_pages::{Facts, Page, Table, code, time};
use freehold_protocol::ComponentName;
use freehold_protocol::api::{ResolvedSource, VersionDocument};
use freehold_protocol::app_version::Component;
use maud::{Markup, html};

use super::view::View;

/// Returns the page of a version, compared with the version `before`.
pub(crate) fn show(view: &View<'_>, version: &VersionDocument, before: Option<&VersionDocument>) -> String {
    let shown = &version.view;
    let title = format!("Version {} of app {}", shown.number, shown.app);
    let facts = Facts::new()
        .with("Version", code(&shown.version))
        .with("Created", time(shown.created_at))
        .maybe("Compared with version", before.map(|before| before.view.number));
    let content = html! {
        (facts.render())
        (components(version, before))
        @if let Some(before) = before { (others(version, before)) }
    };
    let page = Page::new(&title, content).at(view.path).below("Apps", "/apps");
    view.document(page.below(shown.app.as_str(), format!("/apps/{}", shown.app)))
}

fn components(version: &VersionDocument, before: Option<&VersionDocument>) -> Markup {
    let mut table = Table::new("Components", ["Component", "Source", "Resolved", "Build", "Difference"]);
    for component in &version.document.components {
        let source = source_of(version, &component.name);
        table.row([
            html! { (component.name.to_string()) },
            html! { @if let Some(source) = source { (code(&source.asked)) } @else { "–" } },
            html! { @if let Some(resolved) = source.and_then(|source| source.resolved.as_ref()) { (code(resolved)) } },
            html! { @if let Some(build) = source.and_then(|source| source.build.as_ref()) { (code(build)) } },
            html! { @if let Some(before) = before { (difference(component, version, before)) } },
        ]);
    }
    table.render_or("The version has no components.")
}

fn difference(component: &Component, version: &VersionDocument, before: &VersionDocument) -> &'static str {
    let resolved = |of: &VersionDocument| source_of(of, &component.name).and_then(|source| source.resolved.clone());
    match component_of(before, &component.name) {
        None => "new",
        Some(other) if other != component => "other config",
        Some(_) if resolved(before) != resolved(version) => "same config, other source",
        Some(_) => "unchanged",
    }
}

/// Returns the parts of the app config that differ beside the components that the version has.
fn others(version: &VersionDocument, before: &VersionDocument) -> Markup {
    let (now, then) = (&version.document, &before.document);
    let parts = [
        ("inputs", now.inputs != then.inputs || now.input_groups != then.input_groups),
        ("secrets", now.secrets != then.secrets),
        ("sandbox", now.sandbox != then.sandbox),
        ("runner", now.runner != then.runner),
        ("install stack", now.stack != then.stack),
        ("actions", now.actions != then.actions),
        ("runbooks", now.runbooks != then.runbooks || now.post_deploy_runbooks != then.post_deploy_runbooks),
        ("roles", now.roles != then.roles || now.named_roles != then.named_roles),
        ("rules for roles", now.operation_roles != then.operation_roles),
        ("policies", now.policies != then.policies),
    ];
    let changed: Vec<&str> = parts.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect();
    let removed = then.components.iter().filter(|other| component_of(version, &other.name).is_none());
    let removed: Vec<&str> = removed.map(|component| component.name.as_str()).collect();
    let facts = Facts::new().with("Removed components", removed.join(", ")).with("Other changes", changed.join(", "));
    html! { h2 { "Other differences" } (facts.render()) }
}

fn component_of<'a>(version: &'a VersionDocument, name: &ComponentName) -> Option<&'a Component> {
    version.document.components.iter().find(|component| component.name == *name)
}

fn source_of<'a>(version: &'a VersionDocument, name: &ComponentName) -> Option<&'a ResolvedSource> {
    version.resolved.iter().find(|source| source.component == *name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Returns a version whose components have these names, images and digests.
    fn version(number: u64, components: &[(&str, &str, &str)]) -> VersionDocument {
        let config = |(name, image, _): &(&str, &str, &str)| {
            json!({ "name": name, "deploy_timeout_secs": 600, "source": { "from": "image", "reference": image },
                "spec": { "kind": "container_image" } })
        };
        let resolved = |(name, image, digest): &(&str, &str, &str)| -> Value {
            json!({ "component": name, "asked": image, "resolved": digest })
        };
        let document = json!({ "app": "demo", "format": 1,
            "components": components.iter().map(config).collect::<Vec<_>>() });
        let version = json!({ "app": "demo", "number": number, "created_at": 1, "components": components.len(),
            "version": format!("sha256:{}", "a".repeat(64)), "document": document,
            "resolved": components.iter().map(resolved).collect::<Vec<_>>() });
        serde_json::from_value(version).unwrap()
    }

    #[test]
    fn each_component_shows_what_differs() {
        let before = version(1, &[("api", "i:1", "d1"), ("db", "i:1", "d1"), ("gone", "i:1", "d1")]);
        let now = version(2, &[("api", "i:1", "d1"), ("db", "i:1", "d2"), ("web", "i:2", "d1")]);

        let differences: Vec<&str> =
            now.document.components.iter().map(|component| difference(component, &now, &before)).collect();
        let others = others(&now, &before).into_string();

        assert_eq!(differences, ["unchanged", "same config, other source", "new"]);
        assert!(others.contains("<dt>Removed components</dt><dd>gone</dd>"), "{others}");
        let again = version(3, &[("api", "i:3", "d1")]);
        let api = again.document.components.first().unwrap();
        assert_eq!(difference(api, &again, &before), "other config");
    }
}
