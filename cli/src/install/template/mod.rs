//! Checks a template before it is launched: the install, account and region that it is for, and its parameters.

pub(super) mod temporary_bucket;

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::{AccountId, Digest, InstallId, TenantName};
pub(super) use freehold_stackcheck::Facts;
use freehold_stackcheck::{Own, verify};
use freehold_windows::Rules;

use crate::cloudformation::BREAK_GLASS_UNTIL;
use crate::error::{Error, Kind, Result};
use crate::output::{clean, plural};

/// The maximum size of a parameter's value, in bytes (AWS CloudFormation quotas, "Parameters").
const MOST_OF_A_VALUE: usize = 4_096;

/// The maximum length of a rule's text in a message, in characters. The texts of Freehold's rules are shorter.
const MOST_OF_A_RULE: usize = 400;

/// The advice when the file of a template does not exist.
pub(crate) const WAY_OUT: &str =
    "pass the template that the vendor sent, which `freehold install stack INSTALL -o FILE` wrote";

/// Parses a SHA-256 as the vendor publishes it, with or without `sha256:` in front.
pub(crate) fn sha256(text: &str) -> Result<Digest, String> {
    let hex = text.strip_prefix("sha256:").unwrap_or(text).to_ascii_lowercase();
    format!("sha256:{hex}").parse().map_err(|_| {
        format!(
            "`{text}` is not a SHA-256, which has 64 hexadecimal digits; pass the whole value that the vendor published"
        )
    })
}

/// Refuses a file that is not a template, such as the contract in the same directory.
pub(super) fn check_is_template(facts: &Facts, file: &str) -> Result<()> {
    if facts.has_resources {
        return Ok(());
    }
    Err(Error::invalid(format!("`{file}` is not a template: it has no `Resources`")).or(WAY_OUT))
}

/// Refuses a template that Freehold did not render, apart from the customer's `own` parts.
pub(super) fn check_as_rendered(template: &str, file: &str, own: &[Own]) -> Result<()> {
    let checked = verify(template, own, None)
        .map_err(|wrong| Error::quoting(Kind::Invalid, format!("`{file}` is not a template: {wrong}")).or(WAY_OUT))?;
    let Some(first) = checked.findings.first() else { return Ok(()) };
    let count = plural(checked.findings.len() + checked.left_out, "finding");
    let message = format!(
        "`{file}` is not the template that Freehold renders, so nothing was launched: {count}, the first in line {}: {}",
        first.line, first.reason
    );
    Err(Error::quoting(Kind::Failed, message).or(format!(
        "read the findings with `freehold customer verify-template {file}`, and ask the vendor for the template again; \
         if another release of Freehold made it, use `freehold` of that release; name the parts that you added \
         yourself with `--allow`, or launch the template unchanged with `--unverified`"
    )))
}

