//! A lineage holds when nothing is changed, and whatever is changed in it is found and named.

mod forgeries;
mod keys;

use std::collections::{BTreeMap, BTreeSet};

use ed25519_dalek::SigningKey;
use freehold_protocol::canonical;
use freehold_protocol::envelope::Delegate;
use freehold_protocol::lineage::{Approval, Broken, FORMAT, Lineage, Link, LinkName, Made, Proof, Used};
use freehold_protocol::order::{
    Artifact, BuildArtifact, Descriptor, Mode, Order, Package, Recipe, Signer, Source, SyncImage, Work,
};
use freehold_protocol::provenance::{
    BuildFacts, ExternalParameters, InternalParameters, Provenance, ResourceDescriptor, Statement, sha256,
};
use freehold_protocol::report::{AttemptEvent, AttemptReport, Fence, Hello, Outcome, Report, ReportBody};
use freehold_protocol::{
    BuildId, ComponentName, Digest, Envelope, InstallId, JobId, KeyUse, KeyUses, TenantName, Timestamp, WorkflowId,
};
use serde_json::{Value, json};

use self::keys::{key, public, root};

const AT: Timestamp = Timestamp::from_millis(1_795_250_000_000);
const FENCE: Fence = Fence { dispatch: 1, receive: 1 };

type Change = fn(&mut Lineage);

fn tenant() -> TenantName {
    "acme".parse().unwrap()
}

fn component() -> ComponentName {
    "web".parse().unwrap()
}

fn source() -> Source {
    Source::Image { reference: "registry.example/web:1.2".into() }
}

fn descriptor(text: &str) -> Descriptor {
    let media_type = "application/example".into();
    Descriptor { media_type, digest: Digest::of(text.as_bytes()), size: text.len() as u64 }
}

/// One runner and its install.
struct Place {
    install: InstallId,
    runner: SigningKey,
    workflow: WorkflowId,
    job: JobId,
    /// When its order was issued.
    at: Timestamp,
}

impl Place {
    fn new(install: &str, seed: u8, at: Timestamp) -> Self {
        let install: InstallId = install.parse().unwrap();
        let workflow = WorkflowId::derive(install.as_str(), "golden");
        Self { runner: key(seed), job: JobId::derive(&workflow, "web"), workflow, install, at }
    }

    fn order(&self, work: Work, context: Value) -> Order {
        Order {
            tenant: tenant(),
            install: self.install.clone(),
            workflow: self.workflow.clone(),
            job: self.job.clone(),
            dispatch: FENCE.dispatch,
            group: "component:web".parse().unwrap(),
            serial: 1,
            issued_at: self.at,
            start_by: None,
            not_after: self.at.plus_secs(4200),
            timeout_secs: 600,
            mode: Mode::Maintenance,
            role: None,
            asked_by: None,
            asker: None,
            asked_why: None,
            now: false,
            runner: None,
            redelivery: work.redelivery(),
            work,
            context,
            skip_noops: false,
            sensitive_inputs: Vec::new(),
            sealed_inputs: BTreeMap::new(),
            secrets: Vec::new(),
            kept_outputs: Vec::new(),
            tool_image: None,
            terms: None,
            receipt: None,
            policies: Vec::new(),
            approval: None,
            approved: None,
            must_understand: Default::default(),
        }
    }

    fn report(&self, at: Timestamp, body: ReportBody) -> Report {
        let (tenant, install, runner) = (tenant(), self.install.clone(), public(&self.runner).key_id());
        Report { tenant, install, runner, at, head: None, body }
    }

    fn hello(&self) -> Report {
        let hello = Hello {
            public_key: public(&self.runner),
            version: "0.1.0".into(),
            slots: 4,
            host: "i-1".into(),
            inputs: BTreeMap::new(),
            secrets: None,
            accepted_contract: None,
            proof: None,
            sealing_key: None,
            changes: None,
            decisions: Vec::new(),
            roles: None,
        };
        self.report(AT, ReportBody::Hello(hello))
    }

