//! Decides which hosts the program in a box may reach. The runner serves these connections from outside of the box.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use freehold_egress::{Destination, Egress, Protocol, Refusal, Rule, Rules, Upstream, Way};
use freehold_iam_proxy::{DOMAINS, Endpoint, dns_suffix};
use freehold_protocol::contract::Terms;
use tokio::net::TcpListener;
use url::{Host, Url};

use super::loopback::{Serve, Service};
use super::program::Program;
use super::purpose::Purpose;
use crate::config::SandboxKind;
use crate::job::Job;

/// The address of the HTTP proxy in every box.
pub(super) const PROXY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3128);
/// The labels that every name of IAM has, also those of its VPC endpoints (`vpce-1.iam.us-east-1.vpce.amazonaws.com`).
const LABELS_OF_IAM: [&str; 2] = ["iam", "iam-fips"];
/// The host patterns by which the terms of a contract name AWS, one for each supported DNS suffix of AWS. [`aws`]
/// replaces them with a narrower list.
const AWS: [&str; 3] = ["*.amazonaws.com", "*.amazonaws.com.cn", "*.amazonaws.eu"];
/// Endpoints of AWS that do not depend on the install's region, of each partition that has some. IAM is not among them,
/// because the runner itself serves it.
const WITHOUT_REGION: [(&str, &[&str]); 4] = [
    (
        "",
        &[
            "cloudfront",
            "globalaccelerator.us-west-2",
            "organizations.us-east-1",
            "route53",
            "s3",
            "shield.us-east-1",
            "sts",
            "waf",
        ],
    ),
    ("us-gov-", &["organizations.us-gov-west-1", "route53.us-gov"]),
    ("cn-", &["cloudfront.cn-northwest-1", "organizations.cn-northwest-1", "route53"]),
    ("eusc-", &["organizations.eusc-de-east-1", "route53"]),
];
/// The parts before the region in the names of regional endpoints; `?` permits one label, the name of any service.
/// Names with two labels are not permitted in general: below `execute-api`, `appsync-api`, `elb` and `compute`, any
/// customer of AWS can have a name.
const OF_A_REGION: [&str; 8] =
    ["?", "*.s3", "*.s3-control", "*.dkr.ecr", "api.ecr", "streams.dynamodb", "api.sagemaker", "runtime.sagemaker"];
/// The maximum number of hosts with a port that get an address of their own inside the box.
const MOST_PAIRS: u8 = 60;

/// Returns the services through which `program` can reach hosts outside of its box.
pub(super) fn services(job: &Job, program: &Program<'_>, purpose: Purpose) -> Vec<Service> {
    let (hosts, account, own) = match purpose {
        Purpose::Program => (hosts(job, program), program.account_hosts.clone(), own_endpoint()),
        // The commands of a Dockerfile are not trusted, so they reach only the hosts that the component names.
        Purpose::ImageBuild => (program.hosts.clone(), None, None),
    };
    let rules = rules(&job.config.region, &hosts, inside(job, program));
    let pairs = pairs(&hosts, &rules);
    let (log, connections) = (job.log.clone(), Arc::clone(&job.connections));
    let refused = move |refusal: &Refusal| {
        log.line(&line(refusal));
        connections.refused(refusal);
    };
    let egress = Egress::new(rules, account, Upstream::from_env(), refused);
    let service = |at, name, way| Service { at, name, serve: Arc::new(Out { egress: egress.clone(), way }) };
    let mut all = vec![service(PROXY, None, Way::Proxy)];
    all.extend(own.map(|(at, to)| service(at, None, Way::Endpoint(to))));
    for (number, to) in (1..=MOST_PAIRS).zip(pairs) {
        let at = SocketAddr::new(Ipv4Addr::new(127, 1, 0, number).into(), to.port);
        all.push(service(at, Some(to.host.to_string()), Way::Pair(to)));
    }
    all
}

