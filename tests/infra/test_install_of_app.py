"""What an app adds to the install stack: inputs, secrets and roles with names of the app's.

`test_guard.py` checks these templates against the rules too; the tests of `crates/app/tests/use_cases/stack` have the
conditions and the keys of secrets.
"""

import json
import unittest

import linting
import templates
from boundaries import BOUNDARIES, size_of_boundary
from intrinsics import statements
from templates import ACCOUNT, TENANT_ACCOUNT, properties

# The text in every place of the golden template that takes one (crates/app/tests/use_cases/render_stack.rs).
HOSTILE = '%{TENANT_KEY} " }, Evil: {Type: String}\n  Evil: !Sub "${AWS::AccountId}" \\ # \u2028é…'


class Inputs(unittest.TestCase):
    """The rendered install stack of an app with inputs of the customer."""

    @classmethod
    def setUpClass(cls):
        cls.text = templates.install_with_inputs_text()
        cls.template = templates.parse(cls.text)
        cls.asked = {
            name: parameter for name, parameter in cls.template["Parameters"].items() if name.startswith("Input")
        }
        cls.secrets = {name for name in cls.template["Parameters"] if name.startswith("AppSecret")}

    def test_cfn_lint_finds_only_a_default_that_looks_like_a_substitution(self):
        [found] = linting.lint(self.text)

        self.assertRegex(found, "^E1029 .*at Parameters/InputColour/Default$")

    def test_a_vendors_text_adds_nothing_to_the_template(self):
        plain = templates.install()

        self.assertEqual(set(self.template), set(plain))
        added = set(self.template["Resources"]) - set(plain["Resources"])
        kept = {name for name in added if name.startswith("SecretAppSecret")}
        self.assertEqual(
            added - kept,
            {"SecretInputApiToken", "SecretInputOtpSeed", "SecretsKey", "BreakGlassRole", "CustomSupportRole"},
        )
        self.assertEqual(len(kept), 4)
        self.assertEqual(
            {name for name in self.template["Parameters"] if name not in plain["Parameters"]},
            {*self.asked, *self.secrets, "EnableBreakGlass", "EnableCustomSupport", "BreakGlassUntil"},
        )
        keys = {
            "Type",
            "Description",
            "Default",
            "NoEcho",
            "AllowedValues",
            "AllowedPattern",
            "MinLength",
            "ConstraintDescription",
        }
        for name, parameter in self.asked.items():
            self.assertLessEqual(set(parameter), keys, name)
            self.assertLessEqual(len(parameter["Description"]), 600, name)
        labels = self.template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterLabels"]
        self.assertEqual(self.asked["InputColour"]["Default"], HOSTILE)
        for text in (labels["InputColour"]["default"], self.asked["InputColour"]["Description"]):
            self.assertTrue(text.startswith('%{TENANT_KEY} " }, Evil: {Type: String} Evil: !Sub'), text)

    def test_each_type_has_its_parameter(self):
        def shape(name):
            return {
                key: value
                for key, value in self.asked[name].items()
                if key not in ("Description", "ConstraintDescription")
            }

        self.assertEqual(shape("InputDays"), {"Type": "Number", "Default": "7"})
        self.assertEqual(shape("InputReplicas"), {"Type": "Number"})
        self.assertEqual((shape("InputLimit")["Type"], shape("InputLimit")["Default"]), ("String", ""))
        self.assertEqual(shape("InputDebug"), {"Type": "String", "AllowedValues": ["true", "false"], "Default": "true"})
        self.assertEqual(shape("InputOpen"), {"Type": "String", "AllowedValues": ["true", "false", ""], "Default": ""})
        self.assertEqual(shape("InputZones"), {"Type": "String", "Default": "a,b"})
        self.assertEqual(json.loads(shape("InputExtra")["Default"]), {"a": [1, "b"]})
        self.assertEqual(shape("InputModules"), {"Type": "String", "Default": "a = 1\n"})
        self.assertEqual(shape("InputApiToken"), {"Type": "String", "NoEcho": True, "MinLength": 1})
        for good in ("", "3", "-0.5", "1e3"):
            self.assertRegex(good, shape("InputLimit")["AllowedPattern"])
        self.assertNotRegex("soon", shape("InputLimit")["AllowedPattern"])

    def test_every_question_is_in_one_group_and_the_apps_groups_come_in_its_order(self):
        groups = self.template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
        members = [name for group in groups for name in group["Parameters"]]

        self.assertEqual(sorted(members), sorted(self.template["Parameters"]))
        self.assertEqual([group["Parameters"][0] for group in groups[:2]], ["InputColour", "InputApiToken"])

    def test_a_sensitive_answer_stays_in_a_secret_that_the_runner_alone_reads(self):
        resources = self.template["Resources"]
        [read] = [s for s in statements(resources["RunnerRole"]) if s["Sid"] == "ReadSensitiveAnswers"]
        [denied] = [s for s in statements(resources["Boundary"]) if s.get("Sid") == "SecretsLogsAudit"]

        self.assertEqual(
            [arn["Fn::Sub"].rpartition(":")[2] for arn in read["Resource"]],
            [
                "fh-acme--globex/input/api_token-??????",
                "fh-acme--globex/input/otp_seed-??????",
                "fh-acme--globex/input/otp_seed",
            ],
        )
        self.assertIn("secretsmanager:*", denied["Action"])
        self.assertEqual(denied["Resource"][0].rpartition(":")[2], "fh-acme--globex/*")
        self.assertNotIn("Condition", resources["SecretInputApiToken"])
        self.assertEqual(resources["SecretInputOtpSeed"]["Condition"], "HasInputOtpSeed")
        self.assertEqual(properties(self.template, "SecretInputApiToken")["SecretString"], {"Ref": "InputApiToken"})
        self.assertNotIn("InputApiToken", str(self.template["Outputs"]))
        tags = {"freehold:tenant": "acme", "freehold:app": "demo", "freehold:install": "globex"}
        self.assertEqual(linting.untagged(self.template, tags), [])


