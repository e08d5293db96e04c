//! An HTTP response of IAM, or of the runner instead of IAM.

use bytes::Bytes;

use crate::xml::Element;

/// The status and the body of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Returns the response of a successful action that returns no data.
    pub(crate) fn done(action: &str) -> Self {
        let body = format!(
            "<{action}Response xmlns=\"https://iam.amazonaws.com/doc/2010-05-08/\"><ResponseMetadata>\
             <RequestId>freehold</RequestId></ResponseMetadata></{action}Response>"
        );
        Self { status: 200, body: body.into() }
    }

    pub(crate) const fn is_success(&self) -> bool {
        self.status >= 200 && self.status < 300
    }

    /// Returns the body as an XML tree; `None` if it is not XML.
    pub(crate) fn tree(&self) -> Option<Element> {
        Element::parse(&self.body)
    }

    /// Returns the error code in the response, such as `NoSuchEntity`, or the HTTP status if there is none.
    pub(crate) fn code(&self) -> String {
        let found = self.tree().and_then(|tree| tree.child("Error")?.child("Code").map(Element::text));
        found.unwrap_or_else(|| format!("HTTP {}", self.status))
    }
}
