//! The features that a runner has to know to act on an order or a cancel correctly.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::approval;

/// The features that an order or a cancel may demand of this version. A field that an earlier runner must not ignore
/// comes with a feature, and the control plane names the feature in each message that has the field.
const FEATURES: [&str; 1] = [approval::FEATURE];

/// The features that a message demands, by name, in its field `must_understand`. A message without the field demands none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Demands(BTreeSet<String>);

impl Demands {
    /// Returns the demand of one feature.
    pub fn feature(name: &str) -> Self {
        Self([name.to_owned()].into())
    }

    /// Returns whether nothing is demanded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the demanded features that this version does not know.
    pub fn unknown(&self) -> Vec<&str> {
        self.0.iter().map(String::as_str).filter(|name| !FEATURES.contains(name)).collect()
    }
}
