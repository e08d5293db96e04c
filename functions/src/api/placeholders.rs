//! The placeholders of paths, one line each. The type of a placeholder parses the value in a request, and the OpenAPI
//! document publishes its schema and what it names.

use freehold_app::AppError;
use freehold_protocol::{
    ActionName, AppName, ChannelName, CheckName, ComponentName, Digest, InstallId, JobId, MemberName, ReleaseName,
    RunId, RunbookName, WebhookName, WorkflowId,
};

use super::Call;

macro_rules! placeholders {
    ($($name:ident: $type:ty = $what:literal,)*) => {
        impl Call {$(
            /// Returns the value of the placeholder.
            ///
            /// # Errors
            /// Invalid when the value does not have the placeholder's type.
            pub fn $name(&self) -> Result<$type, AppError> {
                self.placeholder(stringify!($name))
            }
        )*

            /// Parses all placeholders of the path, also those that the operation does not use.
            ///
            /// # Errors
            /// Invalid for the first value that does not have its placeholder's type.
            pub(super) fn check_placeholders(&self) -> Result<(), AppError> {
                for (name, _) in &self.path {
                    match name.as_str() {
                        $(stringify!($name) => drop(self.$name()?),)*
                        _ => {}
                    }
                }
                Ok(())
            }
        }

        /// Returns the schema of the placeholder `name`, or `None` when there is no such placeholder.
        #[cfg(feature = "openapi")]
        pub(super) fn schema(name: &str, generator: &mut schemars::SchemaGenerator) -> Option<serde_json::Value> {
            match name {
                $(stringify!($name) => Some(generator.subschema_for::<$type>().to_value()),)*
                _ => None,
            }
        }

        /// Returns what the placeholder `name` names, or `None` when there is no such placeholder.
        #[cfg(feature = "openapi")]
        pub(super) fn description(name: &str) -> Option<&'static str> {
            match name {
                $(stringify!($name) => Some($what),)*
                _ => None,
            }
        }
    };
}

placeholders! {
    action: ActionName = "The name of an action of the app.",
    app: AppName = "The name of an app.",
    artifact: Digest = "The digest of an artifact.",
    channel: ChannelName = "The name of a channel of the app.",
    check: CheckName = "The name of a required check of the component.",
    component: ComponentName = "The name of a component of the app.",
    install: InstallId = "The name of an install.",
    job: JobId = "The id of a job.",
    member: MemberName = "The name of a member.",
    release: ReleaseName = "The name of a release of the app.",
    run: RunId = "The id of a run of a runbook.",
    runbook: RunbookName = "The name of a runbook of the app.",
    terms: Digest = "The digest of terms.",
    version: Digest = "The digest of a version of the app.",
    webhook: WebhookName = "The name of a webhook.",
    workflow: WorkflowId = "The id of a workflow.",
}

impl Call {
    fn placeholder<T: std::str::FromStr<Err: std::fmt::Display>>(&self, name: &str) -> Result<T, AppError> {
        let text = self.path.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        text.unwrap_or_default().parse().map_err(|e: T::Err| AppError::invalid(e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use freehold_protocol::api::ErrorKind;

    use super::*;

    fn call(name: &str, value: &str) -> Call {
        Call { path: vec![(name.to_owned(), value.to_owned())], ..Call::default() }
    }

    #[test]
    fn a_wrong_value_is_refused_whether_or_not_the_operation_reads_it() {
        for name in [
            "action",
            "app",
            "artifact",
            "channel",
            "check",
            "component",
            "install",
            "job",
            "member",
            "release",
            "terms",
            "version",
            "webhook",
            "workflow",
        ] {
            let refused = call(name, "null,null").check_placeholders().unwrap_err();

            assert_eq!(refused.kind, ErrorKind::Invalid, "{name}");
            assert!(refused.message.contains("`null,null`"), "{name}: {}", refused.message);
        }
        assert!(call("app", "web").check_placeholders().is_ok());
    }
}
