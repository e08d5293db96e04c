//! Tampers with approved plans at random, each with real bytes, and asks the runner's decision about each of them.
//! Prints the figure of docs/figures.md as one JSON object. Exits with 1 when a tampered plan is applied, or an
//! untampered plan is not applied.

#![expect(clippy::indexing_slicing, reason = "it indexes its own tables and the bytes that it drew")]

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Instant;

use freehold_protocol::approval::{OrderApproval, PlanRecord, PlanSummary, Side, WrittenDecision};
use freehold_protocol::order::{AskedBy, Mode, Order};
use freehold_protocol::{Digest, Timestamp};
use freehold_runner::approvals::Facts;
use freehold_runner::approvals::decision::{Found, Present, Use, agreed, inputs_digest, recalled, work_digest};
use serde_json::json;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The kinds of tampering.
const KINDS: [&str; 18] = [
    "another bit of the record",
    "another bit of the plan",
    "the plan cut short",
    "another hash in the approval",
    "the approval after its expiry",
    "the plan after its expiry",
    "another install",
    "another tenant",
    "another component",
    "a removal instead of a deploy",
    "another job",
    "applied before by another order",
    "another state",
    "other values",
    "other rights",
    "no approval of the vendor",
    "no approval of the customer",
    "other results of the policies",
];

/// Generates random numbers; the same seed gives the same numbers.
struct Draw(fastrand::Rng);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0.u64(..)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0.usize(..end)
    }

    fn bytes(&mut self, least: usize, more: usize) -> Vec<u8> {
        let length = least + self.below(more);
        (0..length).map(|_| self.0.u8(..)).collect()
    }
}

/// An approved plan, with everything that the runner finds about it.
struct Case {
    order: Order,
    named: OrderApproval,
    record: Vec<u8>,
    plan: Vec<u8>,
    decision: Option<Vec<u8>>,
    used: Option<Vec<u8>>,
    facts: Facts,
    policies: Digest,
    now: Timestamp,
}

fn order(number: usize) -> Result<Order> {
    let job = format!("job_{number:020}");
    let action = json!({ "kind": "action", "action": "say", "steps": [], "env_vars": {}, "idempotent": true });
    Ok(serde_json::from_value(json!({
        "tenant": "acme", "install": "globex", "workflow": "wf_00000000000000000001", "job": job, "dispatch": 2,
        "group": "action:say", "serial": 1, "issued_at": 1_000_000, "not_after": 9_000_000_000_u64, "timeout_secs": 60,
        "mode": "maintenance", "redelivery": "resume", "work": action, "context": {},
    }))?)
}

fn case(draw: &mut Draw, number: usize) -> Result<Case> {
    let order = order(number)?;
    let plan = draw.bytes(64, 16 * 1024);
    let facts = Facts {
        inputs: json!({ "size": draw.next() >> 12 }),
        state: format!("lineage l, serial {}", draw.below(1000)),
    };
    let (now, policies) = (Timestamp::from_millis(2_000_000), Digest::of(&draw.bytes(8, 8)));
    let until = now.plus_secs(1 + draw.next() % 604_800);
    let salt = Digest::of(&draw.bytes(32, 1)).hex().to_owned();
    let record = PlanRecord {
        tenant: order.tenant.clone(),
        install: order.install.clone(),
        job: order.job.clone(),
        changes: order.work.changes(),
        removal: false,
        work: work_digest(&order)?,
        inputs: inputs_digest(&facts.inputs, &salt)?,
        state: facts.state.clone(),
        bytes: Digest::of(&plan),
        object: "plans/x.bin".into(),
        salt,
        planned_at: now,
        until,
        asks: [Side::Vendor, Side::Customer].into(),
        summary: PlanSummary::default(),
        policies: policies.clone(),
    };
    let (record, hash) = record.to_bytes()?;
    let by = Some(AskedBy::Caller { arn: "arn:aws:sts::111111111111:assumed-role/deployer/ana".parse()? });
    let named = OrderApproval { plan: hash.clone(), by, at: now, until, policies: policies.clone() };
    let (tenant, install, reason) = (order.tenant.clone(), order.install.clone(), String::new());
    let decision = WrittenDecision { tenant, install, plan: hash, approved: true, by: "eva".into(), at: now, reason };
    let decision = Some(serde_json::to_vec(&decision)?);
    Ok(Case { order, named, record, plan, decision, used: None, facts, policies, now })
}

