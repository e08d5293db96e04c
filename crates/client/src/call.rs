//! A call of the API as a value: its operation, the values of its path, its body and its idempotency key.

use std::fmt;
use std::marker::PhantomData;

use freehold_protocol::InstallId;
use freehold_protocol::api::{IDEMPOTENCY_KEY_SHAPE, LineagePage};
use serde::Serialize;

use crate::error::Error;

/// One operation of the API: its method, its path, and the types of its bodies.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The operation's name, such as `DeployComponents`.
    pub operation: &'static str,
    pub method: &'static str,
    /// The path, with a placeholder for each parameter, such as `/v1/apps/{app}`.
    pub path: &'static str,
    /// The names of the placeholders, in the order of the path.
    pub parameters: &'static [&'static str],
    /// The name of the request's type; `None` for a request without a body.
    pub request: Option<fn() -> &'static str>,
    /// The name of the answer's type.
    pub answer: fn() -> &'static str,
}

/// A call of the API whose answer is a `T`. [`Client::send`](crate::Client::send) sends it, as often as wanted.
pub struct Call<T> {
    method: &'static str,
    /// The parts of the path.
    path: Vec<String>,
    query: Vec<(&'static str, String)>,
    /// The body of a POST request as JSON, or the reason why it cannot be written.
    body: Option<Result<Vec<u8>, String>>,
    key: Option<String>,
    answer: PhantomData<fn() -> T>,
}

/// The idempotency key and the body of a POST request.
#[derive(Debug)]
pub(crate) struct Post<'a> {
    pub(crate) key: String,
    pub(crate) body: &'a [u8],
}

impl<T> Call<T> {
    /// Returns the call of an operation. `parameters` are the values of the placeholders of `path`, in their order.
    pub(crate) fn new(method: &'static str, path: &'static str, parameters: &[String]) -> Self {
        let mut parameters = parameters.iter();
        let parts = path.split('/').skip(1).map(|part| {
            let value = if part.starts_with('{') { parameters.next() } else { None };
            value.map_or_else(|| part.to_owned(), Clone::clone)
        });
        Self {
            method,
            path: parts.collect(),
            query: Vec::new(),
            body: (method == "POST").then(|| Ok(b"{}".to_vec())),
            key: None,
            answer: PhantomData,
        }
    }

    /// Returns this call with a body. The body is written once, so that all tries have the same bytes.
    pub(crate) fn with_body<B: Serialize>(self, body: &B) -> Self {
        Self { body: Some(serde_json::to_vec(body).map_err(|error| error.to_string())), ..self }
    }

    /// Returns this call with an idempotency key of 1 to 128 visible ASCII characters: for a day, the same call with
    /// the same key gets the first answer. Without it, each [`send`](crate::Client::send) has a random key of its own.
    /// A call that only reads needs none.
    pub fn with_key(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// Returns this call with one more parameter of its query, or with another value of it.
    fn with_query(mut self, name: &'static str, value: String) -> Self {
        self.query.retain(|(other, _)| *other != name);
        self.query.push((name, value));
        self
    }

    /// Returns this call for the page of a list that begins after `place`; an empty place is that of the first page.
    pub(crate) fn starting_at(self, place: String) -> Self {
        self.with_query("after", place)
    }

    /// Returns the place after which the page of this call begins; `None` for the first page.
    pub(crate) fn place(&self) -> Option<&str> {
        self.query.iter().find(|(name, _)| *name == "after").map(|(_, value)| value.as_str())
    }

    /// Returns whether the call changes something.
    pub const fn is_post(&self) -> bool {
        self.body.is_some()
    }

    pub(crate) const fn method(&self) -> &'static str {
        self.method
    }

    pub(crate) fn path(&self) -> &[String] {
        &self.path
    }

    pub(crate) fn query(&self) -> &[(&'static str, String)] {
        &self.query
    }

    /// Returns the idempotency key and the body of a POST request; `None` for another request.
    ///
    /// # Errors
    /// Unwritable, Key or Random.
    pub(crate) fn post(&self) -> Result<Option<Post<'_>>, Error> {
        let Some(body) = &self.body else { return Ok(None) };
        let body = body.as_ref().map_err(|reason| Error::Unwritable(reason.clone()))?;
        let key = match &self.key {
            Some(key) if IDEMPOTENCY_KEY_SHAPE.accepts(key) => key.clone(),
            Some(key) => return Err(Error::Key(key.clone())),
            None => random_key()?,
        };
        Ok(Some(Post { key, body }))
    }
}

impl Call<LineagePage> {
    /// Returns this call about the uses in one install.
    pub fn in_install(self, install: &InstallId) -> Self {
        self.with_query("install", install.to_string())
    }
}

/// The body is left out, because it may contain the values of inputs.
impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Call({} /{})", self.method, self.path.join("/"))
    }
}

fn random_key() -> Result<String, Error> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::Random(error.to_string()))?;
    Ok(freehold_protocol::digest::hex(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post() -> Call<()> {
        Call::new("POST", "/v1/apps/{app}/channels/{channel}", &["web".to_owned(), "stable".to_owned()])
    }

    #[test]
    fn placeholders_get_their_values_in_the_order_of_the_path() {
        assert_eq!(post().path(), ["v1", "apps", "web", "channels", "stable"]);
        assert_eq!(format!("{:?}", post()), "Call(POST /v1/apps/web/channels/stable)");
    }

    #[test]
    fn a_key_is_random_for_each_send_or_has_the_form_that_the_api_takes() {
        let key = |call: &Call<()>| call.post().map(|post| post.unwrap().key);

        assert_ne!(key(&post()).unwrap(), key(&post()).unwrap());
        assert_eq!(key(&post().with_key("release-812")).unwrap(), "release-812");
        let long = "k".repeat(129);
        for wrong in ["", "a\nb", "a b", long.as_str()] {
            assert!(matches!(key(&post().with_key(wrong)), Err(Error::Key(_))), "{wrong}");
        }
    }

    #[test]
    fn only_a_post_has_a_body() {
        let get = Call::<()>::new("GET", "/v1/apps", &[]);

        assert!(get.post().unwrap().is_none() && !get.is_post());
        assert_eq!(post().post().unwrap().unwrap().body, b"{}");
        assert_eq!(post().with_body(&[1, 2]).post().unwrap().unwrap().body, b"[1,2]");
    }

    #[test]
    fn another_place_replaces_the_one_before() {
        let call = Call::<()>::new("GET", "/v1/apps", &[]).starting_at("a".to_owned()).starting_at("b".to_owned());

        assert_eq!((call.query(), call.place()), (&[("after", "b".to_owned())][..], Some("b")));
    }
}
