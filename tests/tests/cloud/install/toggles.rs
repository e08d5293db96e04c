//! A component that the vendor switches off and on: the next deploy removes it and deploys it again, with the actions that the
//! format has for this, each once.

use std::path::{Path, PathBuf};

use freehold_tests::harness::{Capability, Needs, World, app};
use serde_json::{Value, json};

const NEEDS: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced],
    programs: &["bwrap", "terraform|tofu"],
};

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_is_switched_off_is_removed_and_deployed_again_once_it_is_on() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_toggles", NEEDS).await? else { return Ok(()) };
    world.ship(&app_with_toggle(world.directory())?).await?;
    let install = world.install("globex", "small").await?;
    let _runner = world.runner(&install).await?;
    let provisioned = world.provisioned(&install).await?;
    world.change_stack(&install, &["EnableDeprovision=true"]).await?;

    world.vendor(&["install", "toggles", "globex", "--off", "extra"]).await?;
    let off = world.vendor(&["deploy", "globex"]).await?;
    let without = components(&world).await?;
    let still_off = world.vendor(&["deploy", "globex"]).await?;
    world.vendor(&["install", "toggles", "globex", "--on", "extra"]).await?;
    let on = world.vendor(&["deploy", "globex"]).await?;
    let with = components(&world).await?;
    let still_on = world.vendor(&["deploy", "globex"]).await?;

    assert_eq!(names(&provisioned), ["base", "extra", "preflight:install"], "{provisioned}");
    assert_eq!(names(&off), ["action:farewell", "remove:extra"], "{off}");
    assert_eq!(names(&on), ["action:greet", "extra"], "{on}");
    assert_eq!((without, with), (json!(["base"]), json!(["base", "extra"])));
    assert_eq!((&still_off["nodes"], &still_on["nodes"]), (&json!([]), &json!([])), "{still_off} {still_on}");
    for workflow in [&off, &on] {
        let nodes = workflow["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
        assert!(nodes.iter().all(|node| node["state"] == "succeeded"), "{workflow}");
    }
    Ok(())
}

/// Writes an app of two modules. An install may leave `extra` out, and an action runs before that and after its return.
fn app_with_toggle(parent: &Path) -> anyhow::Result<PathBuf> {
    let directory = app::small(parent)?;
    let role =
        "type = \"deprovision\"\nname = \"{{ .nuon.install.id }}-deprovision\"\ndescription = \"does nothing\"\n";
    app::write(&directory, "permissions/deprovision.toml", role)?;
    for (name, more) in [("base", ""), ("extra", "toggleable = true\n")] {
        let component = format!(
            "name = \"{name}\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./{name}\"\n{more}"
        );
        app::write(&directory, &format!("components/{name}.toml"), &component)?;
        let module = format!("resource \"terraform_data\" \"this\" {{ input = \"{name}\" }}\n");
        app::write(&directory, &format!("{name}/main.tf"), &module)?;
    }
    for (name, event) in [("farewell", "pre-disable-component"), ("greet", "post-enable-component")] {
        let action = format!(
            "name = \"{name}\"\ntimeout = \"1m\"\n\n[[triggers]]\ntype = \"{event}\"\ncomponent_name = \"extra\"\n\n\
             [[steps]]\nname = \"say\"\ncommand = \"echo {name}\"\n"
        );
        app::write(&directory, &format!("actions/{name}.toml"), &action)?;
    }
    Ok(directory)
}

/// Returns the names of the nodes of a workflow, sorted.
fn names(workflow: &Value) -> Vec<&str> {
    let nodes = workflow["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut names: Vec<&str> = nodes.iter().filter_map(|node| node["name"].as_str()).collect();
    names.sort_unstable();
    names
}

/// Returns the names of the components that are deployed, sorted.
async fn components(world: &World) -> anyhow::Result<Value> {
    let view = world.vendor(&["install", "show", "globex"]).await?;
    let components = view["components"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut names: Vec<&str> = components.iter().filter_map(|one| one["component"].as_str()).collect();
    names.sort_unstable();
    Ok(json!(names))
}