/// Rewrites the record, as somebody with write access could, and leaves the approval unchanged.
fn rewrite(case: &mut Case, change: impl FnOnce(&mut PlanRecord)) -> Result<()> {
    let mut record: PlanRecord = serde_json::from_slice(&case.record)?;
    change(&mut record);
    case.record = record.to_bytes()?.0;
    Ok(())
}

/// Tampers with one part of the case.
fn tamper(case: &mut Case, kind: usize, draw: &mut Draw) -> Result<()> {
    match KINDS[kind] {
        "another bit of the record" => {
            let at = draw.below(case.record.len());
            case.record[at] ^= 1 << draw.below(8);
        }
        "another bit of the plan" => {
            let at = draw.below(case.plan.len());
            case.plan[at] ^= 1 << draw.below(8);
        }
        "the plan cut short" => {
            let keep = draw.below(case.plan.len());
            case.plan.truncate(keep);
        }
        "another hash in the approval" => case.named.plan = Digest::of(&draw.bytes(8, 8)),
        "the approval after its expiry" => {
            case.named.until = Timestamp::from_millis(case.now.as_millis() - 1 - draw.next() % 1_000_000);
        }
        "the plan after its expiry" => case.now = case.named.until.plus_secs(1 + draw.next() % 1_000_000),
        "another install" => case.order.install = format!("other-{}", draw.below(1000)).parse()?,
        "another tenant" => case.order.tenant = format!("other-{}", draw.below(1000)).parse()?,
        "another component" => rewrite(case, |record| record.changes = "component:other".into())?,
        "a removal instead of a deploy" => rewrite(case, |record| record.removal = true)?,
        "another job" => case.order.job = format!("job_{:020}", 1_000_000 + draw.below(1000)).parse()?,
        "applied before by another order" => {
            let dispatch = 3 + u32::try_from(draw.below(9))?;
            case.used = Some(serde_json::to_vec(&Use { job: case.order.job.to_string(), dispatch })?);
        }
        "another state" => case.facts.state.push_str(&draw.below(10).to_string()),
        "other values" => case.facts.inputs = json!({ "size": draw.next() >> 12 }),
        "other rights" => case.order.mode = Mode::Provision,
        "no approval of the vendor" => case.named.by = None,
        "no approval of the customer" => case.decision = None,
        "other results of the policies" => case.policies = Digest::of(&draw.bytes(8, 8)),
        other => return Err(format!("there is no tampering of kind `{other}`").into()),
    }
    Ok(())
}

/// Returns why the runner does not apply the plan; `None` if it does.
fn refusal(case: &Case) -> Option<String> {
    let found = Found { record: Some(&case.record), used: case.used.as_deref(), now: case.now };
    let record = match recalled(&case.order, &case.named, &case.facts, found) {
        Ok(record) => record,
        Err(why) => return Some(format!("{why:?}")),
    };
    let (bytes, asks) = (Digest::of(&case.plan), BTreeSet::from([Side::Vendor, Side::Customer]));
    let now = Present { bytes: &bytes, policies: &case.policies, asks: &asks };
    agreed(&record, &case.named, &now, case.decision.as_deref()).err().map(|why| format!("{why:?}"))
}

fn main() -> Result<ExitCode> {
    let numbers: Vec<u64> = std::env::args().skip(1).map(|word| word.parse()).collect::<std::result::Result<_, _>>()?;
    let [tries, seed] = numbers.as_slice() else { return Err("usage: approval-figures TRIES SEED".into()) };
    let (started, mut draw, mut refused, mut whole) = (Instant::now(), Draw(fastrand::Rng::with_seed(*seed)), 0, 0);
    for number in 0..usize::try_from(*tries)? {
        let mut case = case(&mut draw, number)?;
        whole += usize::from(refusal(&case).is_none());
        let kind = number % KINDS.len();
        tamper(&mut case, kind, &mut draw)?;
        match refusal(&case) {
            Some(_) => refused += 1,
            None => eprintln!("`{}` is applied", KINDS[kind]),
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        r#"{{"name":"approvals.tampered_refused","value":{refused},"attempted":{tries},"passed":{refused},"seed":{seed},"seconds":{seconds:.1}}}"#
    );
    Ok(ExitCode::from(u8::from(refused < *tries || whole as u64 != *tries)))
}
