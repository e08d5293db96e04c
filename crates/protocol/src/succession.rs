//! How one root key of a tenant replaces another, and which root keys a reader trusts.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::envelope::{Delegate, Delegated, Envelope, EnvelopeError, Payload, PublicKey, SuccessionError};
use crate::{TenantName, Timestamp, limits};

/// The statement that a new root key follows the current one. The new key signs the statement. The old key signs it
/// too, unless the install stacks of the old key name the new key as their second root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Succession {
    /// The tenant whose root keys these are.
    pub tenant: TenantName,
    /// The root that ends.
    pub from: PublicKey,
    /// The root that follows.
    pub to: PublicKey,
    /// The time until which messages that lead to the old root may be sent. The new root counts at once.
    pub until: Timestamp,
    /// The only root that may follow the new root. If absent, any root may follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<PublicKey>,
}

impl Payload for Succession {
    const TYPE: &'static str = "application/vnd.freehold.succession.v1+json";
}

/// One root, and the time until which messages under it may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Root {
    key: PublicKey,
    until: Option<Timestamp>,
}

/// The root keys of a tenant that a reader trusts: the root key that it was given, and those that follow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    tenant: TenantName,
    /// The roots before the current one, oldest first.
    former: Vec<Root>,
    current: PublicKey,
    /// The only root that may follow the current one.
    second: Option<PublicKey>,
    statements: Vec<Envelope>,
}

impl Roots {
    /// Returns the roots of a reader that was given the root `key` and, as `second`, the only key that may follow it.
    pub const fn given(tenant: TenantName, key: PublicKey, second: Option<PublicKey>) -> Self {
        Self { tenant, former: Vec::new(), current: key, second, statements: Vec::new() }
    }

    /// Returns the newest root.
    pub const fn current(&self) -> &PublicKey {
        &self.current
    }

    /// Returns the statements that lead from the given root to the current one, oldest first.
    pub fn statements(&self) -> &[Envelope] {
        &self.statements
    }

    /// Returns whether `key` is or was a root.
    pub fn include(&self, key: &PublicKey) -> bool {
        self.all().any(|root| root.key == key)
    }

    /// Adds the successors in `statements`, oldest first. Statements before the given root, and known statements, change nothing.
    ///
    /// # Errors
    /// A [`SuccessionError`]; the roots are then unchanged.
    pub fn follow(&mut self, statements: &[Envelope]) -> Result<(), SuccessionError> {
        if statements.len() > limits::MAX_SUCCESSIONS {
            return Err(SuccessionError::TooMany);
        }
        let mut next = self.clone();
        let mut is_ours = statements.is_empty();
        for envelope in statements {
            let statement: Succession = envelope.peek().map_err(unsigned)?;
            is_ours |= next.include(&statement.from) || next.include(&statement.to);
            if next.include(&statement.from) {
                next.follow_one(envelope, statement)?;
            }
        }
        if !is_ours {
            return Err(SuccessionError::Elsewhere(self.current.key_id()));
        }
        *self = next;
        Ok(())
    }

    fn follow_one(&mut self, envelope: &Envelope, claimed: Succession) -> Result<(), SuccessionError> {
        if claimed.from != self.current {
            return self.is_known(&claimed);
        }
        if claimed.tenant != self.tenant {
            return Err(SuccessionError::OtherTenant(claimed.tenant));
        }
        if self.include(&claimed.to) {
            return Err(SuccessionError::Returns(claimed.to.key_id()));
        }
        if let Some(second) = claimed.second.as_ref().filter(|second| **second == claimed.to || self.include(second)) {
            return Err(SuccessionError::Returns(second.key_id()));
        }
        envelope.open::<Succession>(&claimed.to).map_err(unsigned)?;
        match &self.second {
            Some(second) if *second == claimed.to => {}
            Some(second) => {
                let (from, to) = (claimed.from.key_id(), claimed.to.key_id());
                return Err(SuccessionError::NotTheSecond { from, to, second: second.key_id() });
            }
            None => {
                envelope.open::<Succession>(&claimed.from).map_err(unsigned)?;
            }
        }
        let before = self.former.last().and_then(|root| root.until);
        if before.is_some_and(|before| claimed.until < before) {
            return Err(SuccessionError::Backwards(claimed.from.key_id()));
        }
        if self.statements.len() == limits::MAX_SUCCESSIONS {
            return Err(SuccessionError::TooMany);
        }
        self.former.push(Root { key: claimed.from, until: Some(claimed.until) });
        self.current = claimed.to;
        self.second = claimed.second;
        self.statements.push(envelope.clone());
        Ok(())
    }