/// Returns a service that makes `url` reachable inside a box, if `url` is on the machine's loopback. Returns `None`
/// unless the runner's AWS endpoint is on the loopback too, as with the local cloud: only then are clusters and mirrors
/// there.
pub fn own_loopback(job: &Job, url: &str) -> Option<Service> {
    own_endpoint()?;
    let at = loopback(url).filter(|_| job.config.sandbox == SandboxKind::Bubblewrap)?;
    let to = at.to_string().parse().ok()?;
    let egress = Egress::new(Rules::default(), None, Upstream::none(), |_: &Refusal| {});
    Some(Service { at, name: None, serve: Arc::new(Out { egress, way: Way::Endpoint(to) }) })
}

/// The server for one listener. `way` defines the destinations that its connections may reach.
struct Out {
    egress: Egress,
    way: Way,
}

impl std::fmt::Debug for Out {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Out").field(&self.way).finish()
    }
}

#[async_trait]
impl Serve for Out {
    async fn serve(&self, listener: TcpListener) {
        let _serving = self.egress.serve(listener, self.way.clone());
        std::future::pending().await
    }
}

/// Returns the hosts that the program of a job may reach: the endpoints of AWS, the hosts in the release's terms, and
/// the hosts that the program names. The runner has compared these terms with those that the customer accepted
/// ([`crate::identity::consent`]). Some orders, such as those of builds, do not have terms.
fn hosts(job: &Job, program: &Program<'_>) -> Vec<String> {
    let named = terms(job).into_iter().flat_map(|terms| terms.hosts);
    let own = program.hosts.iter().chain(&program.inside_hosts).map(|host| of_url(host));
    aws(&job.config.region).chain(named.into_iter().filter(|host| !is_all_of_aws(host))).chain(own).collect()
}

/// Returns whether a host pattern matches all of AWS's domain, in any spelling and with any port.
fn is_all_of_aws(host: &str) -> bool {
    let written = host.parse::<Rule>().map_or_else(|_| host.to_owned(), |rule| rule.to_string());
    AWS.contains(&written.split(':').next().unwrap_or_default())
}

/// Returns the hosts that may be in a private network beside the endpoints of AWS: the hosts that the program, the
/// runner's config or the release's terms mark in this way.
fn inside(job: &Job, program: &Program<'_>) -> Vec<String> {
    let marked = terms(job).into_iter().flat_map(|terms| terms.inside_hosts);
    let own = program.inside_hosts.iter().chain(&job.config.inside_hosts);
    marked.chain(own.map(|host| of_url(host))).collect()
}

/// Returns the rules for the runner's own connections on behalf of a job: what the programs of the job may reach.
pub(super) fn rules_of(job: &Job) -> Rules {
    let named = terms(job).into_iter().flat_map(|terms| terms.hosts);
    let hosts: Vec<String> = named.filter(|host| !is_all_of_aws(host)).collect();
    let marked = terms(job).into_iter().flat_map(|terms| terms.inside_hosts);
    let inside = marked.chain(job.config.inside_hosts.iter().map(|host| of_url(host))).collect();
    rules(&job.config.region, &hosts, inside)
}

/// Returns rules that permit `hosts`. The endpoints of AWS and the hosts `inside` may be in a private network.
fn rules(region: &str, hosts: &[String], inside: Vec<String>) -> Rules {
    let permitted: Rules = parsed(hosts.iter().cloned()).collect();
    let permitted = permitted.except(parsed(Endpoint::names_of_iam(region)));
    permitted.except_labelled(&LABELS_OF_IAM, &DOMAINS).inside(parsed(aws(region).chain(inside)))
}