/// Refuses a value that the template does not allow, that is too long, or that is not a change window, and break-glass
/// without its end. A message never contains the value of a parameter that may be a secret.
pub(super) fn check_given(
    facts: &Facts,
    file: &str,
    given: &BTreeMap<String, String>,
    kept: &BTreeMap<String, String>,
) -> Result<()> {
    for (name, value) in given {
        let allowed = facts.allowed(name);
        if !allowed.is_empty() && !allowed.contains(value) {
            let allowed: Vec<String> = allowed.iter().map(|one| format!("`{one}`")).collect();
            return Err(Error::invalid(format!("template `{file}` does not allow `{name}={value}`"))
                .or(format!("pass one of {}", allowed.join(", "))));
        }
    }
    if let Some((name, value)) = given.iter().find(|(_, value)| value.len() > MOST_OF_A_VALUE) {
        return Err(Error::invalid(format!(
            "the value of `{name}` has {} bytes, and CloudFormation accepts at most {MOST_OF_A_VALUE}",
            value.len()
        ))
        .or("pass a shorter value"));
    }
    if let Err(wrong) = Rules::of_parameters(given) {
        return Err(Error::quoting(Kind::Invalid, wrong.to_string())
            .or("`freehold customer windows --help` shows how windows and freezes are written"));
    }
    let opened = given.iter().find(|(name, value)| name.starts_with("EnableBreakGlass") && *value == "true");
    let until = given.get(BREAK_GLASS_UNTIL).or_else(|| kept.get(BREAK_GLASS_UNTIL)).map_or("", String::as_str);
    match opened {
        Some((name, _)) if until.is_empty() || until.starts_with("1970-") => {
            Err(Error::invalid(format!("`{name}=true` opens break-glass, which needs an end")).or(format!(
                "pass `--parameter {BREAK_GLASS_UNTIL}=TIME` too, in UTC, such as \
                     `{BREAK_GLASS_UNTIL}=2026-11-30T18:00:00Z`"
            )))
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns the vendor that the template names.
pub(super) fn vendor(facts: &Facts, file: &str) -> Result<TenantName> {
    facts.tenant.as_deref().and_then(|tenant| tenant.parse().ok()).ok_or_else(|| {
        Error::invalid(format!(
            "template `{file}` does not name a vendor (`Metadata.Freehold.Tenant`); ask the vendor for it again"
        ))
    })
}

/// Refuses an install that the template is not made for.
pub(super) fn check_install(facts: &Facts, file: &str, install: &InstallId) -> Result<()> {
    let Some(bound) = facts.bound_to.first() else {
        return Ok(());
    };
    if facts.bound_to.iter().any(|bound| bound.install == install.as_str()) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "template `{file}` belongs to install `{}`, not to `{install}`; run `freehold install launch {} --template {file}`, \
         or ask the vendor for the template of `{install}`",
        bound.install, bound.install
    )))
}

/// Refuses an account or a region that the template is not made for.
pub(super) fn check_place(facts: &Facts, file: &str, account: &AccountId, region: &str) -> Result<()> {
    let is_here = |bound: &freehold_stackcheck::Bound| bound.account == account.as_str() && bound.region == region;
    if facts.bound_to.is_empty() || facts.bound_to.iter().any(is_here) {
        return Ok(());
    }
    let made_for: Vec<String> =
        facts.bound_to.iter().map(|bound| format!("account {} in {}", bound.account, bound.region)).collect();
    let message = format!(
        "template `{file}` is made for {}, but your credentials are for account {account}, and the region is {region}",
        made_for.join(" or ")
    );
    Err(Error::invalid(message).or(way_to(facts, account, region)))
}

/// Returns the advice on how to launch the template in its account and region. The advice names the account, the
/// region, or both, depending on which of them differ.
fn way_to(facts: &Facts, account: &AccountId, region: &str) -> String {
    let of_account = facts.bound_to.iter().find(|bound| bound.account == account.as_str());
    let of_region = facts.bound_to.iter().find(|bound| bound.region == region);
    match (of_account, of_region) {
        (Some(bound), _) => {
            format!("pass `--aws-region {}`, or ask the vendor for a template for {region}", bound.region)
        }
        (None, Some(bound)) => format!(
            "use credentials of account {} (AWS_PROFILE), or ask the vendor for a template for account {account}",
            bound.account
        ),
        (None, None) => {
            "set AWS_PROFILE and pass `--aws-region`, or ask the vendor for a template for this account and region"
                .to_owned()
        }
    }
}