    fn finished(&self, outcome: Outcome) -> Report {
        let event = AttemptEvent::finished(outcome, "done\n");
        let attempt = AttemptReport { job: self.job.clone(), fence: FENCE, seq: 3, event };
        self.report(self.at.plus_secs(20), ReportBody::Attempt(attempt))
    }

    fn proof(&self, order: &Order, report: &Report) -> Proof {
        Proof {
            install: self.install.clone(),
            job: self.job.clone(),
            fence: FENCE,
            runner: public(&self.runner).key_id(),
            at: self.at.plus_secs(21),
            order: Some(ordered(order)),
            report: Some(Envelope::seal(report, &[&self.runner]).unwrap()),
            hello: Some(Envelope::seal(&self.hello(), &[&self.runner]).unwrap()),
        }
    }
}

fn ordered(order: &Order) -> Envelope {
    delegated(order, AT, AT.plus_secs(13 * 3600), 1)
}

fn delegated(order: &Order, not_before: Timestamp, not_after: Timestamp, root: u8) -> Envelope {
    certified(order, (not_before, not_after), root, [KeyUse::Orders].into())
}

fn certified(order: &Order, (not_before, not_after): (Timestamp, Timestamp), root: u8, uses: KeyUses) -> Envelope {
    let delegate =
        Delegate { tenant: tenant(), public_key: public(&key(2)), not_before, not_after, send_until: None, uses };
    let cert = Envelope::seal(&delegate, &[&key(root)]).unwrap();
    Envelope::seal_delegated(order, &key(2), &cert).unwrap()
}

fn bare() -> Artifact {
    let manifest = descriptor("manifest");
    Artifact {
        digest: manifest.digest.clone(),
        media_type: manifest.media_type.clone(),
        manifests: vec![manifest],
        blobs: vec![descriptor("config"), descriptor("layer")],
        provenance: None,
    }
}

fn build_id() -> (BuildId, Digest) {
    let digest = canonical::digest(&(source().pinned(), Package::Image)).unwrap();
    (BuildId::derive(&"shop".parse().unwrap(), &digest, &component()), digest)
}

fn statement(place: &Place) -> Statement {
    let (build, source_digest) = build_id();
    let app = "shop".parse().unwrap();
    let external = ExternalParameters { app, component: component(), package: Package::Image, source: source() };
    let internal = InternalParameters { tenant: tenant(), build, job: place.job.clone(), source_digest };
    let facts = BuildFacts {
        resolved: vec![ResourceDescriptor { uri: "oci://registry.example/web".into(), digest: sha256(&bare().digest) }],
        versions: [("freehold-runner".to_owned(), "0.1.0".to_owned())].into(),
        started_at: place.at.plus_secs(2),
        finished_at: place.at.plus_secs(19),
    };
    Statement::new(&bare().digest, external, internal, facts)
}

fn artifact(statement: &Statement) -> Artifact {
    let statement = Envelope::seal(statement, &[&key(1)]).unwrap();
    Artifact { provenance: Some(Box::new(Provenance { statement, referrer: Digest::of(b"referrer") })), ..bare() }
}

fn builder() -> Place {
    Place::new("build", 10, AT)
}

fn customer() -> Place {
    Place::new("globex", 20, AT.plus_secs(3600))
}

fn build_work() -> Work {
    let (build, _) = build_id();
    Work::Build(BuildArtifact {
        build,
        component: component(),
        package: Package::Image,
        source: source(),
        repository: "fh-acme".into(),
        recipe: None,
    })
}

fn made() -> Made {
    let place = builder();
    let artifact = artifact(&statement(&place));
    let report = place.finished(Outcome::Succeeded {
        outputs: BTreeMap::new(),
        sensitive: BTreeMap::new(),
        artifact: Some(artifact.clone()),
    });
    Made {
        app: "shop".parse().unwrap(),
        component: component(),
        build: build_id().0,
        package: Package::Image,
        source: source(),
        provenance: artifact.provenance,
        revoked: None,
        proof: place.proof(&place.order(build_work(), json!({ "nuon": {} })), &report),
    }
}

