//! Reads a small object of a bucket into memory.

use aws_sdk_s3::Client;
use aws_sdk_s3::error::{ProvideErrorMetadata as _, SdkError};
use aws_sdk_s3::operation::get_object::GetObjectError;
use aws_sdk_s3::operation::list_objects_v2::ListObjectsV2Error;

use crate::aws::{self, StreamError};

/// The reason why an object cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObjectError {
    #[error(transparent)]
    Listing(Box<SdkError<ListObjectsV2Error>>),
    #[error(transparent)]
    Request(Box<SdkError<GetObjectError>>),
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("it is larger than {0} bytes")]
    TooLarge(usize),
}

impl ObjectError {
    /// Returns the verb of the step that failed. Messages put the object's name after it.
    pub(crate) const fn verb(&self) -> &'static str {
        match self {
            Self::Listing(_) => "look for object",
            Self::Request(_) | Self::Stream(_) | Self::TooLarge(_) => "read object",
        }
    }

    /// Returns whether a policy does not allow the call.
    pub(crate) fn is_denied(&self) -> bool {
        match self {
            Self::Listing(error) => aws::is_denied(error.code()),
            Self::Request(error) => aws::is_denied(error.code()),
            Self::Stream(_) | Self::TooLarge(_) => false,
        }
    }
}

/// Returns an object of at most `max` bytes; `None` if it does not exist.
///
/// Lists the object first. If a role may not list the whole bucket, S3 returns `AccessDenied` when the role reads an
/// absent object (Amazon S3 API, `GetObject`, "Permissions").
///
/// # Errors
/// [`ObjectError`].
pub(crate) async fn read(client: &Client, bucket: &str, key: &str, max: usize) -> Result<Option<Vec<u8>>, ObjectError> {
    let listed = client.list_objects_v2().bucket(bucket).prefix(key).max_keys(1).send().await;
    let listed = listed.map_err(|error| ObjectError::Listing(Box::new(error)))?;
    // S3 lists keys in order, so `key` comes before all longer keys that begin with it.
    if listed.contents().first().and_then(|object| object.key()) != Some(key) {
        return Ok(None);
    }
    let mut body = match client.get_object().bucket(bucket).key(key).send().await {
        Ok(answer) => answer.body,
        // The object was removed after the listing.
        Err(error) if error.as_service_error().is_some_and(|error| error.is_no_such_key()) => return Ok(None),
        Err(error) => return Err(ObjectError::Request(Box::new(error))),
    };
    let mut bytes = Vec::new();
    while let Some(chunk) = aws::next_bytes(&mut body).await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > max {
            return Err(ObjectError::TooLarge(max));
        }
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::s3_at;

    const LISTED: &str = "<ListBucketResult><Contents><Key>k</Key></Contents></ListBucketResult>";
    const LONGER: &str = "<ListBucketResult><Contents><Key>k2</Key></Contents></ListBucketResult>";

    /// Returns a client of a bucket that lists `listing`, and answers with `status` and `body` when an object is read.
    async fn bucket(listing: &'static str, (status, body): (u16, &'static str)) -> Client {
        s3_at(move |request| {
            let (status, body) = if request.contains("list-type=2") { (200, listing) } else { (status, body) };
            (status, body.into())
        })
        .await
    }

    #[tokio::test]
    async fn an_object_is_read_up_to_the_limit() {
        let client = bucket(LISTED, (200, "four")).await;

        let found = read(&client, "b", "k", 4).await.unwrap();
        let refused = read(&client, "b", "k", 3).await.unwrap_err();

        assert_eq!(found.as_deref(), Some(b"four".as_slice()));
        assert_eq!((refused.verb(), refused.to_string().as_str()), ("read object", "it is larger than 3 bytes"));
    }

    #[tokio::test]
    async fn an_object_that_is_not_listed_is_not_read() {
        let client = bucket(LONGER, (403, "<Error><Code>AccessDenied</Code></Error>")).await;

        assert_eq!(read(&client, "b", "k", 4).await.unwrap(), None);
    }

    #[tokio::test]
    async fn an_object_that_is_removed_after_the_listing_does_not_exist() {
        let client = bucket(LISTED, (404, "<Error><Code>NoSuchKey</Code></Error>")).await;

        assert_eq!(read(&client, "b", "k", 4).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_denied_read_is_an_error() {
        let client = bucket(LISTED, (403, "<Error><Code>AccessDenied</Code></Error>")).await;

        let refused = read(&client, "b", "k", 4).await.unwrap_err();

        assert!(refused.is_denied(), "{refused}");
    }
}
