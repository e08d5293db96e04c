"""Runs cfn-lint, and reads from its resource specifications which types take tags."""

from cfnlint.api import ManualArgs
from cfnlint.api import lint as lint_text
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

from templates import REGION


def lint(text):
    """Returns what cfn-lint finds, warnings included, as lines."""
    found = lint_text(text, config=ManualArgs(regions=[REGION]))
    return [f"{match.rule.id} line {match.linenumber}: {match.message}" for match in found]


def untagged(template, expected):
    """Returns the resources whose type can carry tags but which lack one of the expected."""
    lacking = []
    for name, resource in template["Resources"].items():
        if "Tags" not in PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, resource["Type"]).schema["properties"]:
            continue
        tags = resource["Properties"].get("Tags", [])
        tags = tags if isinstance(tags, dict) else {tag["Key"]: tag["Value"] for tag in tags}
        if any(tags.get(key) != value for key, value in expected.items()):
            lacking.append(name)
    return lacking
