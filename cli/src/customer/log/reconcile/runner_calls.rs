//! The changes that a runner makes under its own role, and the resources that they name.

use freehold_protocol::{Arn, InstallId, TenantName, names};

use super::call::Call;

/// The calls that a runner makes under its own role, by service. CloudTrail's event history does not contain the calls
/// about messages and objects; the log of a trail may contain them.
const CALLS: [(&str, &[&str]); 5] = [
    ("autoscaling", &["CompleteLifecycleAction"]),
    (
        "ecr",
        &[
            "BatchCheckLayerAvailability",
            "BatchGetImage",
            "CompleteLayerUpload",
            "InitiateLayerUpload",
            "PutImage",
            "UploadLayerPart",
        ],
    ),
    ("kms", &["Decrypt", "GenerateDataKey"]),
    ("s3", &["DeleteObject", "PutObject", "PutObjectRetention"]),
    (
        "sqs",
        &[
            "ChangeMessageVisibility",
            "ChangeMessageVisibilityBatch",
            "DeleteMessage",
            "DeleteMessageBatch",
            "ReceiveMessage",
            "SendMessage",
            "SendMessageBatch",
        ],
    ),
];

/// The names of the resources that the runner of an install changes.
pub(super) struct RunnersOwn {
    tenant: TenantName,
    orders: String,
    registry: String,
    /// The beginning of the name of the install's bucket, which ends with the account.
    bucket: String,
    group: String,
    /// The account of the queues. If it is not known, their names alone are compared.
    queues: Option<String>,
}

impl RunnersOwn {
    pub(super) fn of(tenant: &TenantName, install: &InstallId, queues: Option<&str>) -> Self {
        Self {
            tenant: tenant.clone(),
            orders: names::orders_queue(tenant, install),
            registry: names::install_registry(tenant, install),
            bucket: names::install_part(tenant, install, ""),
            group: names::install_part(tenant, install, "runner"),
            queues: queues.map(str::to_owned),
        }
    }

    /// Returns what a call under the runner's role did that a runner never does. Returns `None` for a read, for a call
    /// that AWS refused, and for a change that a runner makes. A call without a resource is not compared with
    /// resources.
    pub(super) fn foreign(&self, call: &Call) -> Option<String> {
        let (service, name) = (call.service.as_str(), call.name.as_str());
        if call.error.is_some() {
            return None;
        }
        // For CloudTrail, the start of a session is a read. The sessions of jobs are compared with the records.
        if (service, name) == ("sts", "AssumeRole") {
            let role = call.resource.as_deref().unwrap_or("unknown");
            return Some(format!("assumed role `{role}`, which no job of this install has"));
        }
        if !call.changes {
            return None;
        }
        let is_known = CALLS.iter().any(|(of, names)| *of == service && names.contains(&name));
        if !is_known {
            return Some(format!("called `{service}:{name}`, which a runner never does"));
        }
        let other = call.resource.as_deref().filter(|resource| !self.has(service, resource, &call.caller))?;
        Some(format!("called `{service}:{name}` on `{other}`, which does not belong to this install"))
    }

    /// Returns whether a resource is one that the runner changes. Keys have no names in events, so a key of the account
    /// of `caller` counts as the install's.
    fn has(&self, service: &str, resource: &str, caller: &str) -> bool {
        match service {
            "autoscaling" => resource == self.group,
            "ecr" => resource == self.registry,
            "s3" => resource.strip_prefix(&self.bucket).is_some_and(|rest| account_of(caller) == Some(rest)),
            "sqs" => {
                let queue = names::queue_of(resource);
                let is_there = self.queues.is_none() || self.queues.as_deref() == names::account_of_queue(resource);
                is_there && (queue == self.orders || names::is_reports_queue(&self.tenant, queue))
            }
            _ => account_of(resource) == account_of(caller),
        }
    }
}

fn account_of(arn: &str) -> Option<&str> {
    Arn::parse(arn).map(|arn| arn.account)
}