fn context() -> Value {
    json!({ "nuon": { "app": { "id": "shop" }, "cloud_account": { "aws": { "account_id": "222222222222" } } } })
}

fn deploy_work() -> Work {
    Work::ContainerImage(SyncImage { component: component(), artifact: artifact(&statement(&builder())) })
}

fn success() -> Outcome {
    let outputs = [("image".to_owned(), json!({ "digest": bare().digest }))].into();
    Outcome::Succeeded { outputs, sensitive: BTreeMap::new(), artifact: None }
}

fn used() -> Used {
    let place = customer();
    Used {
        app: "shop".parse().unwrap(),
        component: component(),
        account: "222222222222".parse().unwrap(),
        build: build_id().0,
        workflow: place.workflow.clone(),
        approval: Approval::NoneRequired,
        disabled: None,
        proof: place.proof(&place.order(deploy_work(), context()), &place.finished(success())),
    }
}

fn lineage() -> Lineage {
    Lineage {
        format: FORMAT,
        tenant: tenant(),
        root_key: root(),
        succession: Vec::new(),
        artifact: bare().digest,
        builds: vec![made()],
        uses: vec![used()],
    }
}

fn broken(lineage: &Lineage) -> Vec<(LinkName, Broken)> {
    let links = lineage.verify(&root());
    links.into_iter().filter_map(|link| Some((link.name, link.finding.err()?))).collect()
}

/// Changes the lineage and says which link tells of it first, and how.
fn first_broken(change: impl FnOnce(&mut Lineage)) -> String {
    let mut changed = lineage();
    change(&mut changed);
    let all = broken(&changed);
    let (name, why) = all.first().expect("nothing is broken");
    format!("{}: {why}", name.as_str())
}

