//! The wire format of orders, one of each kind of work.

use freehold_protocol::order::health::{Asks, CheckHealth, Probe, ProbeKind};

use super::*;

#[test]
fn orders() {
    golden(
        "order-container-image",
        &order(Work::ContainerImage(SyncImage { component: name("web"), artifact: artifact() })),
    );
    let arn = "arn:aws:sts::111111111111:assumed-role/deployer/ana".parse().unwrap();
    let web = order(Work::ContainerImage(SyncImage { component: name("web"), artifact: artifact() }));
    golden("order-start-by", &Order { start_by: Some(AT.plus_secs(3600)), ..web.clone() });
    golden("order-asked-by", &Order { asked_by: Some(AskedBy::Caller { arn }), ..web.clone() });
    let member = AskedBy::Member { member: "ana@example.com".parse().unwrap(), subject: "7f3c0a2e".parse().unwrap() };
    golden("order-asker", &Order { asker: Some(member), ..web.clone() });
    golden("order-now", &Order { now: true, ..web.clone() });
    golden("order-for-a-runner", &Order { runner: Some(KeyId::of(&key(2).verifying_key())), ..web });
    golden(
        "order-terraform-module",
        &order(Work::TerraformModule(ApplyTerraform {
            component: name("net"),
            artifact: artifact(),
            terraform_version: "1.11.4".into(),
            vars: BTreeMap::from([("region".into(), Value::from("{{ .nuon.install_stack.outputs.region }}"))]),
            env_vars: BTreeMap::from([("TF_LOG".into(), "warn".into())]),
            var_files: vec!["size = 3\n".into()],
        })),
    );
    golden(
        "order-sandbox",
        &order(Work::Sandbox(ApplyTerraform {
            component: ComponentName::sandbox(),
            artifact: artifact(),
            terraform_version: "1.11.4".into(),
            vars: BTreeMap::from([("cluster".into(), Value::from("{{ .nuon.install.id }}"))]),
            env_vars: BTreeMap::new(),
            var_files: Vec::new(),
        })),
    );
    golden(
        "order-pulumi",
        &order(Work::Pulumi(RunPulumi {
            component: name("net"),
            artifact: artifact(),
            pulumi_version: "3.140.0".into(),
            config: BTreeMap::from([("aws:region".into(), Value::from("{{ .nuon.install_stack.outputs.region }}"))]),
            env_vars: BTreeMap::from([("SIZE".into(), "3".into())]),
        })),
    );
    golden(
        "order-pulumi-sandbox",
        &order(Work::PulumiSandbox(RunPulumi {
            component: ComponentName::sandbox(),
            artifact: artifact(),
            pulumi_version: String::new(),
            config: BTreeMap::new(),
            env_vars: BTreeMap::new(),
        })),
    );
    let web = Work::ContainerImage(SyncImage { component: name("web"), artifact: artifact() });
    golden("order-detect-drift", &order(Work::DetectDrift(DetectDrift { what: Box::new(web.clone()) })));
    golden(
        "order-remove",
        &order(Work::Remove(RemovePart { what: Box::new(web.clone()), destroy_data: true, removes_policies: false })),
    );
    golden(
        "order-remove-with-policies",
        &order(Work::Remove(RemovePart { what: Box::new(web), destroy_data: false, removes_policies: true })),
    );
    golden(
        "order-cloudformation-stack",
        &order(Work::CloudformationStack(DeployStack {
            component: name("storage"),
            artifact: artifact(),
            stack_name: "{{ .nuon.install.id }}-storage".into(),
            parameters: BTreeMap::from([("Days".into(), "7".into())]),
            capabilities: vec!["CAPABILITY_NAMED_IAM".into()],
        })),
    );
    golden(
        "order-helm-chart",
        &order(Work::HelmChart(InstallChart {
            component: name("api"),
            artifact: artifact(),
            cluster: ClusterOf::Sandbox,
            release: "api".into(),
            namespace: "{{ .nuon.install.id }}".into(),
            storage_driver: "configmap".into(),
            take_ownership: true,
            values: BTreeMap::from([("image.tag".into(), Value::from("1.2"))]),
            values_files: vec!["replicas: 2\n".into()],
        })),
    );
    golden(
        "order-kubernetes-manifest",
        &order(Work::KubernetesManifest(ApplyManifest {
            component: name("ingress"),
            artifact: artifact(),
            cluster: ClusterOf::Component(name("net")),
            namespace: "web".into(),
        })),
    );
    golden(
        "order-job",
        &order(Work::KubernetesJob(RunKubernetesJob {
            component: name("migrate"),
            artifact: artifact(),
            cluster: ClusterOf::Sandbox,
            image: JobImage::Component {
                image_url: "{{ .nuon.components.web.outputs.image.repository }}".into(),
                tag: "{{ .nuon.components.web.outputs.image.tag }}".into(),
            },
            cmd: vec!["migrate".into()],
            args: vec!["--all".into()],
            env_vars: BTreeMap::from([("STAGE".into(), "{{ .nuon.install.id }}".into())]),
        })),
    );
    let image = order(Work::ContainerImage(SyncImage { component: name("web"), artifact: artifact() }));
    let token = serde_json::from_value(json!({
        "name": "api_token", "type": "string", "required": true, "sensitive": true, "customer": true,
    }));
    let copy = SecretCopy { secret: "token".into(), namespace: "web".into(), name: "web-token".into() };
    let copying =
        order(Work::CopySecrets(CopySecrets { cluster: ClusterOf::Sandbox, copies: vec![copy], keeps_others: false }));
    let secret = serde_json::from_value(json!({ "name": "token", "auto_generate": true }));
    golden("order-leftovers", &order(Work::Leftovers(Default::default())));
    let url = |text: &str| text.to_owned();
    let probes = vec![
        Probe { name: "up".into(), kind: ProbeKind::Http { url: url("https://{{ .nuon.install.id }}.example/up") } },
        Probe { name: "db".into(), kind: ProbeKind::Tcp { url: url("db.example:5432") } },
    ];
    let health = |asks: Asks, probes: Vec<Probe>| {
        Work::Health(CheckHealth { component: name("web"), asks, probes, hold_secs: 180, limit_secs: 360, gate: true })
    };
    let release = Asks::Release {
        cluster: ClusterOf::Sandbox,
        release: "web".into(),
        namespace: "web".into(),
        storage_driver: "secret".into(),
    };
    golden("order-health", &order(health(Asks::Nothing, probes)));
    let command = ["check", "--install", "{{ .nuon.install.id }}"].map(str::to_owned).to_vec();
    let exec = vec![Probe { name: "check".into(), kind: ProbeKind::Exec { command } }];
    golden("order-health-by-a-command", &order(health(Asks::Nothing, exec)));
    golden("order-health-of-a-release", &order(health(release, Vec::new())));
    let cluster = ClusterOf::Component(name("cluster"));
    golden("order-health-of-objects", &order(health(Asks::Objects { cluster }, Vec::new())));
    golden("order-health-of-a-stack", &order(health(Asks::Stack { stack_name: "web".into() }, Vec::new())));
    golden("order-copy-secrets", &Order { secrets: vec![secret.unwrap()], ..copying });
    golden("order-sensitive-inputs", &Order { sensitive_inputs: vec![token.unwrap()], ..image.clone() });
    let key = serde_json::from_value(json!({ "name": "key", "type": "string", "sensitive": true }));
    let sealed_inputs = BTreeMap::from([("key".to_owned(), Digest::of(b"a sealed value"))]);
    golden("order-sealed-inputs", &Order { sensitive_inputs: vec![key.unwrap()], sealed_inputs, ..image.clone() });
    let kept = KeptOutputs {
        part: name("database"),
        sandbox: false,
        var_name: "db".into(),
        serial: 5,
        job: job(),
        fence: FENCE,
        digests: BTreeMap::from([("password".into(), Digest::of(b"keyed"))]),
    };
    golden("order-kept-outputs", &Order { kept_outputs: vec![kept], ..image });
    let packed = |terms: &Terms| PackedTerms::of(&canonical::to_vec(terms).unwrap()).unwrap();
    let (accepted, asked) = (Terms { hosts: BTreeSet::new(), ..terms() }, terms());
    let change = TermsChange { accepted: packed(&accepted), asked: packed(&asked) };
    let belongs = OrderTerms { digest: asked.digest().unwrap(), change: Some(change), document: None };
    let image = order(Work::ContainerImage(SyncImage { component: name("web"), artifact: artifact() }));
    let with = Order { terms: Some(Box::new(belongs)), ..image };
    golden("order-terms", &with);
    let change = with.terms.unwrap().change.unwrap();
    assert_eq!(change.accepted.open(&accepted.digest().unwrap()).unwrap(), accepted);
    let step = ActionStep {
        name: "show".into(),
        command: "true".into(),
        inline_contents: String::new(),
        env_vars: BTreeMap::new(),
    };
    let action = RunAction {
        action: "health-check".parse().unwrap(),
        steps: vec![step],
        directories: Vec::new(),
        env_vars: BTreeMap::new(),
        idempotent: false,
        cluster: None,
        image: String::new(),
    };
    golden("order-action", &order(Work::Action(action.clone())));
    let directory =
        StepDirectory { steps: vec![0], component: name("action-health-check-step-1"), artifact: artifact() };
    let in_directory = RunAction { directories: vec![directory], ..action.clone() };
    golden("order-action-in-directory", &order(Work::Action(in_directory)));
    let image = "{{ .nuon.components.own.outputs.reference }}".into();
    let tool_image = Some(Box::new(ToolImage { component: name("tools"), artifact: artifact() }));
    golden("order-tool-image", &Order { tool_image, ..order(Work::Action(RunAction { image, ..action })) });
    golden(
        "order-build",
        &order(Work::Build(BuildArtifact {
            build: BuildId::derive(&"demo".parse().unwrap(), &Digest::of(b"source"), &name("net")),
            component: name("net"),
            package: Package::TerraformModule,
            source: Source::Git {
                branch: String::new(),
                url: "https://example.com/x.git".into(),
                commit: "0".repeat(40),
                directory: "net".into(),
            },
            recipe: None,
            repository: "fh-acme".into(),
        })),
    );
    golden(
        "order-preflight",
        &order(Work::Preflight(CheckInstall {
            terraform_versions: ["1.11.3".to_owned()].into(),
            tools: BTreeSet::from(["helm".into()]),
            stacks: ["{{ .nuon.install.id }}-storage".to_owned()].into(),
            programs: true,
            disk_bytes: 80_000,
            hosts: ["registry.example:8443".to_owned()].into(),
            permissions: vec![Permission {
                actions: ["s3:CreateBucket".to_owned()].into(),
                resources: ["arn:aws:s3:::{{ .nuon.install.id }}".to_owned()].into(),
            }],
            permissions_left_out: 2,
            clusters: vec![ExistingCluster {
                name: "{{ .nuon.inputs.cluster }}".into(),
                namespaces: ["web".to_owned()].into(),
            }],
        })),
    );
    golden(
        "order-upgrade",
        &order(Work::Upgrade(UpgradeRunner {
            version: "0.2.0".into(),
            program: Digest::of(b"runner"),
            archive: Digest::of(b"archive"),
            archive_size: 4_000_000,
            release: SignedSums {
                sums: format!("{}  arm64/freehold-runner\n", Digest::of(b"runner").hex()),
                signature: "c2lnbmF0dXJl".into(),
            },
            health_secs: 180,
        })),
    );
    golden(
        "preflight-findings",
        &vec![
            Finding {
                check: "disk".into(),
                state: Verdict::Pass,
                detail: "8.0 GiB are free".into(),
                fix: String::new(),
            },
            Finding {
                check: "state bucket".into(),
                state: Verdict::Fail,
                detail: "AccessDenied".into(),
                fix: "allow `s3:ListBucket`".into(),
            },
        ],
    );
    let signers = vec![
        Signer::Key { public_key: "-----BEGIN PUBLIC KEY-----\n...\n-----END PUBLIC KEY-----\n".into() },
        Signer::Keyless {
            issuer: "https://accounts.example".into(),
            subject: String::new(),
            subject_regexp: "^build@".into(),
        },
    ];
    golden(
        "order-build-signed-image",
        &order(Work::Build(BuildArtifact {
            build: BuildId::derive(&"demo".parse().unwrap(), &Digest::of(b"source"), &name("web")),
            component: name("web"),
            package: Package::Image,
            source: Source::Image { reference: "example.com/web:1".into() },
            recipe: Some(Recipe::SignedImage { signers }),
            repository: "fh-acme".into(),
        })),
    );
}
