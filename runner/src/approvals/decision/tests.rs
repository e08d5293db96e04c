use freehold_protocol::approval::PlanSummary;
use freehold_protocol::order::AskedBy;

use super::*;
use crate::testing::{job_id, order};

const NOW: Timestamp = Timestamp::from_millis(2_000_000);
const UNTIL: Timestamp = Timestamp::from_millis(9_000_000);

fn facts() -> Facts {
    Facts { inputs: json!({ "size": 3 }), state: "lineage l, serial 4".into() }
}

fn record() -> PlanRecord {
    let order = order(1, 7);
    PlanRecord {
        tenant: order.tenant.clone(),
        install: order.install.clone(),
        job: order.job.clone(),
        changes: order.work.changes(),
        removal: false,
        work: work_digest(&order).unwrap(),
        inputs: inputs_digest(&facts().inputs, "salt").unwrap(),
        state: facts().state,
        bytes: Digest::of(b"plan"),
        object: "plans/x.bin".into(),
        salt: "salt".into(),
        planned_at: NOW,
        until: UNTIL,
        asks: [Side::Vendor].into(),
        summary: PlanSummary::default(),
        policies: Digest::of(b"policies"),
    }
}

fn named(record: &PlanRecord) -> OrderApproval {
    let (_, plan) = record.to_bytes().unwrap();
    OrderApproval { plan, by: None, at: NOW, until: UNTIL, policies: Digest::of(b"policies") }
}

fn of(order: &Order, record: &PlanRecord, facts: &Facts) -> Result<PlanRecord, NotApplied> {
    let (bytes, _) = record.to_bytes().unwrap();
    recalled(order, &named(record), facts, Found { record: Some(&bytes), used: None, now: NOW })
}

