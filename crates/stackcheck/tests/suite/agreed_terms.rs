//! With the contract, each role of a template has the policies of the terms and no other.

use std::collections::BTreeMap;

use freehold_protocol::app_version::RolePolicy;
use freehold_protocol::contract::Terms;
use freehold_stackcheck::{Agreed, Finding, verify};
use serde_json::{Value, json};

const RENDERED: &str = include_str!("../../../app/golden/install-with-inputs.yaml");
const TABLES: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"dynamodb:*","Resource":"arn:aws:dynamodb:*:{{ .nuon.install_stack.outputs.account_id }}:table/{{ .nuon.install.id }}-*"}]}"#;

fn terms(tables: &str, policy_inputs: &Value) -> Terms {
    let inline = |name: &str, document: &str| json!({ "inline": { "name": name, "document": document } });
    let everything = r#"{"Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}"#;
    let roles = json!([
        { "role": "provision", "on": true, "policies": [{ "managed": "PowerUserAccess" }, inline("tables", tables)] },
        { "role": "break-glass", "on": false, "policies": [inline("all", everything)] },
        { "role": "custom-support", "on": true, "policies": [{ "managed": "ReadOnlyAccess" }] },
    ]);
    let app = RENDERED.lines().find_map(|line| line.split_once("App: \"")?.1.split('"').next()).unwrap();
    let terms = json!({
        "format": 1, "app": app, "roles": roles, "hosts": [], "actions": [], "policy_inputs": policy_inputs,
        "customer_inputs": customer_inputs(),
        "secrets": {
            "admin_password": {}, "api_key": { "shared": true }, "certificate": {}, "session-key": { "generated": true },
        },
    });
    serde_json::from_value(terms).unwrap()
}

/// Returns the inputs that the golden stack asks the customer for.
fn customer_inputs() -> Value {
    let plain =
        ["colour", "days", "debug", "domain-name", "extra", "limit", "modules", "open", "replicas", "values", "zones"];
    let sensitive = ["api_token", "otp_seed"].map(|name| (name.to_owned(), json!({ "sensitive": true })));
    plain.map(|name| (name.to_owned(), json!({}))).into_iter().chain(sensitive).collect()
}

/// Returns the golden stack with the digest of these terms.
fn asking_for(terms: &Terms) -> String {
    let default = RENDERED.lines().find_map(|line| line.trim().strip_prefix("Default: sha256:")).unwrap();
    RENDERED.replace(&format!("sha256:{default}"), terms.digest().unwrap().as_str())
}

fn found(template: &str, terms: &Terms, answers: &[(&str, Value)]) -> Vec<Finding> {
    let answers: BTreeMap<String, Value> =
        answers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    verify(template, &[], Some(&Agreed { terms, answers: &answers })).unwrap().findings
}

fn is_found(template: &str, terms: &Terms, of: &str, line: &str, reason: &str) {
    let all = found(template, terms, &[]);
    let at = 1 + template.lines().position(|text| text.contains(line)).unwrap();
    let is_it = |one: &Finding| one.of == of && one.line == at && one.reason.contains(reason);
    assert!(all.iter().any(is_it), "{at} {of} {reason}: {all:#?}");
}

#[test]
fn a_stack_with_the_policies_of_the_terms_has_no_finding() {
    let terms = terms(TABLES, &json!({}));

    assert_eq!(found(&asking_for(&terms), &terms, &[]), []);
}

