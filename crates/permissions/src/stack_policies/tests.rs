//! Tests of the policies of a stack, as text and as what they grant.

use proptest::prelude::*;

use super::*;

fn rendered(text: &str) -> Result<Value, String> {
    let (tenant, app, install) = ("acme".parse().unwrap(), "demo".parse().unwrap(), "globex".parse().unwrap());
    let account = "222222222222".parse().unwrap();
    let place = RolePlace { tenant: &tenant, app: &app, install: &install, account: &account, region: "eu-west-1" };
    let mut answers = Answers::default();
    answers.known("prefix", json!("demo"));
    answers.known("wild", json!(r#"a","Action":"*"#));
    answers.asked("cluster", "InputCluster");
    place.document(text, &answers)
}

#[test]
fn what_is_known_is_written_and_what_the_customer_answers_is_a_reference() {
    let found = rendered(
        r#"{ "Resource": [
            "arn:aws:s3:::{{ .nuon.inputs.inputs.prefix }}-{{ .nuon.cloud_account.aws.region }}",
            "arn:aws:eks:*:*:cluster/{{ .nuon.inputs.inputs.cluster }}/${aws:username}",
            "arn:aws:iam::*:user/${aws:username}",
            "arn:aws:iam::*:role/{{ .nuon.install_stack.outputs.prefix }}*"
        ], "Boundary": "{{ .nuon.install_stack.outputs.boundary_arn }}" }"#,
    );

    let expected = json!({
        "Resource": [
            "arn:aws:s3:::demo-eu-west-1",
            { "Fn::Sub": "arn:aws:eks:*:*:cluster/${InputCluster}/${!aws:username}" },
            "arn:aws:iam::*:user/${aws:username}",
            "arn:aws:iam::*:role/acme--globex--*",
        ],
        "Boundary": "arn:aws:iam::222222222222:policy/fh-acme--globex--boundary",
    });
    assert_eq!(found, Ok(expected));
}

const QUOTE: &str = "{{ printf `%c` 34 }}";