#[test]
fn an_untouched_lineage_holds_link_by_link() {
    let links = lineage().verify(&root());

    let line = |link: &Link| format!("{}: {}", link.name.as_str(), link.finding.as_ref().unwrap());
    insta::assert_snapshot!(links.iter().map(line).collect::<Vec<_>>().join("\n"), @r"
    root key: key 34750f98bd59fcfc946da45aaabe933b of tenant acme
    statement: signed by the root key for urn:freehold:tenant:acme:build-runner
    source: oci://registry.example/web sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f
    build order: order 1 of job job_797a566d49d90d2939e8, signed for the tenant
    build runner key: key 506ef1879d748ce0713b0dd01da32ad2 announced from i-1
    build report: attempt 1.1 succeeded, as runner 506ef1879d748ce0713b0dd01da32ad2 reported
    build times: ordered 21000 ms before the report arrived
    order: order 1 of job job_6804c79273041f1b3ac5, signed for the tenant
    sync: sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f of build bld_e2ebd70dcaf832586cef
    approval: none required
    runner key: key 7300c0ae1429cd153252736a781b78f4 announced from i-1
    deploy report: attempt 1.1 succeeded, as runner 7300c0ae1429cd153252736a781b78f4 reported
    times: ordered 21000 ms before the report arrived
    ");
}

#[test]
fn what_a_build_followed_beside_its_source_names_it_too() {
    let signed = Recipe::SignedImage { signers: vec![Signer::Key { public_key: "KEY".into() }] };
    let long = Recipe::Manifest { text: "kind: Namespace\n".repeat(10_000) };

    for recipe in [signed, long] {
        let [with, without] = followed(recipe);

        assert_eq!(with, []);
        assert_eq!(without.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["source"]);
    }
}

#[test]
fn a_build_of_the_version_itself_has_the_manifest_in_its_order_as_its_source() {
    let text = "kind: Namespace\n".to_owned();
    let order = |text: &str| Recipe::Manifest { text: text.to_owned() };
    let lineage = made_of(&Source::Version, &order(&text), Vec::new(), Some(order(&text)));
    let another = made_of(&Source::Version, &order(&text), Vec::new(), Some(order("kind: Pod\n")));

    let links = lineage.verify(&root());
    let source = links.into_iter().find(|link| link.name.as_str() == "source").unwrap();

    assert_eq!(broken(&lineage), []);
    assert_eq!(source.finding.unwrap(), format!("the manifest in the order {}", Digest::of(text.as_bytes())));
    assert_eq!(broken(&another).iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["source"]);
}

/// Returns what does not hold of a build that followed `recipe`, with an order that carries it and with one that does not.
fn followed(recipe: Recipe) -> [Vec<(LinkName, Broken)>; 2] {
    let by = |ordered: Option<Recipe>| {
        let found =
            vec![ResourceDescriptor { uri: "oci://registry.example/web".into(), digest: sha256(&bare().digest) }];
        broken(&made_of(&source(), &recipe, found, ordered))
    };
    [by(Some(recipe.clone().packed().unwrap())), by(None)]
}

/// Returns the lineage of a build of `source` that followed `recipe` and used what was `found`; its order has `ordered`.
fn made_of(source: &Source, recipe: &Recipe, found: Vec<ResourceDescriptor>, ordered: Option<Recipe>) -> Lineage {
    let digest = canonical::digest(&(source.pinned(), Package::Image, recipe)).unwrap();
    let build = BuildId::derive(&"shop".parse().unwrap(), &digest, &component());
    let place = builder();
    let mut statement = statement(&place);
    let definition = &mut statement.predicate.build_definition;
    definition.external_parameters.source = source.clone();
    definition.resolved_dependencies = found;
    let internal = &mut definition.internal_parameters;
    (internal.build, internal.source_digest) = (build.clone(), digest);
    let artifact = artifact(&statement);
    let report = place.finished(Outcome::Succeeded {
        outputs: BTreeMap::new(),
        sensitive: BTreeMap::new(),
        artifact: Some(artifact.clone()),
    });
    let Work::Build(work) = build_work() else { panic!("build") };
    let work = BuildArtifact { build: build.clone(), recipe: ordered, source: source.clone(), ..work };
    let order = place.order(Work::Build(work), json!({}));
    let (source, provenance) = (source.clone(), artifact.provenance);
    let made = Made { build, source, provenance, proof: place.proof(&order, &report), ..made() };
    Lineage { builds: vec![made], uses: Vec::new(), ..lineage() }
}

#[test]
fn the_document_is_written_as_it_always_was() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/lineage.json");
    let written = format!("{}\n", serde_json::to_string_pretty(&lineage()).unwrap());
    if std::env::var_os("FREEHOLD_UPDATE").is_some() {
        std::fs::write(path, &written).unwrap();
    }

    let kept = std::fs::read_to_string(path).unwrap();

    assert_eq!(written, kept);
    assert_eq!(serde_json::from_str::<Lineage>(&kept).unwrap(), lineage());
}

#[test]
fn another_root_key_breaks_what_stands_on_it() {
    let links = lineage().verify(&public(&key(9)));

    let named: BTreeSet<_> = links.iter().filter(|link| link.finding.is_err()).map(|link| link.name.as_str()).collect();
    assert_eq!(
        named.into_iter().collect::<Vec<_>>(),
        ["build order", "build times", "order", "root key", "source", "statement", "sync", "times"]
    );
}

