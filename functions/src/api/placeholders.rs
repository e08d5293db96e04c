//! The placeholders of paths, one line each: the type that a request's value is parsed as, which the OpenAPI document
//! publishes as the schema of the parameter.

use freehold_app::AppError;
use freehold_protocol::{ActionName, AppName, Digest, InstallId, JobId, ReleaseName, WorkflowId};

use super::Call;

macro_rules! placeholders {
    ($($name:ident: $type:ty,)*) => {
        impl Call {$(
            /// Returns the value of the placeholder.
            ///
            /// # Errors
            /// Invalid when the value is not of the placeholder's type.
            pub fn $name(&self) -> Result<$type, AppError> {
                self.placeholder(stringify!($name))
            }
        )*}

        /// Returns the schema of a placeholder, or nothing for an unknown one.
        #[cfg(feature = "openapi")]
        pub(super) fn schema(name: &str, generator: &mut schemars::SchemaGenerator) -> Option<serde_json::Value> {
            match name {
                $(stringify!($name) => Some(generator.subschema_for::<$type>().to_value()),)*
                _ => None,
            }
        }
    };
}

placeholders! {
    action: ActionName,
    app: AppName,
    artifact: Digest,
    install: InstallId,
    job: JobId,
    release: ReleaseName,
    terms: Digest,
    version: Digest,
    workflow: WorkflowId,
}

impl Call {
    fn placeholder<T: std::str::FromStr<Err: std::fmt::Display>>(&self, name: &str) -> Result<T, AppError> {
        let text = self.path.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        text.unwrap_or_default().parse().map_err(|e: T::Err| AppError::invalid(e.to_string()))
    }
}