/// Returns the rules among `hosts`. A template at the beginning of a host matches one label, because the customer has
/// agreed to every value of it: `{{ .nuon.install.id }}.apps.example` is `?.apps.example`. A host with another template
/// is not a rule.
fn parsed(hosts: impl IntoIterator<Item = String>) -> impl Iterator<Item = Rule> {
    let rule = |host: String| match host.strip_prefix("{{").and_then(|rest| rest.split_once("}}.")) {
        Some((_, rest)) if !rest.contains(['{', '$']) => format!("?.{rest}").parse().ok(),
        Some(_) => None,
        None => host.parse().ok(),
    };
    hosts.into_iter().filter_map(rule)
}

/// Returns the terms in the job's order, if it has any.
fn terms(job: &Job) -> Option<Terms> {
    job.order.terms.as_ref()?.asked().ok().flatten()
}

/// Returns the endpoints of AWS for a region. All of AWS's domain would be too wide, because customers of AWS have
/// names below it.
fn aws(region: &str) -> impl Iterator<Item = String> {
    let suffix = dns_suffix(region);
    let partition = WITHOUT_REGION.iter().rfind(|(prefix, _)| region.starts_with(prefix));
    let without_region = partition.filter(|(prefix, _)| !prefix.is_empty() || suffix == dns_suffix(""));
    let without_region = without_region.map_or(&[][..], |(_, hosts)| *hosts).iter();
    let of_the_region = OF_A_REGION.map(|service| format!("{service}.{region}.{suffix}"));
    without_region.map(move |host| format!("{host}.{suffix}")).chain(of_the_region)
}

/// Returns the host of a URL, with the port that the URL names. If it names none, the host gets the default port of the
/// schemes `http`, `ssh` and `git`. Returns other texts unchanged, such as `host:port`, which `Url` reads as a scheme.
pub(super) fn of_url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let port = match scheme {
        "http" => Some(80),
        "ssh" => Some(22),
        "git" => Some(9418),
        _ => None,
    };
    match (Destination::parse(host, port), port) {
        (Ok(to), Some(_)) => to.to_string(),
        _ => host.to_owned(),
    }
}

/// Returns the destinations that a program can reach without the proxy, as far as `rules` permit them.
fn pairs(hosts: &[String], rules: &Rules) -> Vec<Destination> {
    let named = hosts.iter().filter_map(|host| pair(host));
    named.filter(|to| rules.permit(to, Protocol::Connect)).collect()
}

/// Returns the destination of a text with a host and a port. A program can reach it without the proxy, which clients of
/// databases and SSH do not support.
fn pair(host: &str) -> Option<Destination> {
    let is_name = !host.contains('*');
    is_name.then(|| host.parse().ok()).flatten()
}

/// Returns the runner's own AWS endpoint if it is on the machine's loopback. It has the same address inside the box.
pub(super) fn own_endpoint() -> Option<(SocketAddr, Destination)> {
    let at = loopback(&std::env::var("AWS_ENDPOINT_URL").ok()?)?;
    Some((at, at.to_string().parse().ok()?))
}

/// Returns the address of a URL if its host is a loopback address.
fn loopback(url: &str) -> Option<SocketAddr> {
    let url = Url::parse(url).ok()?;
    let ip = match url.host()? {
        Host::Domain("localhost") => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Host::Domain(_) => return None,
        Host::Ipv4(ip) => IpAddr::V4(ip),
        Host::Ipv6(ip) => IpAddr::V6(ip),
    };
    ip.is_loopback().then_some(SocketAddr::new(ip, url.port_or_known_default()?))
}

/// Returns the log line of a refused connection.
pub(super) fn line(refusal: &Refusal) -> String {
    let Refusal { host, port, reason, times, .. } = refusal;
    let again = if *times > 1 { format!(" ({times} times so far)") } else { String::new() };
    format!("[freehold: refused a connection to {host}:{port}{again}: {reason}]")
}

#[cfg(test)]
mod tests {
    use freehold_protocol::Partition;

    use super::*;

