"""The page of permissions repeats the templates and leaves nothing out."""

import unittest

import guard_case
import permissions
import templates
from permissions import Stack, sections


class Permissions(unittest.TestCase):
    def test_the_page_is_what_the_templates_say(self):
        self.assertTrue(
            permissions.PAGE.read_text() == permissions.page(), f"docs/permissions.md is old; run {permissions.COMMAND}"
        )

    def test_every_role_statement_and_policy_is_on_it(self):
        text = permissions.PAGE.read_text()

        for stack in (permissions.tenant_stack(), permissions.install_stack()):
            template = stack.template
            for logical, resource in template["Resources"].items():
                if any("Statement" in value for value in resource["Properties"].values() if isinstance(value, dict)):
                    self.assertIn(f"#### {logical}", text)
            for sid in sids(template):
                self.assertIn(f"| {sid} |", text)
        for statement in templates.deploy_policy()["Statement"] + templates.tenant_boundary()["Statement"]:
            self.assertIn(f"| {statement['Sid']} | Allow |", text)

    def test_more_modes_and_conditions_are_written_out(self):
        text = "\n".join(sections(Stack(guard_case.with_resources(guard_case.MACHINES, guard_case.PARAMETERS))))

        self.assertIn("#### BreakGlassRole", text)
        self.assertIn("#### Queues", text)
        self.assertIn(
            "(`aws:PrincipalArn` ArnEquals `RunnerRole` and `aws:CurrentTime` DateLessThan `BreakGlassUntil`)", text
        )
        self.assertIn("| Allow | `*` | `*` | if `DeprovisionEnabled` |", text)
        self.assertIn("| Deny | `*` | `*` | unless `DeprovisionEnabled` |", text)


def sids(node):
    if isinstance(node, dict):
        return {node["Sid"]} if "Sid" in node else set().union(*map(sids, node.values()))
    return set().union(*map(sids, node)) if isinstance(node, list) else set()