#[test]
fn a_template_never_changes_the_structure_of_a_policy() {
    let of_sid = r#"{ "Statement": [{ "Effect": "Allow", "Action": "s3:GetObject", "Resource": "*", "Sid": "AQ,QActionQ:Q*" }] }"#;
    let of_key = r#"{ "Statement": [], "{{ `Statement` }}": [{ "Effect": "Allow", "Action": "*", "Resource": "*" }] }"#;
    let of_value = r#"{ "Statement": { "Effect": "Allow", "Action": "s3:GetObject", "Resource": "aQ,QActionQ:Q*" } }"#;
    let comment = r#"{ "Statement": { "Effect": "Allow", "Action": "*", "Resource": "x{{/* ", "Condition": { "Bool": { "a": " */}}" } } } }"#;
    let twice = r#"{ "Statement": [], "Statement": [{ "Effect": "Allow", "Action": "*", "Resource": "*" }] }"#;
    let twice_rendered = r#"{ "Statement": {{ .nuon.inputs.inputs.none | default "[]" }}, "Statement": [] }"#;

    let refused = |text: &str| rendered(&text.replace('Q', QUOTE)).unwrap_err();

    assert!(refused(of_sid).starts_with("`Sid` contains a template"), "{}", refused(of_sid));
    assert!(refused(of_key).contains("because only values of a policy can be templates"), "{}", refused(of_key));
    assert!(refused(comment).contains("Statement"), "{}", refused(comment));
    assert!(refused(twice).starts_with("key `Statement` is given twice"), "{}", refused(twice));
    assert!(refused(twice_rendered).contains("key `Statement` is given twice"), "{}", refused(twice_rendered));
    let found = rendered(&of_value.replace('Q', QUOTE)).unwrap();
    let expected = json!({ "Effect": "Allow", "Action": "s3:GetObject", "Resource": r#"a","Action":"*"# });
    assert_eq!(found["Statement"], expected);
}

#[test]
fn a_value_of_an_input_never_changes_the_structure_of_a_policy() {
    let found = rendered(
        r#"{ "Statement": { "Effect": "Allow", "Action": "s3:Get*", "Resource": "{{ .nuon.inputs.inputs.wild }}" } }"#,
    );

    assert_eq!(found.unwrap()["Statement"]["Resource"], r#"a","Action":"*"#);
}

#[test]
fn an_answer_of_the_customers_is_refused_where_it_could_widen_a_policy() {
    let statement = |effect: &str, action: &str, resource: &str| {
        let text = json!({ "Statement": [{ "Effect": effect, "Action": action, "Resource": resource }] }).to_string();
        rendered(&text)
    };
    let cluster = "{{ .nuon.inputs.inputs.cluster }}";

    assert!(statement("Allow", "eks:*", &format!("arn:aws:eks:*:*:cluster/{cluster}")).is_ok());
    assert!(statement("Allow", "eks:*", &format!("arn:aws:eks:*:*:cluster/{cluster}-*")).is_ok());
    for (effect, action, resource, reason) in [
        ("Allow", "eks:*", format!("arn:aws:eks:*:*:cluster/{cluster}*"), "is directly next to an input"),
        ("Allow", "eks:*", format!("arn:aws:eks:*:*:cluster/?{cluster}"), "is directly next to an input"),
        ("Allow", cluster, "*".to_owned(), "`Action` of a policy contains an input"),
        ("Deny", "eks:*", format!("arn:aws:eks:*:*:cluster/{cluster}"), "a `Deny` statement contains an input"),
        ("Allow", "eks:*", "{{ `{{` }}resolve:ssm:a}}".to_owned(), "which CloudFormation can replace"),
    ] {
        let refused = statement(effect, action, &resource).unwrap_err();
        assert!(refused.contains(reason), "{refused}");
    }
}

#[test]
fn each_refusal_names_its_value_and_a_text_that_cannot_be_rendered_is_none() {
    let (tenant, app, install) = ("acme".parse().unwrap(), "demo".parse().unwrap(), "globex".parse().unwrap());
    let account = "222222222222".parse().unwrap();
    let place = RolePlace { tenant: &tenant, app: &app, install: &install, account: &account, region: "eu-west-1" };
    let mut answers = Answers::default();
    answers.asked("cluster", "InputCluster");
    answers.sensitive("password");
    let cluster = "{{ .nuon.inputs.inputs.cluster }}";
    let document = json!({ "Statement": [
        { "Effect": "Allow", "Action": "s3:*", "Resource": ["arn:a", "{{ .nuon.components.x.outputs.y }}"] },
        { "Effect": "Allow", "Action": ["s3:*", cluster], "Resource": ["arn:a", format!("arn:{cluster}*")] },
        { "Effect": "Deny", "Action": "s3:*", "Resource": format!("arn:{cluster}") },
        { "Effect": "Allow", "Action": "s3:*", "Resource": "{{ .nuon.inputs.inputs.password }}" },
        { "Effect": "Allow", "Action": "s3:*", "Resource": "{{ .nuon.inputs.inputs.password | default `a` }}" },
        { "Effect": "Allow", "Action": "s3:*", "Resource": "{{ upper .nuon.inputs.inputs.cluster }}" },
    ] });

    let found = place.refusals(&document.to_string(), &answers);

    let found: Vec<(String, &str)> =
        found.iter().map(|one| (one.path.join("/"), one.reason.get(..24).unwrap())).collect();
    let expected = [
        ("Statement/3/Resource", "input `password` is sens"),
        ("Statement/1/Resource/1", "in `arn:${InputCluster}*"),
        ("Statement/5/Resource", "the template changes an "),
        ("Statement/1/Action/1", "`Action` of a policy con"),
        ("Statement/2/Resource", "a `Deny` statement conta"),
    ];
    assert_eq!(found, expected.map(|(path, reason)| (path.to_owned(), reason)));
}

#[test]
fn a_managed_policy_of_aws_is_in_the_partition_of_the_region() {
    let (tenant, app, install) = ("acme".parse().unwrap(), "demo".parse().unwrap(), "globex".parse().unwrap());
    let account = "222222222222".parse().unwrap();
    let managed = |region: &str| {
        let place = RolePlace { tenant: &tenant, app: &app, install: &install, account: &account, region };
        let policies = [RolePolicy::Managed("ReadOnlyAccess".into())];
        InStack::of(&policies, None, place, &Answers::default()).unwrap().managed
    };

    assert_eq!(managed("eu-west-1"), ["arn:aws:iam::aws:policy/ReadOnlyAccess"]);
    assert_eq!(managed("cn-north-1"), ["arn:aws-cn:iam::aws:policy/ReadOnlyAccess"]);
}

#[test]
fn the_boundary_among_the_outputs_of_the_stack_is_in_the_partition_of_the_region() {
    let (tenant, app, install) = ("acme".parse().unwrap(), "demo".parse().unwrap(), "globex".parse().unwrap());
    let account = "222222222222".parse().unwrap();
    let outputs = |region: &str| {
        RolePlace { tenant: &tenant, app: &app, install: &install, account: &account, region }.stack_outputs()
    };

    let (china, europe) = (outputs("cn-north-1"), outputs("eu-west-1"));

    assert_eq!(china["boundary_arn"], "arn:aws-cn:iam::222222222222:policy/fh-acme--globex--boundary");
    assert_eq!(europe["boundary_arn"], "arn:aws:iam::222222222222:policy/fh-acme--globex--boundary");
}

#[test]
fn two_policies_with_one_name_in_aws_are_refused() {
    let inline = |name: &str| RolePolicy::Inline { name: name.into(), document: "{}".into() };
    let (tenant, app, install) = ("acme".parse().unwrap(), "demo".parse().unwrap(), "globex".parse().unwrap());
    let account = "222222222222".parse().unwrap();
    let place = RolePlace { tenant: &tenant, app: &app, install: &install, account: &account, region: "eu-west-1" };

    let refused = InStack::of(&[inline("tables!"), inline("tables")], None, place, &Answers::default()).unwrap_err();

    assert!(refused.starts_with("policies `tables!` and `tables` are both `tables` in AWS"), "{refused}");
    assert_eq!(InStack::of(&[inline("a"), inline("b")], None, place, &Answers::default()).unwrap().inline.len(), 2);
}

proptest! {
    #[test]
    fn the_stack_has_the_structure_that_the_contract_shows(
        keys in prop::collection::vec("(Sid|Effect|Action|Resource|\\{\\{ `a` \\}\\}|[a-c\"{} ]{1,4})", 1..4),
        values in prop::collection::vec("(\\*|Q|\\{\\{ if true \\}\\}|\\{\\{ end \\}\\}|[a-b\",:{}\\[\\]]){0,6}", 3),
    ) {
        let entries = keys.iter().zip(&values).map(|(key, value)| (key.clone(), json!(value.replace('Q', QUOTE))));
        let text = json!({ "Statement": [Value::Object(entries.collect())] }).to_string();

        if let (Ok(parsed), Ok(granted)) = (policy_text::parse(&text), rendered(&text)) {
            prop_assert_eq!(structure(&parsed), structure(&granted));
            prop_assert_eq!(render_each(&parsed, &json!({ "nuon": {} })), Ok(granted));
        }
    }
}

/// Returns a document without the texts of its values.
fn structure(value: &Value) -> Value {
    match value {
        Value::Object(entries) => entries.iter().map(|(key, value)| (key.clone(), structure(value))).collect(),
        Value::Array(items) => items.iter().map(structure).collect(),
        Value::String(_) => json!("text"),
        other => other.clone(),
    }
}

#[test]
fn what_cannot_stay_a_reference_is_refused() {
    let changed = rendered(r#"{ "Resource": "{{ .nuon.inputs.inputs.cluster | upper }}" }"#).unwrap_err();
    let key = rendered(r#"{ "{{ .nuon.inputs.inputs.cluster }}": "x" }"#).unwrap_err();
    let secret = rendered(r#"{ "Resource": "{{ .nuon.inputs.inputs.password }}" }"#).unwrap_err();
    let text = rendered("Version: 2012").unwrap_err();

    assert!(changed.starts_with("the template changes an input that"), "{changed}");
    assert!(key.contains("key `{{ .nuon.inputs.inputs.cluster }}` contains a template"), "{key}");
    assert!(secret.contains("password"), "{secret}");
    assert!(text.contains("the policy is not JSON after"), "{text}");
}
