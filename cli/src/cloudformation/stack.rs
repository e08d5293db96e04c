//! One stack as CloudFormation describes it.

use std::collections::BTreeMap;

use aws_sdk_cloudformation::types::{Stack as Described, StackStatus};

use crate::error::{Error, Result};

/// A stack and its current state.
#[derive(Debug, Clone)]
pub(crate) struct Stack {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) status: StackStatus,
    pub(crate) reason: String,
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) outputs: BTreeMap<String, String>,
    /// The time of the creation or the last change, in CloudFormation's format.
    pub(crate) changed_at: String,
}

impl Stack {
    pub(super) fn of(stack: &Described) -> Self {
        let changed = stack.last_updated_time().or_else(|| stack.creation_time());
        let format = aws_smithy_types::date_time::Format::DateTime;
        Self {
            id: stack.stack_id().unwrap_or_default().to_owned(),
            name: stack.stack_name().unwrap_or_default().to_owned(),
            status: stack.stack_status().cloned().unwrap_or_else(|| StackStatus::from("UNKNOWN")),
            reason: stack.stack_status_reason().unwrap_or_default().to_owned(),
            parameters: stack
                .parameters()
                .iter()
                .filter_map(|p| Some((p.parameter_key()?.to_owned(), p.parameter_value()?.to_owned())))
                .collect(),
            outputs: stack
                .outputs()
                .iter()
                .filter_map(|o| Some((o.output_key()?.to_owned(), o.output_value()?.to_owned())))
                .collect(),
            changed_at: changed.and_then(|at| at.fmt(format).ok()).unwrap_or_default(),
        }
    }

    /// Returns the output called `key`.
    pub(crate) fn output(&self, key: &str) -> Result<&str> {
        self.outputs.get(key).map(String::as_str).ok_or_else(|| {
            Error::conflict(format!(
                "stack `{}` is {} and has no output `{key}`; deploy it again",
                self.name,
                self.status.as_str()
            ))
        })
    }

    /// Returns the values of the parameters, which a change of the stack keeps. Returns `None` if CloudFormation cannot
    /// change the stack, because the stack was never created or is deleted: a launch then creates another stack. Also
    /// returns `None` during the creation, which may fail.
    pub(crate) fn kept_parameters(&self) -> Option<&BTreeMap<String, String>> {
        let is_kept = !matches!(
            self.status,
            StackStatus::CreateInProgress
                | StackStatus::CreateFailed
                | StackStatus::RollbackInProgress
                | StackStatus::RollbackComplete
                | StackStatus::RollbackFailed
                | StackStatus::ReviewInProgress
                | StackStatus::DeleteInProgress
                | StackStatus::DeleteComplete
        );
        is_kept.then_some(&self.parameters)
    }

    /// Returns whether the creation of the stack is in progress.
    pub(crate) fn is_being_created(&self) -> bool {
        self.status == StackStatus::CreateInProgress
    }

    /// Returns whether an operation on the stack is in progress.
    pub(crate) fn is_busy(&self) -> bool {
        self.status.as_str().ends_with("_IN_PROGRESS") && self.status != StackStatus::ReviewInProgress
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_that_was_never_created_keeps_no_values() {
        let kept = |status: StackStatus| {
            let stack = Stack {
                id: "arn".to_owned(),
                name: "freehold-acme--globex".to_owned(),
                status,
                reason: String::new(),
                parameters: [("RunnerSha256".to_owned(), "00".to_owned())].into(),
                outputs: BTreeMap::new(),
                changed_at: String::new(),
            };
            stack.kept_parameters().map(BTreeMap::len)
        };

        assert_eq!(kept(StackStatus::UpdateComplete), Some(1));
        assert_eq!(kept(StackStatus::UpdateRollbackComplete), Some(1));
        for status in [
            StackStatus::CreateInProgress,
            StackStatus::RollbackComplete,
            StackStatus::CreateFailed,
            StackStatus::RollbackFailed,
        ] {
            assert_eq!(kept(status), None);
        }
    }
}
