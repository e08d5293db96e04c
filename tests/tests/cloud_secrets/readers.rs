//! An app whose every part that needs no cluster reads secrets: an action, a sandbox, a Terraform module, a program of Pulumi
//! and a stack of CloudFormation. Each part also has a secret as an output that is not sensitive.

use std::path::PathBuf;

use freehold_tests::harness::{World, app};
use freehold_tests::workspace::workspace_root;

/// The parts whose plans wait for an approval; the sandbox comes first.
pub(crate) const SANDBOX: &str = "sandbox";
pub(crate) const COMPONENTS: [&str; 3] = ["module", "program", "stack"];

/// Prints all secrets as they are, in base64, escaped for JSON and for URLs, as a variable, and as outputs.
const SAY: &str = r#"name = "say"
timeout = "2m"
env_vars = { ONE = "{{ .nuon.secrets.entered_4 }}" }

[[triggers]]
type = "manual"

[[steps]]
name = "say"
inline_contents = """
#!/bin/sh
set -eu
cat > all <<'END'
{{ range $name, $value := .nuon.secrets }}{{ $value }}
{{ end }}END
cat all
number=0
while read -r line; do
  number=$((number + 1))
  echo "line $number: $line"
  printf '%s' "$line" | base64 -w 0; echo
done < all
base64 -w 0 all; echo
sed 's/\\\\/\\\\\\\\/g; s/"/\\\\"/g' all
sed 's/%/%25/g; s/"/%22/g; s/&/%26/g; s/+/%2B/g; s#/#%2F#g' all
sed 's/"/\\\\"/g; s/^/{"output of '"$$"'": "/; s/$/"}/' all | head -n 1 > "$FREEHOLD_OUTPUTS"
echo "$ONE"
echo "arn: {{ .nuon.install_stack.outputs.generated_arn }}"
"""

[[steps]]
name = "fail"
inline_contents = """
#!/bin/sh
echo '{{ .nuon.secrets.entered_7 }}' >&2
exit 3
"""
"#;
/// Nobody runs it: its order waits.
const LATER: &str = r#"name = "later"
timeout = "1m"
env_vars = { ONE = "{{ .nuon.secrets.entered_5 }}" }

[[triggers]]
type = "manual"

[[steps]]
name = "say"
command = "echo $ONE"
"#;
const SANDBOX_CONFIG: &str = r#"terraform_version = "1.11.3"
source = "./sandbox"

[vars]
note = "{{ .nuon.secrets.entered_0 }}"
"#;
/// The plan prints the value, and the output is one.
const SANDBOX_MODULE: &str = r#"variable "note" { type = string }
resource "terraform_data" "this" { input = var.note }
output "note" { value = terraform_data.this.output }
"#;
/// Its plan prints all secrets at once.
const MODULE: &str = r#"variable "all" { type = string }
variable "note" { type = string }
resource "terraform_data" "all" { input = var.all }
output "note" { value = var.note }
"#;
const PROGRAM: &str = r#"name = "program"
type = "pulumi"
runtime = "go"
source = "./program"

[config]
note = "{{ .nuon.secrets.entered_2 }}"
"#;
const PULUMI: &str =
    r#"{ "resources": [{ "name": "main", "type": "aws:ec2/vpc:Vpc" }], "outputs": { "note": "config:note" } }"#;
const STACK: &str = r#"name = "stack"
type = "cloudformation_stack"
template = "./templates/noted.yaml"
stack_name = "{{ .nuon.install_stack.outputs.prefix }}stack"

[parameters]
Name = "{{ .nuon.install.id }}-stack"
Note = "{{ .nuon.secrets.entered_3 }}"
"#;
const TEMPLATE: &str = r#"AWSTemplateFormatVersion: "2010-09-09"
Description: A queue, and an output that shows a parameter which nobody may see.

Parameters:
  Name:
    Type: String
  Note:
    Type: String
    NoEcho: true

Resources:
  Queue:
    Type: AWS::SQS::Queue
    Properties:
      QueueName: !Ref Name

Outputs:
  Note:
    Value: !Ref Note
"#;
const QUEUES: &str = "\n[[policies]]\nname = \"queues\"\ncontents = \"./queues.json\"\n";
const POLICIES: &str = "[[policy]]\ntype = \"terraform_module\"\nengine = \"opa\"\ncomponents = [\"module\"]\n\
                        contents = \"./policies/talkative.rego\"\n";
/// Names the value of each resource that a plan has.
const TALKATIVE: &str = "package nuon\n\nwarn contains msg if {\n\tsome r in input.plan.resource_changes\n\tmsg := \
                         sprintf(\"%s would hold %s\", [r.address, r.change.after.input])\n}\n";

/// Writes the app with this many secrets that the customer enters and one that the stack generates, and lets its runner
/// find what stands in for Pulumi.
pub(crate) fn app_with_readers(world: &mut World, entered: usize) -> anyhow::Result<PathBuf> {
    world.find_pulumi_stand_in()?;
    let directory = app::small(world.directory())?;
    let (secrets, module) = (secrets(entered), module(entered));
    let files = [
        ("secrets.toml", secrets.as_str()),
        ("actions/say.toml", SAY),
        ("actions/later.toml", LATER),
        ("sandbox.toml", SANDBOX_CONFIG),
        ("sandbox/main.tf", SANDBOX_MODULE),
        ("components/module.toml", module.as_str()),
        ("module/main.tf", MODULE),
        ("components/program.toml", PROGRAM),
        ("program/Pulumi.yaml", "name: net\nruntime: go\n"),
        ("program/program.json", PULUMI),
        ("components/stack.toml", STACK),
        ("templates/noted.yaml", TEMPLATE),
        ("policies.toml", POLICIES),
        ("policies/talkative.rego", TALKATIVE),
    ];
    for (file, text) in files {
        app::write(&directory, file, text)?;
    }
    let queues = workspace_root()?.join("tests/figures/ledger/permissions/queues.json");
    app::write(&directory, "permissions/queues.json", &std::fs::read_to_string(queues)?)?;
    for file in ["permissions/provision.toml", "permissions/maintenance.toml"] {
        let role = std::fs::read_to_string(directory.join(file))?;
        app::write(&directory, file, &format!("{role}{QUEUES}"))?;
    }
    Ok(directory)
}

fn secrets(entered: usize) -> String {
    let asked = (0..entered)
        .map(|n| format!("[[secret]]\nname = \"entered_{n}\"\ndescription = \"one of many\"\nrequired = true\n\n"));
    let generated = "[[secret]]\nname = \"generated\"\ndescription = \"of the stack\"\nauto_generate = true\n";
    asked.collect::<String>() + generated
}

/// Returns the component whose variable `all` has all secrets.
fn module(entered: usize) -> String {
    let all: Vec<String> = (0..entered).map(|n| format!("{{{{ .nuon.secrets.entered_{n} }}}}")).collect();
    format!(
        "name = \"module\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"./module\"\n\n[vars]\n\
         all = \"{} {{{{ .nuon.secrets.generated }}}}\"\nnote = \"{{{{ .nuon.secrets.entered_1 }}}}\"\n",
        all.join("\\n")
    )
}
