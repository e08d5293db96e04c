//! When the customer lets changes start, as a runner reads it from the install stack and announces it.

use serde::{Deserialize, Serialize};

use crate::flag::is_false;
use crate::{ActionName, Timestamp};

/// When changes may start in an install. The runner decides; the control plane sends no order that would only wait.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeTimes {
    /// The change windows as the customer wrote them; empty when there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub windows: String,
    /// The freezes as the customer wrote them; empty when there are none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub freezes: String,
    /// Whether the customer holds all changes.
    #[serde(default, skip_serializing_if = "is_false")]
    pub held: bool,
    /// The mistake in the customer's texts. While there is one, no change starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The openings, in the order of their times. The first one may have begun.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub openings: Vec<OpenTime>,
    /// The time until which `openings` is complete.
    #[serde(default)]
    pub known_until: Timestamp,
    /// The actions that may run at any time.
    #[serde(default)]
    pub free_actions: FreeActions,
}

/// A time from which changes may start, and the time until which they may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenTime {
    pub from: Timestamp,
    /// The end; absent if no end is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// The actions that may run at any time, because the customer declares that they change nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FreeActions {
    All,
    Named(Vec<ActionName>),
}

impl Default for FreeActions {
    fn default() -> Self {
        Self::Named(Vec::new())
    }
}

impl FreeActions {
    /// Returns whether the action may run at any time.
    pub fn contains(&self, action: &ActionName) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.contains(action),
        }
    }
}