    #[test]
    fn only_endpoints_of_the_machine_itself_are_forwarded() {
        let found = |url: &str| loopback(url).map(|address| address.to_string());

        assert_eq!(found("http://127.0.0.1:4566").as_deref(), Some("127.0.0.1:4566"));
        assert_eq!(found("http://localhost:4566/").as_deref(), Some("127.0.0.1:4566"));
        assert_eq!(found("http://[::1]:4566/x").as_deref(), Some("[::1]:4566"));
        assert_eq!(found("https://vpce-1.sqs.eu-west-1.vpce.amazonaws.com"), None);
        assert_eq!(found("http://10.0.0.9:80"), None);
    }

    #[test]
    fn the_endpoints_of_aws_are_not_all_of_its_domain() {
        let rules: Rules = aws("eu-west-1").map(|host| host.parse::<Rule>().expect("a rule")).collect();
        let permitted =
            |host: &str| rules.permit(&format!("{host}.amazonaws.com:443").parse().expect("a host"), Protocol::Connect);

        for endpoint in
            ["sts", "ec2.eu-west-1", "sts-fips.eu-west-1", "b.c.s3.eu-west-1", "1.dkr.ecr.eu-west-1", "route53"]
        {
            assert!(permitted(endpoint), "{endpoint}");
        }
        for other in [
            "iam",
            "ec2.us-west-2",
            "ec2-192-0-2-1.eu-west-1.compute",
            "ec2-192-0-2-1.compute-1",
            "x.eu-west-1.elb",
            "x.execute-api.eu-west-1",
            "x.appsync-api.eu-west-1",
        ] {
            assert!(!permitted(other), "{other}");
        }
    }

    #[test]
    fn the_domain_of_each_partition_is_that_of_the_proof_of_the_role() {
        for partition in Partition::ALL {
            let suffix = dns_suffix(&format!("{}x-1", partition.region_prefix));

            assert_eq!(suffix, partition.dns_suffix, "{}", partition.name);
            assert!(DOMAINS.contains(&suffix), "{suffix}");
        }
    }

    #[test]
    fn each_partition_has_its_own_endpoints() {
        let of = |region: &str| aws(region).collect::<Vec<_>>();

        for host in ["?.cn-north-1.amazonaws.com.cn", "*.s3.cn-north-1.amazonaws.com.cn", "route53.amazonaws.com.cn"] {
            assert!(of("cn-north-1").iter().any(|one| one == host), "{host}");
        }
        assert!(of("cn-north-1").iter().all(|host| host.ends_with(".amazonaws.com.cn")));
        assert!(of("us-gov-west-1").iter().any(|host| host == "route53.us-gov.amazonaws.com"));
        assert_eq!(of("us-iso-east-1").len(), OF_A_REGION.len(), "no endpoint of another partition");
    }

    #[test]
    fn a_template_at_the_beginning_of_a_host_is_one_label() {
        let all = [
            "{{ .nuon.install.id }}.apps.example",
            "{{ .a }}.apps.example:8443",
            "{{ .domain }}",
            "{{ .a }}.example",
            "{{ .a }}.{{ .b }}.apps.example",
            "x-{{ .a }}.apps.example",
        ];

        let rules: Vec<String> = parsed(all.map(str::to_owned)).map(|rule| rule.to_string()).collect();

        assert_eq!(rules, ["?.apps.example", "?.apps.example:8443"]);
    }

    #[test]
    fn iam_is_left_to_the_runner_in_each_partition() {
        for region in ["eu-west-1", "us-east-1", "cn-north-1", "us-gov-west-1", "us-iso-east-1"] {
            let rules = rules(region, &aws(region).collect::<Vec<_>>(), Vec::new());
            let permitted = |host: &str| permits(&rules, host);

            assert!(
                !permitted(Endpoint::iam(region).expect("an endpoint").url.host_str().expect("a host")),
                "{region}"
            );
            assert!(permitted(Endpoint::eks(region).expect("an endpoint").url.host_str().expect("a host")), "{region}");
        }
        let iso = rules("us-iso-east-1", &aws("us-iso-east-1").collect::<Vec<_>>(), Vec::new());
        assert!(!permits(&iso, "iam-fips.us-iso-east-1.c2s.ic.gov"));
    }

