//! Refuses an order that came in another message group of the queue than the one in which the control plane sends it.

use freehold_protocol::order::Order;
use freehold_protocol::report::{Refusal, RefusalReason};

use crate::wire::inbox::Delivery;
use crate::wire::verify::{Refused, message_digest};

/// Returns the refusal of an order in another message group than its own. The signature does not cover the message
/// group, so such an order is a copy that somebody else has sent. SQS may deliver it while another machine has the
/// order.
///
/// The refusal names no job: it says nothing about the order, which may still be in the queue.
pub fn refusal(order: &Order, delivery: &Delivery) -> Option<Refusal> {
    let own = order.group.message_group();
    let found = delivery.group.as_deref().filter(|found| *found != own)?;
    let detail = format!(
        "the order of job `{}` is a copy: its message group in the orders queue is `{found}`, and the control plane \
         sends it in `{own}`; find out who else can send messages to the queue",
        order.job
    );
    Some(Refused { reason: RefusalReason::Replayed, detail }.of(message_digest(&delivery.body), None))
}

#[cfg(test)]
mod tests {
    use freehold_protocol::{Digest, Timestamp};
    use tokio::time::Instant;

    use super::*;
    use crate::testing::order;

    /// Returns the refusal of an order of `group` that came in the message group `found`.
    fn refused(group: &str, found: Option<&str>) -> Option<Refusal> {
        let delivery = Delivery {
            body: "x".into(),
            handle: "handle".into(),
            receive: 1,
            sent_at: Timestamp::default(),
            group: found.map(str::to_owned),
            leased_at: Instant::now(),
        };
        refusal(&Order { group: group.parse().unwrap(), ..order(1, 7) }, &delivery)
    }

    #[test]
    fn an_order_in_another_message_group_is_refused_and_the_refusal_is_not_about_its_job() {
        let refusal = refused("component:web", Some("component:api")).unwrap();

        assert_eq!((refusal.reason, refusal.job, refusal.given_back), (RefusalReason::Replayed, None, false));
        assert_eq!(refusal.message, Digest::of(b"x"));
        let says = "its message group in the orders queue is `component:api`, and the control plane sends it in \
                    `component:web`";
        assert!(refusal.detail.contains(says), "{}", refusal.detail);
    }

    #[test]
    fn an_order_in_its_own_message_group_is_not_refused() {
        for (group, found) in [("component:web", "component:web"), ("component:web.drift", "component:web.drift")] {
            assert_eq!(refused(group, Some(found)), None);
        }
        assert_eq!(refused("secrets.1", Some("secrets")), None);
        assert_eq!(refused("component:web", None), None, "a queue that does not name the group");
    }
}