    /// Checks that a statement about a former root is the statement that was followed.
    fn is_known(&self, claimed: &Succession) -> Result<(), SuccessionError> {
        let mut known = self.statements.iter().filter_map(|envelope| envelope.peek::<Succession>().ok());
        match known.find(|known| known.from == claimed.from) {
            Some(known) if known == *claimed => Ok(()),
            known => {
                let known = known.map_or_else(|| self.current.key_id(), |known| known.to.key_id());
                Err(SuccessionError::Forked { from: claimed.from.key_id(), known, other: claimed.to.key_id() })
            }
        }
    }

    /// Returns the content of a message whose delegate key leads to one of these roots, or to a root to which the
    /// message's own statements lead. At the time `now`, the certificate must be valid, and a former root must not have
    /// ended.
    ///
    /// # Errors
    /// Every [`EnvelopeError`].
    pub fn open_delegated<P: Delegated>(&self, envelope: &Envelope, now: Timestamp) -> Result<P, EnvelopeError> {
        let roots = self.followed_by(envelope)?;
        let root = roots.of_certificate(envelope, now)?;
        envelope.open_delegated(root, &self.tenant, now)
    }

    /// Does the same for a message whose queue records the time of sending.
    ///
    /// # Errors
    /// Every [`EnvelopeError`].
    pub fn open_sent<P: Delegated>(
        &self,
        envelope: &Envelope,
        sent_at: Timestamp,
        now: Timestamp,
    ) -> Result<P, EnvelopeError> {
        let roots = self.followed_by(envelope)?;
        let root = roots.of_certificate(envelope, sent_at)?;
        envelope.open_sent(root, &self.tenant, sent_at, now)
    }

    /// Returns the content of a message's certificate after checking that one of these roots signed it.
    ///
    /// # Errors
    /// As [`Envelope::delegate`].
    pub fn delegate(&self, envelope: &Envelope) -> Result<Delegate, EnvelopeError> {
        let named = self.all().find(|root| envelope.is_certified_as(&root.key.key_id()));
        envelope.delegate(named.map_or(&self.current, |root| root.key))
    }

    /// Returns the root that signed `envelope` itself, or the current root if no root did. A former root counts too,
    /// because `envelope` may be older than the current root.
    pub fn signer(&self, envelope: &Envelope) -> &PublicKey {
        self.all().map(|root| root.key).find(|key| envelope.is_signed_as(&key.key_id())).unwrap_or(&self.current)
    }

    /// Returns these roots, and with them the roots that follow by the successions in the certificate of a message.
    ///
    /// # Errors
    /// [`EnvelopeError::Succession`].
    pub fn followed_by(&self, envelope: &Envelope) -> Result<Cow<'_, Self>, EnvelopeError> {
        let statements = envelope.succession()?;
        if statements.is_empty() {
            return Ok(Cow::Borrowed(self));
        }
        let mut roots = self.clone();
        roots.follow(&statements).map_err(EnvelopeError::Succession)?;
        Ok(Cow::Owned(roots))
    }

    /// Returns the root that the certificate of a message names, if it had not ended at `sent_at`.
    fn of_certificate(&self, envelope: &Envelope, sent_at: Timestamp) -> Result<&PublicKey, EnvelopeError> {
        let named = self.all().find(|root| envelope.is_certified_as(&root.key.key_id()));
        match named {
            Some(RootRef { key, until: Some(until) }) if sent_at > until => {
                Err(EnvelopeError::RootEnded { root: key.key_id(), late_secs: sent_at.since(until) / 1000 })
            }
            Some(root) => Ok(root.key),
            // The caller then reports that the current root did not sign.
            None => Ok(&self.current),
        }
    }

    fn all(&self) -> impl Iterator<Item = RootRef<'_>> {
        let former = self.former.iter().map(|root| RootRef { key: &root.key, until: root.until });
        former.chain([RootRef { key: &self.current, until: None }])
    }
}

/// One of the roots; the current root has no end.
struct RootRef<'a> {
    key: &'a PublicKey,
    until: Option<Timestamp>,
}

fn unsigned(error: EnvelopeError) -> SuccessionError {
    SuccessionError::Unsigned(Box::new(error))
}
