//! The reports queues of a tenant, which are called shards: which shard an install gets, and when a new one is needed.
//!
//! SQS limits the policy of a queue to 8 KiB, and the policy names each account whose runners may send. So one queue
//! has room for about 450 accounts.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::{AccountId, InstallId};
use serde::{Deserialize, Serialize};

/// The maximum number of accounts in one shard. A policy with this many accounts and the longest names fits into 8 KiB,
/// with room for the accounts that two writers add at the same time.
pub const MAX_ACCOUNTS: usize = 450;
/// The maximum number of installs in one shard. The row of a shard names each of them, and a row has at most 400 KB.
pub const MAX_INSTALLS: usize = 2_000;

/// One reports queue and the installs whose runners may send to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportShard {
    /// The number of the shard. The first one, number 1, is the queue of the tenant stack.
    pub number: u32,
    pub installs: BTreeMap<InstallId, AccountId>,
}

impl ReportShard {
    /// The number of the queue that the tenant stack has.
    pub const FIRST: u32 = 1;

    /// Returns a shard without installs.
    pub const fn new(number: u32) -> Self {
        Self { number, installs: BTreeMap::new() }
    }

    /// Returns the accounts whose runners may send.
    pub fn accounts(&self) -> BTreeSet<&AccountId> {
        self.installs.values().collect()
    }

    /// Returns whether the shard can take a further install of `account`.
    pub fn has_room_for(&self, account: &AccountId) -> bool {
        // There are at most as many accounts as installs.
        if self.installs.len() < MAX_ACCOUNTS.min(MAX_INSTALLS) {
            return true;
        }
        let accounts = self.accounts();
        self.installs.len() < MAX_INSTALLS && (accounts.contains(account) || accounts.len() < MAX_ACCOUNTS)
    }
}

/// Which shards exist, and which of them may have room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportShards {
    /// The number of the newest shard.
    pub newest: u32,
    /// Older shards that an install has left. Each may have room again.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub left: BTreeSet<u32>,
}

impl Default for ReportShards {
    fn default() -> Self {
        Self { newest: ReportShard::FIRST, left: BTreeSet::new() }
    }
}

impl ReportShards {
    /// Returns the shard to try first for a new install.
    pub fn candidate(&self) -> u32 {
        self.left.first().copied().unwrap_or(self.newest)
    }

    /// Returns the shards after the shard `number` was found to be full: this shard is not tried again, or a new shard
    /// is made.
    #[must_use]
    pub fn without_room_in(&self, number: u32) -> Self {
        let mut next = self.clone();
        if !next.left.remove(&number) && number == next.newest {
            next.newest += 1;
        }
        next
    }

    /// Returns the shards after an install has left the shard `number`.
    #[must_use]
    pub fn after_leaving(&self, number: u32) -> Self {
        let mut next = self.clone();
        if number != next.newest {
            next.left.insert(number);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(number: usize) -> AccountId {
        format!("{number:012}").parse().unwrap()
    }

    #[test]
    fn a_shard_is_full_with_the_last_account_and_takes_installs_of_accounts_that_it_has() {
        let mut shard = ReportShard::new(1);
        for number in 0..MAX_ACCOUNTS {
            assert!(shard.has_room_for(&account(number)));
            shard.installs.insert(format!("i{number}").parse().unwrap(), account(number));
        }

        assert!(!shard.has_room_for(&account(MAX_ACCOUNTS)) && shard.has_room_for(&account(0)));
    }

    #[test]
    fn a_shard_is_full_with_the_last_install_too() {
        let mut shard = ReportShard::new(1);
        for number in 0..MAX_INSTALLS {
            shard.installs.insert(format!("i{number}").parse().unwrap(), account(1));
        }

        assert!(!shard.has_room_for(&account(1)));
    }

    #[test]
    fn room_that_an_install_leaves_is_used_before_a_new_shard_is_made() {
        let shards = ReportShards { newest: 3, left: BTreeSet::new() };

        let left = shards.after_leaving(1).after_leaving(3);
        let full = left.without_room_in(1);

        assert_eq!((shards.candidate(), left.candidate(), full.candidate()), (3, 1, 3));
        assert_eq!(full.without_room_in(3).candidate(), 4);
        // Somebody else has made the new shard already.
        assert_eq!(full.without_room_in(3).without_room_in(3).candidate(), 4);
    }
}