#[test]
fn policies_that_the_terms_do_not_have_are_found_in_their_lines() {
    let terms = terms(TABLES, &json!({}));
    let template = asking_for(&terms);
    let table = "arn:aws:dynamodb:*:222222222222:table/globex-*";
    let wider = template.replacen(r#""Action":"dynamodb:*","#, r#""Action":"*","#, 1);
    let elsewhere = template.replacen(table, "*", 1);
    let more = r#"Policies: [{"PolicyDocument":{"Statement":[{"Action":"*","Effect":"Allow","Resource":"*"}]},"PolicyName":"more"}]"#;
    let maintenance = template.find("  MaintenanceRole:").unwrap();
    let (before, after) = template.split_at(maintenance);
    let given = format!("{before}{}", after.replacen("Policies: []", more, 1));
    let powerful = template.replacen("aws:policy/PowerUserAccess", "aws:policy/AdministratorAccess", 1);
    let managed = template.replacen(
        "aws:policy/ReadOnlyAccess\"",
        "aws:policy/ReadOnlyAccess\"\n        - \"arn:aws:iam::aws:policy/AdministratorAccess\"",
        1,
    );

    is_found(&wider, &terms, "ProvisionRole", "\"PolicyName\":\"tables\"", "is `*`, and Freehold renders `dynamodb:*`");
    is_found(&elsewhere, &terms, "ProvisionRole", "\"PolicyName\":\"tables\"", "is `*`, and Freehold renders");
    is_found(&given, &terms, "MaintenanceRole", "\"PolicyName\":\"more\"", "has 1 items, and Freehold renders 0");
    is_found(
        &powerful,
        &terms,
        "ProvisionRole",
        "AdministratorAccess",
        "Freehold renders `arn:aws:iam::aws:policy/PowerUserAccess`",
    );
    is_found(
        &managed,
        &terms,
        "CustomSupportRole",
        "AdministratorAccess",
        "is not in the template that Freehold renders",
    );
    // Nothing but the terms tells these from what the vendor may write.
    for template in [wider, elsewhere, given, powerful, managed] {
        assert_eq!(verify(&template, &[], None).unwrap().findings, []);
    }
}

#[test]
fn a_managed_policy_with_dots_in_its_path_is_found_with_and_without_the_terms() {
    let mut terms = terms(TABLES, &json!({}));
    terms.roles[0].policies[0] = RolePolicy::Managed("../PowerUserAccess".to_owned());
    let template = asking_for(&terms).replacen("policy/PowerUserAccess", "policy/../PowerUserAccess", 1);
    let reasons = |findings: Vec<Finding>| -> Vec<String> {
        findings.into_iter().filter(|one| one.of == "ProvisionRole").map(|one| one.reason).collect()
    };

    let agreed = reasons(found(&template, &terms, &[]));
    let alone = reasons(verify(&template, &[], None).unwrap().findings);

    let arn = "arn:aws:iam::aws:policy/../PowerUserAccess";
    assert!(
        agreed.iter().any(|one| one.contains(&format!("`{arn}`, which is not a managed policy of AWS"))),
        "{agreed:?}"
    );
    assert!(alone.iter().any(|one| one.contains(arn)), "{alone:?}");
}

#[test]
fn a_boundary_of_the_terms_that_the_stack_does_not_keep_is_found() {
    let mut terms = terms(TABLES, &json!({}));
    let mut boundary = |actions: &str| {
        let statement = json!({ "Effect": "Allow", "Action": actions, "Resource": "*" });
        terms.roles[0].boundary = Some(json!({ "Version": "2012-10-17", "Statement": [statement] }).to_string());
        (asking_for(&terms), terms.clone())
    };

    let (template, narrow) = boundary("dynamodb:*");
    is_found(&template, &narrow, "ProvisionRole", "\"PolicyName\":\"tables\"", "has 1 items, and Freehold renders 2");
    let (template, wide) = boundary("*");
    assert_eq!(found(&template, &wide, &[]), []);
}

#[test]
fn a_contract_of_another_template_is_found() {
    let asked = terms(TABLES, &json!({}));
    let other = terms(r#"{"Statement":[]}"#, &json!({}));

    is_found(
        &asking_for(&asked),
        &other,
        "AcceptedContract",
        "Default: sha256:",
        "ask the vendor for the contract of this template",
    );
}

#[test]
fn roles_and_switches_are_those_of_the_terms() {
    let mut fewer = terms(TABLES, &json!({}));
    fewer.roles.pop();
    let mut off = terms(TABLES, &json!({}));
    off.roles[2].on = false;

    let more = found(&asking_for(&fewer), &fewer, &[]);
    is_found(
        &asking_for(&off),
        &off,
        "EnableCustomSupport",
        "  EnableCustomSupport: {Type",
        "is `true`, and Freehold renders `false`",
    );
    let says = "the stack has the role `custom-support`, which the contract does not have";
    assert!(more.iter().any(|one| one.reason == says), "{more:#?}");
}

#[test]
fn inputs_and_secrets_are_those_of_the_terms() {
    let agreed = terms(TABLES, &json!({}));
    let mut other = agreed.clone();
    let _ = other.customer_inputs.remove("days");
    let _ = other.secrets.remove("certificate");
    other.customer_inputs.get_mut("domain-name").unwrap().sensitive = true;
    other.customer_inputs.get_mut("api_token").unwrap().sensitive = false;
    other.secrets.get_mut("api_key").unwrap().shared = false;
    other.secrets.get_mut("session-key").unwrap().generated = false;
    let unasked: Value = json!({ "region": {} });
    other.customer_inputs.extend(serde_json::from_value::<BTreeMap<_, _>>(unasked).unwrap());
    let template = asking_for(&other);

    for (of, line, reason) in [
        (
            "InputDays",
            "  InputDays: {",
            "an input whose answer is sent to the vendor, and the contract does not have it",
        ),
        (
            "AppSecretCertificate",
            "  AppSecretCertificate: {",
            "that the customer enters and only the runner can read, and the",
        ),
        (
            "InputDomainnameX6c5dc6d991905703",
            "  InputDomainnameX6c5dc6d991905703: {",
            "in the contract `domain-name` is an input whose answer stays in",
        ),
        (
            "InputApiToken",
            "  InputApiToken: {",
            "in the contract `api_token` is an input whose answer is sent to the vendor",
        ),
        (
            "AppSecretApiKey",
            "  AppSecretApiKey: {",
            "roles of the app can read, and in the contract `api_key` is a secret that the customer enters and only",
        ),
        (
            "AppSecretSessionkeyX1add55581aaea687",
            "    Type: AWS::SecretsManager::Secret",
            "is a secret that the stack generates",
        ),
    ] {
        let all = found(&template, &other, &[]);
        let text = |one: &Finding| template.lines().nth(one.line - 1).unwrap_or_default().to_owned();
        let is_it = |one: &Finding| one.of == of && one.reason.contains(reason) && text(one).starts_with(line);
        assert!(all.iter().any(is_it), "{of} {reason}: {all:#?}");
    }
    let all = found(&template, &other, &[]);
    assert!(all.iter().any(|one| one.of == "InputRegion" && one.reason.contains("has no `InputRegion`")), "{all:#?}");
    assert_eq!(all.len(), 7, "{all:#?}");
    assert_eq!(found(&asking_for(&agreed), &agreed, &[]), []);
}

/// A vendor that turns a sensitive input into a plain one gets the answer in clear.
#[test]
fn a_template_that_sends_a_sensitive_answer_to_the_vendor_is_found() {
    let terms = terms(TABLES, &json!({}));
    let template = asking_for(&terms);
    let asked = template.lines().find(|line| line.starts_with("  InputOtpSeed: {")).unwrap();
    let (before, secret) = template.split_once("  SecretInputOtpSeed:\n").unwrap();
    let after = secret.split_once("\n\n").unwrap().1;
    let plain = format!("{before}{after}").replacen(asked, &asked.replace("NoEcho: true, ", ""), 1);

    let reason = "in the contract `otp_seed` is an input whose answer stays in the account as a secret";
    let all = found(&plain, &terms, &[]);

    assert!(all.iter().any(|one| one.of == "InputOtpSeed" && one.reason.contains(reason)), "{all:#?}");
}

#[test]
fn an_answer_of_the_vendors_that_policies_use_is_the_default_of_the_terms_or_what_the_customer_was_told() {
    let with_prefix = TABLES.replace("{{ .nuon.install.id }}", "{{ .nuon.inputs.inputs.prefix }}");
    let same = terms(&with_prefix, &json!({ "prefix": "globex" }));
    let other = terms(&with_prefix, &json!({ "prefix": "shop" }));
    let none = terms(&with_prefix, &json!({ "prefix": null }));

    assert_eq!(found(&asking_for(&same), &same, &[]), []);
    is_found(
        &asking_for(&other),
        &other,
        "ProvisionRole",
        "\"PolicyName\":\"tables\"",
        "Freehold renders `arn:aws:dynamodb:*:222222222222:table/shop-*`",
    );
    assert_eq!(found(&asking_for(&other), &other, &[("prefix", json!("globex"))]), []);
    let unknown = found(&asking_for(&none), &none, &[]);
    assert!(
        unknown[0].reason.ends_with("; for an input that the vendor answers, pass `--input NAME=VALUE`"),
        "{unknown:#?}"
    );
    assert_eq!(unknown[0].of, "ProvisionRole");
}

#[test]
fn an_answer_of_the_customers_is_a_reference_to_the_parameter() {
    let with_colour = TABLES.replace("{{ .nuon.install.id }}", "{{ .nuon.inputs.inputs.colour }}");
    let terms = terms(&with_colour, &json!({ "colour": "red" }));
    let colour = RENDERED.lines().find(|line| line.starts_with("  InputColour: {Type: String")).unwrap();
    let red = "  InputColour: {Type: String, Description: colour, Default: \"red\"}";
    let template = asking_for(&terms).replacen(colour, red, 1);
    let written = r#""arn:aws:dynamodb:*:222222222222:table/globex-*""#;
    let referring = r#"{"Fn::Sub":"arn:aws:dynamodb:*:222222222222:table/${InputColour}-*"}"#;

    assert_eq!(found(&template.replacen(written, referring, 1), &terms, &[]), []);
    assert_ne!(found(&template, &terms, &[]), []);
}

#[test]
fn a_default_that_widens_a_policy_of_the_terms_is_found_in_its_line() {
    let with_colour = TABLES.replace("{{ .nuon.install.id }}", "{{ .nuon.inputs.inputs.colour }}");
    let terms = terms(&with_colour, &json!({}));
    let written = r#""arn:aws:dynamodb:*:222222222222:table/globex-*""#;
    let referring = r#"{"Fn::Sub":"arn:aws:dynamodb:*:222222222222:table/${InputColour}-*"}"#;
    let template = asking_for(&terms).replacen(written, referring, 1);
    let colour = template.lines().find(|line| line.starts_with("  InputColour: {Type: String")).unwrap();

    for wide in ["*", "gl?bex", "a*", "${aws:PrincipalTag/x}"] {
        let line = format!("  InputColour: {{Type: String, Description: colour, Default: \"{wide}\"}}");
        let wider = template.replacen(colour, &line, 1);

        is_found(&wider, &terms, "InputColour", &line, "could do more than the contract says");
        assert_eq!(verify(&wider, &[], None).unwrap().findings, [], "{wide}");
    }
}

#[test]
fn a_default_of_an_input_that_policies_use_is_the_one_of_the_terms() {
    let with_colour = TABLES.replace("{{ .nuon.install.id }}", "{{ .nuon.inputs.inputs.colour }}");
    let written = r#""arn:aws:dynamodb:*:222222222222:table/globex-*""#;
    let referring = r#"{"Fn::Sub":"arn:aws:dynamodb:*:222222222222:table/${InputColour}-*"}"#;
    let colour = RENDERED.lines().find(|line| line.starts_with("  InputColour: {Type: String")).unwrap();
    let template = |terms: &Terms, default: &str| {
        let line = format!("  InputColour: {{Type: String, Description: colour, Default: \"{default}\"}}");
        (asking_for(terms).replacen(written, referring, 1).replacen(colour, &line, 1), line)
    };
    let unsaid = terms(&with_colour, &json!({}));
    let agreed = terms(&with_colour, &json!({ "colour": "red" }));

    assert_eq!(found(&template(&agreed, "red").0, &agreed, &[]), []);
    assert_eq!(found(&template(&unsaid, "").0, &unsaid, &[]), []);
    for (terms, default, reason) in [
        (&unsaid, "red", "names no default; ask the vendor for the contract of this template"),
        (&agreed, "blue", "names the default \"red\"; ask the vendor"),
        (&agreed, "", "names the default \"red\"; ask the vendor"),
    ] {
        let (template, line) = template(terms, default);
        is_found(&template, terms, "InputColour", &line, reason);
    }
}

#[test]
fn an_input_of_the_customers_is_refused_where_an_answer_widens_the_terms() {
    let colour = "{{ .nuon.inputs.inputs.colour }}";
    let statement = |more: &Value| json!({ "Version": "2012-10-17", "Statement": [more] }).to_string();
    for (document, reason) in [
        (TABLES.replace("{{ .nuon.install.id }}-*", &format!("{colour}*")), "a wildcard is directly next to an input"),
        (TABLES.replace("dynamodb:*\"", &format!("{colour}\"")), "`Action` of a policy contains an input"),
        (
            statement(&json!({ "Effect": "Deny", "Action": "s3:*", "Resource": format!("arn:aws:s3:::{colour}/*") })),
            "a `Deny` statement contains an input",
        ),
    ] {
        let terms = terms(&document, &json!({}));

        let all = found(&asking_for(&terms), &terms, &[]);

        assert!(all.iter().any(|one| one.of == "ProvisionRole" && one.reason.contains(reason)), "{reason}: {all:#?}");
    }
}

#[test]
fn the_terms_never_say_that_a_mode_has_another_switch_than_each_stack_has() {
    let mut off = terms(TABLES, &json!({}));
    off.roles[0].on = false;

    let reason = "role `provision` is on from the start in each stack, and the contract says that it is off";
    let all = found(&asking_for(&off), &off, &[]);

    assert!(all.iter().any(|one| one.of == "EnableProvision" && one.reason.starts_with(reason)), "{all:#?}");
}

/// The contract lists a policy by its JSON, so the stack must not get another document from it.
#[test]
fn a_policy_whose_templates_change_its_structure_is_refused() {
    let quote = "{{ printf `%c` 34 }}";
    let injected = "\"Sid\":\"TablesQ,QActionQ:Q*Q,QResourceQ:Q*\"".replace('Q', quote);
    let of_sid = TABLES.replace("\"Effect\"", &format!("{injected},\"Effect\""));
    let of_key = TABLES.replace(
        "\"Version\":\"2012-10-17\"",
        "\"{{ `Statement` }}\":[{\"Effect\":\"Allow\",\"Action\":\"*\",\"Resource\":\"*\"}]",
    );
    let twice = TABLES.replace("\"Action\":\"dynamodb:*\"", "\"Action\":\"dynamodb:GetItem\",\"Action\":\"*\"");
    for (document, reason) in [
        (of_sid, "`Sid` contains a template"),
        (of_key, "because only values of a policy can be templates"),
        (twice, "key `Action` is given twice"),
    ] {
        let terms = terms(&document, &json!({}));
        let wide = asking_for(&terms).replacen(r#""Action":"dynamodb:*","#, r#""Action":"*","#, 1);

        let all = found(&wide, &terms, &[]);

        assert!(all.iter().any(|one| one.of == "ProvisionRole" && one.reason.contains(reason)), "{reason}: {all:#?}");
    }
}

/// The comparison marks what an app fills in by a character that no text of Freehold has.
#[test]
fn a_text_of_the_terms_never_stands_for_any_text() {
    for hole in ["\u{f001}line", "\u{f001}default", "\u{f001}policies", "\u{f001}line\u{f002}"] {
        let terms = terms(&TABLES.replace("dynamodb:*", hole), &json!({}));
        let template = asking_for(&terms).replacen(r#""Action":"dynamodb:*","#, r#""Action":"*","#, 1);

        assert_ne!(found(&template, &terms, &[]), [], "{hole:?}");
    }
}