#[test]
fn a_missing_piece_is_a_gap_of_its_link() {
    let gaps: [Change; 8] = [
        |l| l.builds.clear(),
        |l| l.builds[0].provenance = None,
        |l| l.builds[0].proof.order = None,
        |l| l.builds[0].proof.hello = None,
        |l| l.builds[0].proof.report = None,
        |l| l.uses[0].proof.order = None,
        |l| l.uses[0].proof.hello = None,
        |l| l.uses[0].proof.report = None,
    ];

    let found: Vec<String> = gaps.into_iter().map(first_broken).collect();

    insta::assert_snapshot!(found.join("\n"), @r"
    build: the record of a build is missing
    statement: artifact `sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f` has no provenance; build its component again
    build order: the signed order is missing
    build runner key: the announcement of the runner's key is missing
    build report: the signed report of success is missing
    order: the signed order is missing
    runner key: the announcement of the runner's key is missing
    deploy report: the signed report of success is missing
    ");
}

#[test]
fn an_order_that_was_sent_late_by_a_younger_delegate_holds() {
    let place = customer();
    let order = place.order(deploy_work(), context());
    let mut late = lineage();
    let mut report = place.finished(success());
    report.at = place.at.plus_secs(3700);
    late.uses[0].proof = place.proof(&order, &report);
    late.uses[0].proof.at = place.at.plus_secs(3701);
    late.uses[0].proof.order = Some(delegated(&order, place.at.plus_secs(3600), place.at.plus_secs(13 * 3600), 1));

    assert_eq!(broken(&late), []);
}

#[test]
fn times_that_contradict_each_other_are_named() {
    let place = customer();
    let order = place.order(deploy_work(), context());
    let at = |at: Timestamp| {
        let report = Report { at, ..place.finished(success()) };
        place.proof(&order, &report)
    };
    let (early, late) = (AT, AT.plus_secs(9 * 3600));

    let found = [
        first_broken(|l| l.uses[0].proof = at(early)),
        first_broken(|l| l.uses[0].proof = at(late)),
        first_broken(|l| l.uses[0].proof.at = early),
        first_broken(|l| l.builds[0].proof.at = late),
    ];

    insta::assert_snapshot!(found.join("\n"), @r"
    times: the order (1795253600000 ms) is later than the report (1795250000000 ms)
    times: the report (1795282400000 ms) is later than its arrival (1795253621000 ms)
    times: the report (1795253620000 ms) is later than its arrival (1795250000000 ms)
    times: the build (1795282400000 ms) is later than the order of the deploy (1795253600000 ms)
    ");
    // A machine's clock may be ten minutes off.
    let mut skewed = lineage();
    skewed.uses[0].proof = at(place.at.plus_secs(620));
    assert_eq!(broken(&skewed), []);
}

#[test]
fn a_lineage_is_cut_down_to_the_uses_that_are_asked_for() {
    let mut two = lineage();
    two.builds.push(Made { build: BuildId::derive(&"shop".parse().unwrap(), &bare().digest, &component()), ..made() });

    let one = two.clone().only(|used| used.proof.install.as_str() == "globex");
    let none = two.only(|used| used.proof.install.as_str() == "initech");

    assert_eq!(one, lineage());
    assert_eq!((none.builds.len(), none.uses.len()), (2, 0));
}

#[test]
fn a_document_of_the_format_before_is_read_without_its_enrolment_keys_and_a_later_one_is_refused_by_its_number() {
    let mut former = serde_json::to_value(lineage()).unwrap();
    former["format"] = json!(1);
    let mut mixed = serde_json::to_value(lineage()).unwrap();
    for document in [&mut former, &mut mixed] {
        document["builds"][0]["proof"]["enrolment_key"] = json!(public(&key(30)));
        document["uses"][0]["proof"]["enrolment_key"] = json!(public(&key(31)));
    }
    let mut later = serde_json::to_value(lineage()).unwrap();
    later["format"] = json!(3);
    let parse = |document: &Value| Lineage::parse(document.to_string().as_bytes());

    assert_eq!(parse(&former).unwrap(), lineage());
    assert_eq!(parse(&json!(lineage())).unwrap(), lineage());
    assert!(parse(&mixed).unwrap_err().to_string().starts_with("unknown field `enrolment_key`"));
    assert_eq!(parse(&later).unwrap_err().to_string(), "its format is 3, and this version reads formats 1 and 2");
}
