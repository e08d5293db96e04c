//! The queues of a tenant that its stack has, and the settings that all queues share.

use freehold_protocol::{AccountId, Partition, TenantName};

/// How long a queue keeps a message, in seconds: 14 days, the longest time that SQS permits, as for the queues
/// of the stack. Without the attribute, SQS deletes a message after four days (Amazon SQS API reference, `CreateQueue`).
pub(crate) const RETENTION_SECS: u32 = 14 * 24 * 3600;

/// The tenant, and its queues that the tenant stack has.
#[derive(Debug, Clone)]
pub struct TenantQueues {
    pub tenant: TenantName,
    pub region: String,
    pub account: AccountId,
    /// The URL of the first reports queue.
    pub reports_url: String,
    /// The ARN of the dead-letter queue of the functions' queues.
    pub dead_letter_arn: String,
    /// The ARN of the dead-letter queue of the orders queues.
    pub orders_dead_letter_arn: String,
    /// The number of copies of `accept-report` that work on one reports queue at most.
    pub report_concurrency: i32,
}

impl TenantQueues {
    /// Returns the ARN of the queue with this name.
    pub(crate) fn arn(&self, name: &str) -> String {
        let partition = Partition::of_region(&self.region).name;
        format!("arn:{partition}:sqs:{}:{}:{name}", self.region, self.account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_in_the_partition_of_its_region() {
        let queues = |region: &str| TenantQueues {
            tenant: "acme".parse().unwrap(),
            region: region.to_owned(),
            account: "111111111111".parse().unwrap(),
            reports_url: String::new(),
            dead_letter_arn: String::new(),
            orders_dead_letter_arn: String::new(),
            report_concurrency: 2,
        };

        assert_eq!(queues("eu-west-1").arn("q"), "arn:aws:sqs:eu-west-1:111111111111:q");
        assert_eq!(queues("us-gov-west-1").arn("q"), "arn:aws-us-gov:sqs:us-gov-west-1:111111111111:q");
    }
}
