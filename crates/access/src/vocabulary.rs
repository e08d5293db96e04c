//! The vocabulary of the policies: the schema and the names of its types, read once in a process.

use std::sync::LazyLock;

use cedar_policy::{Authorizer, EntityId, EntityTypeName, EntityUid, Schema, Validator};

use crate::who::Who;

/// The schema as text.
const SCHEMA: &str = include_str!("access.cedarschema");

static VOCABULARY: LazyLock<Result<Vocabulary, String>> = LazyLock::new(Vocabulary::read);

/// The parsed schema, and the types that it declares.
pub(crate) struct Vocabulary {
    pub(crate) validator: Validator,
    pub(crate) authorizer: Authorizer,
    pub(crate) action: EntityTypeName,
    pub(crate) group: EntityTypeName,
    pub(crate) tenant: EntityTypeName,
    pub(crate) app: EntityTypeName,
    pub(crate) install: EntityTypeName,
    iam: EntityTypeName,
    person: EntityTypeName,
    pipeline: EntityTypeName,
}

impl Vocabulary {
    /// Returns the vocabulary. It is an error only if the schema of this crate is wrong, which the tests exclude.
    pub(crate) fn get() -> Result<&'static Self, String> {
        VOCABULARY.as_ref().map_err(Clone::clone)
    }

    fn read() -> Result<Self, String> {
        let schema = SCHEMA.parse::<Schema>();
        let schema = schema.map_err(|error| format!("cannot read the schema of the policies: {error}"))?;
        Ok(Self {
            validator: Validator::new(schema),
            authorizer: Authorizer::new(),
            action: type_of("Action")?,
            group: type_of("Group")?,
            tenant: type_of("Tenant")?,
            app: type_of("App")?,
            install: type_of("Install")?,
            iam: type_of("Iam")?,
            person: type_of("Person")?,
            pipeline: type_of("Pipeline")?,
        })
    }

    pub(crate) fn schema(&self) -> &Schema {
        self.validator.schema()
    }

    /// Returns the type of a principal, and the name of its attribute with the ARN or the subject.
    pub(crate) const fn principal(&self, who: &Who) -> (&EntityTypeName, &'static str) {
        match who {
            Who::Iam { .. } => (&self.iam, "arn"),
            Who::Person { .. } => (&self.person, "subject"),
            Who::Pipeline { .. } => (&self.pipeline, "subject"),
        }
    }
}

fn type_of(name: &str) -> Result<EntityTypeName, String> {
    let of = format!("Freehold::{name}").parse::<EntityTypeName>();
    of.map_err(|error| format!("`{name}` is not the name of a type: {error}"))
}

/// Returns the entity of this type with this id. The id is a value: no character in it has a meaning.
pub(crate) fn uid(of: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(of.clone(), EntityId::new(id))
}
