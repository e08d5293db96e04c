//! An answer of IAM, or of the runner in its place.

use bytes::Bytes;

use crate::xml::Element;

/// The status and the body of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Returns the empty answer of an action that gives nothing back.
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

    /// Returns the body as a tree.
    pub(crate) fn tree(&self) -> Option<Element> {
        Element::parse(&self.body)
    }

    /// Returns IAM's word for an error.
    pub(crate) fn code(&self) -> String {
        let found = self.tree().and_then(|tree| tree.child("Error")?.child("Code").map(Element::text));
        found.unwrap_or_else(|| format!("HTTP {}", self.status))
    }
}
