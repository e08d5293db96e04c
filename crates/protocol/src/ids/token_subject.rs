//! The subject of a token, which names a person or a pipeline to the issuer of the token.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::IdError;
use crate::shape::Shape;

id!(
    /// The claim `sub` of a token (OpenID Connect Core 1.0, section 2: at most 255 ASCII characters).
    TokenSubject,
    "the subject of a token",
    "1 to 255 visible ASCII characters",
    Shape::Visible { max: 255 }
);
