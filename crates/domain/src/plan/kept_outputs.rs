//! Chooses the sensitive outputs that an order names.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::ComponentName;
use freehold_protocol::app_version::{AppVersion, Reference};
use freehold_protocol::order::{KeptOutputs, Work};

use super::input::Deployed;
use crate::sensitive_outputs::SensitiveOutputs;

/// Returns the sensitive outputs that an order for `work` names: those of the parts that its templates refer to, and those
/// of its own part.
pub fn kept_outputs(
    version: &AppVersion,
    work: &Work,
    deployed: &BTreeMap<ComponentName, Deployed>,
) -> Vec<KeptOutputs> {
    let references = if let Work::Action(action) = work {
        version.action(&action.action).map(|action| action.references.clone())
    } else {
        work.component().and_then(|name| version.part(name)).map(|part| part.references.clone())
    };
    let read = references.unwrap_or_default().into_iter().filter_map(|reference| match reference {
        Reference::Component(name) => Some(name),
        Reference::Sandbox(_) => version.sandbox.as_ref().map(|_| ComponentName::sandbox()),
        Reference::Input(_)
        | Reference::Action(_)
        | Reference::Secret(_)
        | Reference::InstallStack(_)
        | Reference::Licence => None,
    });
    let named: BTreeSet<ComponentName> = read.chain(work.component().cloned()).collect();
    named.into_iter().filter_map(|part| kept(version, deployed.get(&part)?)).collect()
}

fn kept(version: &AppVersion, deployed: &Deployed) -> Option<KeptOutputs> {
    let SensitiveOutputs { fence, digests } = deployed.sensitive.clone()?;
    let sandbox = version.sandbox.is_some() && deployed.component.is_sandbox();
    let component = version.component(&deployed.component).filter(|_| !sandbox);
    Some(KeptOutputs {
        part: deployed.component.clone(),
        sandbox,
        var_name: component.map(|component| component.var_name.clone()).unwrap_or_default(),
        serial: deployed.serial,
        job: deployed.job.clone(),
        fence,
        digests,
    })
}

#[cfg(test)]
mod tests {
    use freehold_protocol::report::Fence;
    use freehold_protocol::{Digest, JobId, Timestamp, WorkflowId};
    use serde_json::{Value, json};

    use super::*;

    fn version(sandbox: bool) -> AppVersion {
        let component = |name: &str, reads: Value| {
            json!({ "name": name, "var_name": format!("{name}_x"), "deploy_timeout_secs": 600,
                "source": { "from": "version" }, "references": reads,
                "spec": { "kind": "terraform_module", "terraform_version": "" } })
        };
        let mut version = serde_json::to_value(AppVersion::empty("demo".parse().unwrap())).unwrap();
        let reads = json!([{ "to": "component", "name": "db" }, { "to": "sandbox", "name": "token" }]);
        version["components"] = json!([component("db", json!([])), component("api", reads)]);
        let whole = json!([{ "to": "component", "name": "db" }, { "to": "sandbox", "name": "" }]);
        version["actions"] = json!([{ "name": "say", "timeout_secs": 60, "steps": [], "references": whole }]);
        if sandbox {
            version["sandbox"] = json!({ "source": { "from": "version" },
                "tool": { "tool": "terraform", "version": "" } });
        }
        serde_json::from_value(version).unwrap()
    }

    fn deployed(part: &str, digests: &[&str]) -> (ComponentName, Deployed) {
        let component: ComponentName = part.parse().unwrap();
        let digests = digests.iter().map(|name| ((*name).to_owned(), Digest::of(name.as_bytes()))).collect();
        let deployed = Deployed {
            component: component.clone(),
            fingerprint: Digest::of(b"f"),
            artifact: Digest::of(b"a"),
            version: Digest::of(b"v"),
            job: JobId::derive(&WorkflowId::derive("x", "1"), part),
            at: Timestamp::default(),
            serial: 4,
            outputs: BTreeMap::new(),
            sensitive: SensitiveOutputs::of(Fence { dispatch: 1, receive: 2 }, &digests),
            sandbox: None,
            partial: false,
            partial_by: None,
            attempted: false,
            skipped: None,
            drift: None,
        };
        (component, deployed)
    }

    fn work(json: Value) -> Work {
        serde_json::from_value(json).unwrap()
    }

    fn module(component: &str) -> Work {
        let artifact = json!({ "media_type": "", "digest": Digest::of(b"a"), "manifests": [], "blobs": [] });
        work(
            json!({ "kind": "terraform_module", "component": component, "artifact": artifact, "terraform_version": "" }),
        )
    }

    fn parts(kept: &[KeptOutputs]) -> Vec<(&str, bool, &str)> {
        kept.iter().map(|one| (one.part.as_str(), one.sandbox, one.var_name.as_str())).collect()
    }

    #[test]
    fn an_order_names_what_its_templates_read_and_its_own() {
        let all = BTreeMap::from([
            deployed("db", &["password"]),
            deployed("api", &["own"]),
            deployed("sandbox", &["token"]),
            deployed("other", &["hidden"]),
        ]);
        let action = work(json!({ "kind": "action", "action": "say", "steps": [] }));

        let of_api = kept_outputs(&version(true), &module("api"), &all);
        let of_action = kept_outputs(&version(true), &action, &all);
        let of_db = kept_outputs(&version(true), &module("db"), &all);

        let read = [("db", false, "db_x"), ("sandbox", true, "")];
        assert_eq!(parts(&of_api), [("api", false, "api_x"), read[0], read[1]]);
        assert_eq!(parts(&of_action), read);
        assert_eq!(parts(&of_db), [read[0]]);
        assert_eq!((of_db[0].serial, of_db[0].fence.receive), (4, 2));
    }

    #[test]
    fn a_part_without_sensitive_outputs_and_a_missing_sandbox_are_not_named() {
        let all = BTreeMap::from([deployed("db", &[]), deployed("sandbox", &["token"])]);

        assert_eq!(kept_outputs(&version(false), &module("api"), &all), []);
    }
}
