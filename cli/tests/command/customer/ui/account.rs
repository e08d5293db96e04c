//! A stand-in of the customer's account: its bucket and its stack.

use std::sync::{Arc, Mutex};

use freehold_protocol::approval::{ChangeKind, PlanRecord, PlanSummary, PlannedChange, Side, record_object};
use freehold_protocol::audit::AuditEvent;
use freehold_protocol::report::Fence;
use freehold_protocol::{Digest, JobId, Timestamp};

use super::super::bucket::{AT, Bucket, Story};
use super::super::live::{BUCKET, CALLER, page};
use crate::support::loopback::listen;

const TEMPLATE: &str = include_str!("../../../../../crates/app/golden/install.yaml");
/// A time at which no plan of a test has expired.
const LATER: Timestamp = Timestamp::from_millis(4_000_000_000_000);

/// What the stand-in got: the method, the path and the body of each request.
pub(super) type Requests = Arc<Mutex<Vec<(String, String, String)>>>;

/// The customer's account: the bucket, and the parameters of the stack.
pub(super) struct Account {
    pub(super) bucket: Bucket,
    pub(super) parameters: Vec<(&'static str, String)>,
}

impl Account {
    pub(super) fn honest() -> Self {
        Self::of(Bucket::telling(&Story::default()))
    }

    pub(super) fn of(bucket: Bucket) -> Self {
        let parameters = [("EnableRunner", "true"), ("EnableMaintenance", "true"), ("ChangesHeld", "true")];
        let mut parameters: Vec<_> = parameters.map(|(name, value)| (name, value.to_owned())).into();
        parameters.push(("ChangeWindows", String::new()));
        Self { bucket, parameters }
    }

    /// Starts the account; returns its address and what it gets.
    pub(super) fn serve(self) -> (String, Requests) {
        let requests = Requests::default();
        let kept = requests.clone();
        let address = listen(move |method, path, body| {
            kept.lock().unwrap().push((method.to_owned(), path.to_owned(), body.to_owned()));
            match body.split('&').next().unwrap_or_default().strip_prefix("Action=") {
                Some("GetCallerIdentity") => (200, CALLER.to_owned()),
                Some(action) => (
                    200,
                    format!(
                        "<{action}Response><{action}Result>{}</{action}Result></{action}Response>",
                        self.result(action)
                    ),
                ),
                None => self.object(method, path),
            }
        });
        (address, requests)
    }

    fn result(&self, action: &str) -> String {
        match action {
            "DescribeStacks" => self.stack(),
            "GetTemplate" => format!("<TemplateBody>{}</TemplateBody>", escaped(TEMPLATE)),
            "SimulatePrincipalPolicy" => {
                "<EvaluationResults><member><EvalActionName>sqs:ReceiveMessage</EvalActionName>\
                                          <EvalDecision>implicitDeny</EvalDecision></member></EvaluationResults>"
                    .to_owned()
            }
            "DescribeAutoScalingGroups" => "<AutoScalingGroups></AutoScalingGroups>".to_owned(),
            "ListStackResources" => "<StackResourceSummaries><member><LogicalResourceId>Key</LogicalResourceId>\
                                     <ResourceType>AWS::KMS::Key</ResourceType><ResourceStatus>CREATE_COMPLETE\
                                     </ResourceStatus><LastUpdatedTimestamp>2025-09-01T00:00:00Z</LastUpdatedTimestamp>\
                                     </member></StackResourceSummaries>"
                .to_owned(),
            other => panic!("nobody expects {other}"),
        }
    }

    fn stack(&self) -> String {
        let member = |kind: &str, name: &str, value: &str| {
            format!("<member><{kind}Key>{name}</{kind}Key><{kind}Value>{}</{kind}Value></member>", escaped(value))
        };
        let parameters: String = self.parameters.iter().map(|(name, value)| member("Parameter", name, value)).collect();
        let queue = "https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme--globex.fifo";
        let outputs = [
            member("Output", "RunnerRoleArn", "arn:aws:iam::222222222222:role/fh-acme--globex--runner"),
            member("Output", "OrdersQueueUrl", queue),
        ];
        format!(
            "<Stacks><member><StackName>freehold-acme--globex</StackName><StackStatus>UPDATE_COMPLETE</StackStatus>\
             <CreationTime>2026-01-01T00:00:00Z</CreationTime><Parameters>{parameters}</Parameters>\
             <Outputs>{}</Outputs></member></Stacks>",
            outputs.concat()
        )
    }

    fn object(&self, method: &str, path: &str) -> (u16, String) {
        let (name, query) = path.split_once('?').unwrap_or((path, ""));
        if query.contains("list-type=2") {
            return (200, page(&self.bucket, query));
        }
        if method == "PUT" {
            return (200, String::new());
        }
        let object = std::fs::read_to_string(self.bucket.path(name.strip_prefix(BUCKET).unwrap()));
        object.map_or_else(|_| (404, "<Error><Code>NoSuchKey</Code></Error>".to_owned()), |text| (200, text))
    }
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Adds a plan that waits for the customer; returns its digest.
pub(super) fn wait_for_approval(bucket: &mut Bucket, address: &str) -> Digest {
    let (job, empty): (JobId, Digest) = ("job_0000000000000000000c".parse().unwrap(), Digest::of(b""));
    let change = PlannedChange { address: address.to_owned(), kind: String::new(), change: ChangeKind::Create };
    let summary = PlanSummary { create: 1, changes: vec![change], ..PlanSummary::default() };
    let record = PlanRecord {
        tenant: "acme".parse().unwrap(),
        install: "globex".parse().unwrap(),
        job: job.clone(),
        changes: "component:web".into(),
        removal: false,
        work: empty.clone(),
        inputs: empty.clone(),
        state: String::new(),
        bytes: empty.clone(),
        object: "plans/x.bin".into(),
        salt: "salt".into(),
        planned_at: AT,
        until: LATER,
        asks: [Side::Customer].into(),
        summary: summary.clone(),
        policies: empty.clone(),
    };
    let (bytes, plan) = record.to_bytes().unwrap();
    bucket.write(&record_object(&plan), &bytes);
    bucket.record(AuditEvent::Approval {
        job,
        fence: Fence { dispatch: 1, receive: 1 },
        component: None,
        plan: plan.clone(),
        bytes: empty,
        until: LATER,
        stage: "asked".into(),
        asks: [Side::Customer].into(),
        summary,
        vendor: None,
        customer: None,
    });
    plan
}