fn refusal(found: Result<PlanRecord, NotApplied>) -> String {
    match found {
        Err(NotApplied::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_use_that_the_version_before_noted_is_read_and_nothing_of_it_is_lost() {
    crate::testing::check_golden_values::<Use>("Use");
}

#[test]
fn the_plan_that_was_approved_is_applied() {
    assert_eq!(of(&order(1, 7), &record(), &facts()), Ok(record()));
}

#[test]
fn another_tool_image_is_another_plan() {
    let mut order = order(1, 7);
    let digest = Digest::of(b"another image");
    let artifact = json!({ "media_type": "", "digest": digest, "manifests": [], "blobs": [] });
    order.tool_image = Some(serde_json::from_value(json!({ "component": "tools", "artifact": artifact })).unwrap());

    let found = of(&order, &record(), &facts());

    assert!(matches!(found, Err(NotApplied::Outdated(why)) if why.contains("the artifact or the config has changed")));
}

#[test]
fn an_approval_of_another_install_part_or_job_does_not_count() {
    let other = |change: &dyn Fn(&mut PlanRecord)| {
        let mut record = record();
        change(&mut record);
        refusal(of(&order(1, 7), &record, &facts()))
    };

    assert!(other(&|one| one.install = "initech".parse().unwrap()).contains("it is for install `initech`"));
    assert!(other(&|one| one.tenant = "other".parse().unwrap()).contains("it is for install `globex-prod` of `other`"));
    assert!(other(&|one| one.changes = "component:db".into()).contains("it is for `component:db`"));
    let removal = other(&|one| one.removal = true);
    let changes = order(1, 7).work.changes();
    assert!(
        removal.contains(&format!("it is for the removal of `{changes}`, and this job is for `{changes}`")),
        "{removal}"
    );
    assert!(other(&|one| one.job = job_id(2)).contains("it is the plan of job"));
}

#[test]
fn other_bytes_an_expired_approval_and_one_that_was_used_are_refused() {
    let (record, order) = (record(), order(1, 7));
    let (bytes, _) = record.to_bytes().unwrap();
    let found = |record: Option<&[u8]>, used: Option<&[u8]>, now| {
        recalled(&order, &named(&self::record()), &facts(), Found { record, used, now })
    };
    let used = |dispatch: u32| serde_json::to_vec(&Use { job: order.job.to_string(), dispatch }).unwrap();
    let mut tampered = bytes.clone();
    tampered[40] ^= 1;

    assert!(refusal(found(None, None, NOW)).contains("has no record of it"));
    assert!(refusal(found(Some(&tampered), None, NOW)).contains("the bytes of its record have changed"));
    let expired = refusal(found(Some(&bytes), None, UNTIL.plus_secs(1)));
    assert!(expired.contains("its approval expired at"), "{expired}");
    assert!(expired.ends_with("; start the job again, which makes a new plan"), "{expired}");
    let elsewhere = serde_json::to_vec(&Use { job: "job_00000000000000000009".into(), dispatch: 1 }).unwrap();
    assert!(refusal(found(Some(&bytes), Some(&elsewhere), NOW)).contains("has applied it already"));
    let died = found(Some(&bytes), Some(&used(2)), NOW);
    assert!(matches!(died, Err(NotApplied::Outdated(why)) if why.contains("dispatch 2 has begun to apply")));
    assert!(refusal(found(Some(&bytes), Some(b"?"), NOW)).contains("cannot read the note"));
    assert!(found(Some(&bytes), Some(&used(1)), NOW).is_ok(), "a delivery of the same order");
    let other_answers = OrderApproval { policies: Digest::of(b"other"), ..named(&record) };
    let asked = recalled(&order, &other_answers, &facts(), Found { record: Some(&bytes), used: None, now: NOW });
    assert!(refusal(asked).contains("other results of the policies"));
}

#[test]
fn what_has_moved_on_is_planned_anew() {
    let moved = |order: &Order, facts: &Facts| match of(order, &record(), facts) {
        Err(NotApplied::Outdated(why)) => why,
        other => panic!("{other:?}"),
    };

    assert!(
        moved(&order(1, 7), &Facts { state: "lineage l, serial 5".into(), ..facts() })
            .contains("the state has changed")
    );
    assert!(
        moved(&order(1, 7), &Facts { inputs: json!({ "size": 4 }), ..facts() }).contains("the values have changed")
    );
    let other_mode = Order { mode: freehold_protocol::order::Mode::Provision, ..order(1, 7) };
    assert!(moved(&other_mode, &facts()).contains("the artifact or the config has changed"));
}

#[test]
fn only_the_customers_word_about_this_plan_counts() {
    let (record, (_, plan)) = (record(), record().to_bytes().unwrap());
    let decision = |approved: bool, about: &Digest, install: &str| {
        let decision = WrittenDecision {
            tenant: record.tenant.clone(),
            install: install.parse().unwrap(),
            plan: about.clone(),
            approved,
            by: "eva".into(),
            at: NOW,
            reason: "no".into(),
        };
        approved_by_customer(&record, &plan, Some(&serde_json::to_vec(&decision).unwrap()))
    };

    assert_eq!(decision(true, &plan, "globex-prod"), Ok(Some("eva".to_owned())));
    assert_eq!(decision(true, &Digest::of(b"other"), "globex-prod"), Ok(None));
    assert_eq!(decision(true, &plan, "initech"), Ok(None));
    assert!(decision(false, &plan, "globex-prod").unwrap_err().contains("eva (customer) rejected plan"));
    assert_eq!(approved_by_customer(&record, &plan, None), Ok(None));
    assert_eq!(approved_by_customer(&record, &plan, Some(b"?")), Ok(None));
}

#[test]
fn a_plan_is_applied_when_the_same_bytes_have_the_approval_of_everybody_who_is_asked_now() {
    let (record, named) = (record(), OrderApproval { by: Some(AskedBy::Schedule), ..named(&record()) });
    let (bytes, policies) = (Digest::of(b"plan"), Digest::of(b"policies"));
    let agreed = |bytes: &Digest, policies: &Digest, asks: &[Side]| {
        let asks = asks.iter().copied().collect();
        super::agreed(&record, &named, &Present { bytes, policies, asks: &asks }, None)
    };
    let other = Digest::of(b"other");

    assert_eq!(agreed(&bytes, &policies, &[Side::Vendor]), Ok(None));
    assert!(matches!(agreed(&other, &policies, &[]), Err(NotApplied::Outdated(_))));
    assert!(matches!(agreed(&bytes, &other, &[]), Err(NotApplied::Outdated(_))));
    let both = agreed(&bytes, &policies, &[Side::Vendor, Side::Customer]);
    assert!(matches!(both, Err(NotApplied::Refused(why)) if why.contains("the customer has not approved it")));
}

#[test]
fn an_output_with_more_digits_than_json_keeps_has_a_digest() {
    let inputs = |id: u64| inputs_digest(&json!({ "nuon": { "id": id } }), "salt").unwrap();

    assert_ne!(inputs(9_007_199_254_740_993), inputs(9_007_199_254_740_995));
}