    fn permits(rules: &Rules, host: &str) -> bool {
        rules.permit(&format!("{host}:443").parse().expect("a host"), Protocol::Connect)
    }

    /// A customer who reads such a host in a contract does not read that the IAM of the runner is passed by.
    #[test]
    fn no_host_of_the_terms_opens_another_way_to_iam() {
        let named = [
            "iam.amazonaws.com",
            "iam.amazonaws.com:443",
            "IAM.amazonaws.com.:443",
            "iam-fips.amazonaws.com",
            "iam.global.api.aws",
            "iam-fips.global.api.aws:443",
            "*.global.api.aws",
            "iam.amazonaws.com:80",
            "iam.amazonaws.com:8443",
            "*.amazonaws.com:80",
            "*.vpce.amazonaws.com",
            "vpce-1.iam.us-east-1.vpce.amazonaws.com:443",
            "iam.cn-north-1.amazonaws.com.cn:443",
            "db.example:5432",
        ];
        let hosts: Vec<String> = named.map(str::to_owned).into();

        let rules = rules("eu-west-1", &hosts, Vec::new());

        for host in ["iam.amazonaws.com", "iam-fips.amazonaws.com", "iam.global.api.aws", "iam-fips.global.api.aws"] {
            assert!(!permits(&rules, host), "{host}");
        }
        for (to, protocol) in [
            ("iam.amazonaws.com:80", Protocol::Http),
            ("iam.amazonaws.com:80", Protocol::Connect),
            ("iam.amazonaws.com:8443", Protocol::Connect),
            ("vpce-1.iam.us-east-1.vpce.amazonaws.com:443", Protocol::Connect),
            ("vpce-1-eu-west-1a.iam.us-east-1.vpce.amazonaws.com:443", Protocol::Connect),
            ("iam.cn-north-1.amazonaws.com.cn:443", Protocol::Connect),
        ] {
            assert!(!rules.permit(&to.parse().expect("a host"), protocol), "{to}");
        }
        assert!(permits(&rules, "vpce-1.sqs.eu-west-1.vpce.amazonaws.com"));
        let pairs: Vec<String> = pairs(&hosts, &rules).iter().map(ToString::to_string).collect();
        assert_eq!(pairs, ["db.example:5432"]);
    }

    #[test]
    fn all_of_aws_is_the_narrower_list_in_every_spelling() {
        for host in [
            "*.amazonaws.com",
            "*.AmazonAWS.com",
            "*.amazonaws.com.",
            "*.amazonaws.com:443",
            "*.amazonaws.com:8443",
            "*.amazonaws.com.cn",
        ] {
            assert!(is_all_of_aws(host), "{host}");
        }
        for host in ["*.compute.amazonaws.com", "x.amazonaws.com", "*.amazonaws.example", "amazonaws.com"] {
            assert!(!is_all_of_aws(host), "{host}");
        }
    }

    #[test]
    fn the_host_of_a_repository_is_permitted_with_its_port() {
        assert_eq!(of_url("https://token@github.com/acme/demo.git"), "github.com");
        assert_eq!(of_url("https://git.example:8443/demo"), "git.example:8443");
        assert_eq!(of_url("ssh://git@github.com/acme/demo"), "github.com:22");
        assert_eq!(of_url("http://git.example/x"), "git.example:80");
        assert_eq!(of_url("/workspace/upstream"), "/workspace/upstream");
    }

    #[test]
    fn a_host_with_a_port_is_a_pair_and_a_wildcard_is_not() {
        assert_eq!(pair("db.example:5432").map(|to| to.to_string()).as_deref(), Some("db.example:5432"));
        assert!(pair("api.example").is_none() && pair("*.example.org:443").is_none());
    }
}