class Secrets(unittest.TestCase):
    """The rendered install stack of an app with secrets of every kind."""

    @classmethod
    def setUpClass(cls):
        cls.template = templates.install_with_inputs()
        cls.resources = cls.template["Resources"]
        cls.kept = {name: one for name, one in cls.resources.items() if name.startswith("SecretAppSecret")}

    def test_a_secret_is_never_shown(self):
        parameters = self.template["Parameters"]
        asked = [name for name in parameters if name.startswith("AppSecret")]

        self.assertEqual(len(asked), 3)
        for name in asked:
            self.assertIn(parameters[name].get("Default", ""), [""])
            self.assertNotIn(name, str(self.template["Outputs"]))

    def test_the_runner_reads_them_and_no_role_of_a_mode_or_the_app_changes_one(self):
        [read] = [s for s in statements(self.resources["RunnerRole"]) if s["Sid"] == "ReadSecretsOfTheApp"]
        [denied] = [s for s in statements(self.resources["Boundary"]) if s.get("Sid") == "SecretReadsOnly"]

        self.assertEqual(read["Action"], "secretsmanager:GetSecretValue")
        self.assertEqual(read["Resource"][0]["Fn::Sub"].rpartition(":")[2], "fh-acme--globex--secret/*")
        self.assertEqual(read["Resource"][1], {"Fn::GetAtt": ["SecretsKey", "Id"]})
        self.assertEqual(denied["NotAction"], ["secretsmanager:Get*", "secretsmanager:Describe*"])
        self.assertEqual(denied["Resource"].rpartition(":")[2], "fh-acme--globex--secret/*")
        names = [one["Properties"]["Name"] for one in self.kept.values()]
        self.assertTrue(all(name.startswith("fh-acme--globex--secret/") for name in names), names)

    def test_nobody_but_the_runner_reads_the_key_of_the_digests(self):
        # The boundary denies everything below this name.
        self.assertEqual(properties(self.template, "SecretsKey")["Name"], "fh-acme--globex/secrets-key")

    def test_the_boundary_fits_into_a_managed_policy_under_the_longest_names(self):
        template = templates.install_with_roles("t" * 16, TENANT_ACCOUNT, "i" * 20, ACCOUNT)

        for parameters in BOUNDARIES:
            self.assertLessEqual(size_of_boundary(template, parameters), 6_144)


class NamedRoles(unittest.TestCase):
    """The rendered install stack of an app with named roles."""

    @classmethod
    def setUpClass(cls):
        cls.template = templates.install_with_inputs()

    def test_break_glass_is_over_and_a_custom_role_is_on_by_default(self):
        parameters = self.template["Parameters"]

        self.assertEqual(parameters["BreakGlassUntil"]["Default"], "1970-01-01T00:00:00Z")
        self.assertEqual(parameters["EnableCustomSupport"]["Default"], "true")

    def test_only_break_glass_ends_at_a_moment(self):
        def trust(role):
            return properties(self.template, role)["AssumeRolePolicyDocument"]["Statement"][0]["Condition"]

        self.assertIn("DateLessThan", trust("BreakGlassRole"))
        self.assertNotIn("DateLessThan", trust("CustomSupportRole"))
