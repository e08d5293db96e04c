//! The resource `note_role`: a role of IAM with one inline policy. The SDK finds IAM and the credentials in the
//! environment, as Terraform's provider for AWS does.

use aws_sdk_iam::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_iam::types::Tag;
use percent_encoding::percent_decode_str;

use crate::msgpack::{Object, Text, decode, encode};
use crate::protobuf::{field, fields};
use crate::{COMPUTED, Error, REQUIRED, attribute};

pub(crate) const TYPE: &str = "note_role";
const POLICY: &str = "note";
/// The attributes that only IAM knows.
const OF_IAM: [&str; 3] = ["arn", "path", "boundary"];

pub(crate) fn schema() -> Vec<u8> {
    let given = ["name", "trust", "permissions"].map(|name| attribute(name, REQUIRED));
    let found = OF_IAM.map(|name| attribute(name, COMPUTED));
    crate::schema(&[given, found].concat())
}

/// Returns the reply to a call about a resource `note_role`, or `None` for other calls.
pub(crate) async fn reply(path: &str, request: &[u8]) -> Option<Vec<u8>> {
    let request = fields(request);
    let object = |number: u64| decode(fields(request.get(&number)?).get(&1)?);
    if request.get(&1)? != TYPE.as_bytes() {
        return None;
    }
    let (changed, diagnostics) = match path.strip_prefix("/tfplugin6.Provider/")? {
        "PlanResourceChange" => return Some(plan(object(2), object(3))),
        "ReadResource" => (read(object(2)).await, 2),
        "ApplyResourceChange" => (apply(object(2), object(3)).await, 3),
        _ => return None,
    };
    let failed = |error: Error| {
        let text = format!("{}", DisplayErrorContext(error.as_ref()));
        // The fields of a diagnostic: the severity, where 1 means an error, then the summary, then the details.
        let diagnostic = [vec![1 << 3, 1], field(2, b"IAM refused"), field(3, text.as_bytes())].concat();
        field(diagnostics, &diagnostic)
    };
    Some(changed.map_or_else(failed, |object| state(object.as_ref())))
}

fn state(object: Option<&Object>) -> Vec<u8> {
    field(1, &field(1, &encode(object)))
}

fn plan(prior: Option<Object>, proposed: Option<Object>) -> Vec<u8> {
    let Some(mut planned) = proposed else { return state(None) };
    for name in OF_IAM {
        let known = prior.as_ref().and_then(|prior| prior.get(name)).cloned();
        planned.insert(name.to_owned(), known.unwrap_or(Text::Unknown));
    }
    let renamed = prior.is_some_and(|prior| prior.get("name") != planned.get("name"));
    // The path of an attribute is a list of steps. This path has one step.
    let replace = if renamed { field(2, &field(1, &field(1, b"name"))) } else { Vec::new() };
    [state(Some(&planned)), replace].concat()
}

async fn apply(prior: Option<Object>, planned: Option<Object>) -> Result<Option<Object>, Error> {
    let iam = aws_sdk_iam::Client::new(&freehold_runner::aws::default_config().await);
    let Some(planned) = planned else {
        let name = attribute_of(prior.as_ref(), "name")?;
        iam.delete_role_policy().role_name(name).policy_name(POLICY).send().await?;
        iam.delete_role().role_name(name).send().await?;
        return Ok(None);
    };
    let given = |name| attribute_of(Some(&planned), name);
    let (name, trust) = (given("name")?, given("trust")?);
    if prior.is_none() {
        let tag = Tag::builder().key("by").value("module").build()?;
        iam.create_role().role_name(name).assume_role_policy_document(trust).tags(tag).send().await?;
    } else {
        iam.update_assume_role_policy().role_name(name).policy_document(trust).send().await?;
    }
    let put = iam.put_role_policy().role_name(name).policy_name(POLICY);
    put.policy_document(given("permissions")?).send().await?;
    find(&iam, &planned).await
}

async fn read(current: Option<Object>) -> Result<Option<Object>, Error> {
    let Some(current) = current else { return Ok(None) };
    find(&aws_sdk_iam::Client::new(&freehold_runner::aws::default_config().await), &current).await
}

/// Returns the role's attributes in IAM. Keeps the policy text in `known` if it is the same JSON as the policy in IAM.
async fn find(iam: &aws_sdk_iam::Client, known: &Object) -> Result<Option<Object>, Error> {
    let name = attribute_of(Some(known), "name")?;
    let role = match iam.get_role().role_name(name).send().await {
        Ok(found) => found.role.ok_or("IAM returned no role")?,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let policy = match iam.get_role_policy().role_name(name).policy_name(POLICY).send().await {
        Ok(found) => found.policy_document,
        Err(error) if is_absent(&error) => String::new(),
        Err(error) => return Err(error.into()),
    };
    let boundary = role.permissions_boundary.and_then(|boundary| boundary.permissions_boundary_arn);
    let mut found = known.clone();
    let trust = role.assume_role_policy_document.unwrap_or_default();
    for (name, document) in [("trust", trust), ("permissions", policy)] {
        let document = percent_decode_str(&document).decode_utf8()?.into_owned();
        let same = json(&document).is_some() && json(&document) == json(attribute_of(Some(known), name)?);
        if !same {
            found.insert(name.to_owned(), Text::Known(document));
        }
    }
    for (name, value) in OF_IAM.into_iter().zip([role.arn, role.path, boundary.unwrap_or_default()]) {
        found.insert(name.to_owned(), Text::Known(value));
    }
    Ok(Some(found))
}

fn attribute_of<'a>(object: Option<&'a Object>, name: &str) -> Result<&'a str, Error> {
    let text = object.and_then(|object| object.get(name)).and_then(Text::known);
    text.ok_or_else(|| format!("attribute `{name}` has no value").into())
}

fn json(document: &str) -> Option<serde_json::Value> {
    serde_json::from_str(document).ok()
}

fn is_absent<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> bool {
    error.code() == Some("NoSuchEntity")
}