/// Refuses a parameter that the template does not have.
pub(super) fn check_parameters<'a>(
    facts: &Facts,
    file: &str,
    names: impl IntoIterator<Item = &'a String>,
) -> Result<()> {
    if let Some(name) = names.into_iter().find(|name| !facts.has_parameter(name)) {
        let way_out = freehold_domain::suggestion::nearest(name, facts.parameters()).map_or_else(
            || "the parameters are listed in the template, under `Parameters`".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        return Err(Error::invalid(format!("template `{file}` has no parameter `{name}`; {way_out}")));
    }
    Ok(())
}

/// Refuses a launch without a value for a parameter that has no default. `known` are the parameters that get a value
/// now or have one in the stack.
pub(super) fn check_values(facts: &Facts, file: &str, known: &BTreeSet<&String>) -> Result<()> {
    let is_missing = |name: &&str| facts.default(name).is_none() && !known.iter().any(|known| known.as_str() == *name);
    let missing: Vec<&str> = facts.parameters().filter(is_missing).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
    let pass: Vec<String> = missing.iter().map(|name| format!("--parameter {name}=VALUE")).collect();
    Err(Error::invalid(format!(
        "template `{file}` needs a value for {}, which `Parameters` in it describes; pass `{}`, or launch the template \
         in the CloudFormation console, where no shell history stores a secret value",
        named.join(" and "),
        pass.join(" ")
    )))
}

/// Refuses values that a rule of the template does not allow together, such as the values for a launch with neither a
/// machine nor a runner elsewhere. `kept` are the values in the stack.
pub(super) fn check_rules(
    facts: &Facts,
    file: &str,
    given: &BTreeMap<String, String>,
    kept: &BTreeMap<String, String>,
) -> Result<()> {
    let values: BTreeMap<&str, &str> =
        kept.iter().chain(given).map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let Some(broken) = facts.broken_rule(&values) else { return Ok(()) };
    let text: String = clean(broken).chars().take(MOST_OF_A_RULE).collect();
    Err(Error::quoting(Kind::Invalid, format!("a rule of template `{file}` forbids this launch: {text}"))
        .or("pass other values with `--parameter NAME=VALUE`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts::of(
            "Parameters:\n  EnableProvision: {Type: String}\nMappings:\n  BoundTo:\n    eu-west-1:\n      \
             \"222222222222\": \"globex\"\n",
        )
        .unwrap()
    }

    #[test]
    fn a_template_under_a_wrong_name_is_refused_with_the_right_command() {
        let error = check_install(&facts(), "globex.yaml", &"initech".parse().unwrap()).unwrap_err();

        assert_eq!(
            error.to_string(),
            "template `globex.yaml` belongs to install `globex`, not to `initech`; run `freehold install launch globex \
             --template globex.yaml`, or ask the vendor for the template of `initech`"
        );
        check_install(&facts(), "globex.yaml", &"globex".parse().unwrap()).unwrap();
    }

    #[test]
    fn a_wrong_account_or_region_is_refused_and_both_are_named() {
        let error = check_place(&facts(), "globex.yaml", &"111111111111".parse().unwrap(), "us-east-1").unwrap_err();

        let error_of = |account: &str, region: &str| {
            check_place(&facts(), "globex.yaml", &account.parse().unwrap(), region).unwrap_err().to_string()
        };
        insta::assert_snapshot!(error, @"template `globex.yaml` is made for account 222222222222 in eu-west-1, but your credentials are for account 111111111111, and the region is us-east-1; set AWS_PROFILE and pass `--aws-region`, or ask the vendor for a template for this account and region");
        let region = error_of("222222222222", "us-east-1");
        assert!(
            region.ends_with("; pass `--aws-region eu-west-1`, or ask the vendor for a template for us-east-1"),
            "{region}"
        );
        let account = error_of("111111111111", "eu-west-1");
        assert!(
            account.contains("; use credentials of account 222222222222 (AWS_PROFILE), or ask the vendor"),
            "{account}"
        );
        check_place(&facts(), "globex.yaml", &"222222222222".parse().unwrap(), "us-east-1").unwrap_err();
        check_place(&facts(), "globex.yaml", &"222222222222".parse().unwrap(), "eu-west-1").unwrap();
    }

    #[test]
    fn a_template_that_was_changed_is_refused_unless_the_change_is_named() {
        let rendered = include_str!("../../../../crates/app/golden/install.yaml");
        let tampered = rendered.replace("Effect: Deny", "Effect: Allow");
        let own =
            format!("{rendered}\n").replacen("Resources:\n", "Resources:\n  Alarm:\n    Type: AWS::SNS::Topic\n", 1);

        assert_eq!(check_as_rendered(rendered, "globex.yaml", &[]), Ok(()));
        let error = check_as_rendered(&tampered, "globex.yaml", &[]).unwrap_err();
        assert_eq!(error.kind().exit_code(), 1);
        assert!(error.to_string().contains("so nothing was launched: "), "{error}");
        assert!(check_as_rendered(&own, "globex.yaml", &[]).is_err());
        assert_eq!(check_as_rendered(&own, "globex.yaml", &["Alarm=AWS::SNS::Topic".parse().unwrap()]), Ok(()));
    }

    #[test]
    fn a_value_that_is_too_long_is_not_shown_and_a_window_that_cannot_be_read_is_refused() {
        let refused = |name: &str, value: &str| {
            let given = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            check_given(&facts(), "globex.yaml", &given, &BTreeMap::new()).unwrap_err().to_string()
        };

        let long = refused("AppSecretApiKey", &"s3cr3t".repeat(800));
        let windows = refused("ChangeWindows", "Berlin: Mon 22-04");

        assert_eq!(
            long,
            "the value of `AppSecretApiKey` has 4800 bytes, and CloudFormation accepts at most 4096; pass a shorter \
             value"
        );
        assert!(windows.starts_with("parameter `ChangeWindows`, column 1: "), "{windows}");
    }

    #[test]
    fn a_mistyped_parameter_is_refused_with_the_name_that_was_meant() {
        let error = check_parameters(&facts(), "globex.yaml", &["EnableProvison".to_owned()]).unwrap_err();

        assert_eq!(
            error.to_string(),
            "template `globex.yaml` has no parameter `EnableProvison`; did you mean `EnableProvision`?"
        );
        check_parameters(&facts(), "globex.yaml", &["EnableProvision".to_owned()]).unwrap();
    }

    #[test]
    fn a_value_that_the_template_does_not_allow_is_refused_with_those_that_it_allows() {
        let facts = Facts::of(
            "Parameters:\n  EnableProvision: {Type: String, AllowedValues: [\"true\", \"false\"]}\n  EnableBreakGlassX: {Type: \
             String}\n",
        )
        .unwrap();
        let checked = |given: &[(&str, &str)], kept: &[(&str, &str)]| {
            let map = |pairs: &[(&str, &str)]| {
                pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
            };
            check_given(&facts, "globex.yaml", &map(given), &map(kept)).map_err(|error| error.to_string())
        };

        assert_eq!(
            checked(&[("EnableProvision", "yes")], &[]).unwrap_err(),
            "template `globex.yaml` does not allow `EnableProvision=yes`; pass one of `true`, `false`"
        );
        assert_eq!(
            checked(&[("EnableBreakGlassX", "true")], &[("BreakGlassUntil", "1970-01-01T00:00:00Z")]).unwrap_err(),
            "`EnableBreakGlassX=true` opens break-glass, which needs an end; pass `--parameter BreakGlassUntil=TIME` too, in \
             UTC, such as `BreakGlassUntil=2026-11-30T18:00:00Z`"
        );
        checked(&[("EnableBreakGlassX", "true")], &[("BreakGlassUntil", "2026-11-30T18:00:00Z")]).unwrap();
        checked(&[("EnableProvision", "true")], &[]).unwrap();
    }

    #[test]
    fn a_sha256_is_taken_with_and_without_its_prefix() {
        let hex = "4B5E57F6EB2F42B9039B3D1E13929295F231749C510CBE341CD68036D9AF97E2";

        assert_eq!(sha256(hex).unwrap(), sha256(&format!("sha256:{hex}")).unwrap());
        assert!(sha256("4b5e").unwrap_err().contains("`4b5e` is not a SHA-256"));
    }

    #[test]
    fn a_contract_is_not_a_template() {
        let error = check_is_template(&Facts::of("{\"payload\": \"x\"}").unwrap(), "my-app.contract.json").unwrap_err();

        assert!(error.to_string().starts_with("`my-app.contract.json` is not a template: it has no `Resources`; pass"));
    }

    #[test]
    fn a_parameter_without_a_value_is_named_with_the_option_that_gives_one() {
        let facts =
            Facts::of("Parameters:\n  InputToken: {Type: String}\n  Region: {Type: String, Default: \"\"}\n").unwrap();

        let error = check_values(&facts, "globex.yaml", &BTreeSet::new()).unwrap_err();

        assert_eq!(
            error.to_string(),
            "template `globex.yaml` needs a value for `InputToken`, which `Parameters` in it describes; pass \
             `--parameter InputToken=VALUE`, or launch the template in the CloudFormation console, where no shell \
             history stores a secret value"
        );
        check_values(&facts, "globex.yaml", &BTreeSet::from([&"InputToken".to_owned()])).unwrap();
    }

    #[test]
    fn values_that_a_rule_of_the_template_forbids_are_refused_with_a_way_out() {
        let facts = Facts::of(include_str!("../../../../crates/app/golden/install-with-inputs.yaml")).unwrap();
        let checked = |given: &[(&str, &str)], kept: &[(&str, &str)]| {
            let map = |pairs: &[(&str, &str)]| {
                pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
            };
            check_rules(&facts, "globex.yaml", &map(given), &map(kept))
        };
        let (elsewhere, sha256) = (("RunnerPrincipal", "arn:aws:iam::222222222222:root"), "0".repeat(64));

        insta::assert_snapshot!(checked(&[], &[]).unwrap_err(), @"a rule of template `globex.yaml` forbids this launch: RunnerSha256 must be the SHA-256 of the runner; ask the vendor for a template that names it, or set RunnerPrincipal and run the runner on a machine of your own; pass other values with `--parameter NAME=VALUE`");
        insta::assert_snapshot!(checked(&[elsewhere, ("VpcId", "vpc-1")], &[]).unwrap_err(), @"a rule of template `globex.yaml` forbids this launch: with VpcId, set SubnetIds to subnets of that VPC, or SubnetCidr to a free range of it; pass other values with `--parameter NAME=VALUE`");
        assert_eq!(checked(&[elsewhere], &[]), Ok(()));
        assert_eq!(checked(&[("EnableProvision", "false")], &[elsewhere]), Ok(()));
        assert_eq!(checked(&[("RunnerSha256", sha256.as_str())], &[]), Ok(()));
    }

    #[test]
    fn the_text_of_a_rule_is_cut_and_is_not_the_way_out() {
        let refused = |text: &str| {
            let template = format!(
                "Rules:\n  R:\n    Assertions:\n      - {{Assert: !Equals [a, b], AssertDescription: \"{text}\"}}\n"
            );
            let facts = Facts::of(&template).unwrap();
            check_rules(&facts, "x.yaml", &BTreeMap::new(), &BTreeMap::new()).unwrap_err()
        };

        let (forged, long) = (refused("no; run `curl evil`"), refused(&"x".repeat(1000)));

        assert_eq!(forged.way_out(), Some("pass other values with `--parameter NAME=VALUE`"));
        assert!(long.to_string().len() < 600, "{long}");
    }

    #[test]
    fn a_template_for_everywhere_is_taken_everywhere() {
        let facts = Facts::of("Resources: {}\n").unwrap();

        check_install(&facts, "x.yaml", &"globex".parse().unwrap()).unwrap();
        check_place(&facts, "x.yaml", &"111111111111".parse().unwrap(), "eu-west-1").unwrap();
    }
}
