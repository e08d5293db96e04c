//! The subject of an approval: the plan or the work that somebody approves before a job changes anything.

use super::Work;
use crate::approval::ChangeKind;

/// The subject of an approval of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalSubject {
    /// The plan that the runner makes. Only an approved plan is applied.
    Plan,
    /// The work as a whole, because it has no plan. It is shown as one change, at this address.
    Whole { address: String, change: ChangeKind },
    /// Nothing: the work changes nothing in the customer's account.
    Nothing,
}

impl Work {
    /// Returns what an approval of the work is about.
    pub fn approval_subject(&self) -> ApprovalSubject {
        let whole = |address: String, change| ApprovalSubject::Whole { address, change };
        match self {
            Self::TerraformModule(_)
            | Self::Sandbox(_)
            | Self::Pulumi(_)
            | Self::PulumiSandbox(_)
            | Self::CloudformationStack(_)
            | Self::HelmChart(_)
            | Self::KubernetesManifest(_)
            | Self::Remove(_) => ApprovalSubject::Plan,
            Self::Action(work) => whole(format!("action {}", work.action), ChangeKind::Run),
            Self::KubernetesJob(work) => whole(format!("program of {}", work.component), ChangeKind::Run),
            Self::CopySecrets(_) => whole("copies of secrets".to_owned(), ChangeKind::Run),
            Self::ContainerImage(work) => {
                whole(format!("image {} of {}", work.artifact.digest, work.component), ChangeKind::Create)
            }
            Self::Upgrade(work) => whole(format!("the runner, by version {}", work.version), ChangeKind::Run),
            Self::DetectDrift(_) | Self::Health(_) | Self::Build(_) | Self::Preflight(_) | Self::Leftovers(_) => {
                ApprovalSubject::Nothing
            }
        }
    }

    /// Returns whether the work has a plan that could be applied. A removal has a plan if the work that deployed the
    /// part has one.
    pub fn has_plan(&self) -> bool {
        !matches!(self, Self::DetectDrift(_)) && self.made_by().approval_subject() == ApprovalSubject::Plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::RemovePart;

    /// Golden orders, by the names of their work.
    const ORDERS: [(&str, &str); 14] = [
        ("action", include_str!("../../golden/order-action.json")),
        ("build", include_str!("../../golden/order-build.json")),
        ("cloudformation-stack", include_str!("../../golden/order-cloudformation-stack.json")),
        ("container-image", include_str!("../../golden/order-container-image.json")),
        ("copy-secrets", include_str!("../../golden/order-copy-secrets.json")),
        ("helm-chart", include_str!("../../golden/order-helm-chart.json")),
        ("job", include_str!("../../golden/order-job.json")),
        ("kubernetes-manifest", include_str!("../../golden/order-kubernetes-manifest.json")),
        ("leftovers", include_str!("../../golden/order-leftovers.json")),
        ("preflight", include_str!("../../golden/order-preflight.json")),
        ("pulumi", include_str!("../../golden/order-pulumi.json")),
        ("sandbox", include_str!("../../golden/order-sandbox.json")),
        ("terraform-module", include_str!("../../golden/order-terraform-module.json")),
        ("upgrade", include_str!("../../golden/order-upgrade.json")),
    ];

    fn work(name: &str) -> Work {
        let (_, order) = ORDERS.into_iter().find(|(known, _)| *known == name).unwrap();
        let order: serde_json::Value = serde_json::from_str(order).unwrap();
        serde_json::from_value(order["work"].clone()).unwrap()
    }

    fn removal(name: &str) -> Work {
        Work::Remove(RemovePart { what: Box::new(work(name)), destroy_data: false, removes_policies: false })
    }

    #[test]
    fn work_that_a_tool_plans_has_a_plan() {
        for name in
            ["terraform-module", "sandbox", "pulumi", "cloudformation-stack", "helm-chart", "kubernetes-manifest"]
        {
            assert!(work(name).has_plan(), "{name}");
        }
        for name in ["container-image", "job", "copy-secrets", "action", "build", "preflight", "leftovers", "upgrade"] {
            assert!(!work(name).has_plan(), "{name}");
        }
    }

    #[test]
    fn a_removal_has_a_plan_if_the_work_that_deployed_the_part_has_one() {
        assert!(removal("helm-chart").has_plan());
        assert!(!removal("container-image").has_plan());

        assert_eq!(removal("job").approval_subject(), ApprovalSubject::Plan, "the runner lists what it deletes");
    }

    #[test]
    fn work_without_a_plan_is_approved_as_a_whole_if_it_changes_anything() {
        for name in ["container-image", "job", "copy-secrets", "action", "upgrade"] {
            assert!(matches!(work(name).approval_subject(), ApprovalSubject::Whole { .. }), "{name}");
        }
        for name in ["build", "preflight", "leftovers"] {
            assert_eq!(work(name).approval_subject(), ApprovalSubject::Nothing, "{name}");
        }
    }
}
