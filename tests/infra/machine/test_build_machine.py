"""The machine of the build runner: nothing is there while nothing is built, and its start script in a real shell."""

import base64
import hashlib
import json
import os
import re
import subprocess
import unittest

import templates
from intrinsics import Evaluator, decide_conditions, statements
from start_script import StartScript
from templates import as_list, properties, resource_text

PROGRAM = b"#!/bin/sh\necho the build runner\n"
KEY = bytes(range(32))
GROUP = "fh-acme--build-runner"
LOWER = "aws autoscaling set-desired-capacity --region eu-west-1 --auto-scaling-group-name"
ON = {
    "BuildSubnetIds": "subnet-1,subnet-2",
    "BuildVpcId": "vpc-1",
    "BuilderUrl": "https://x/b",
    "BuilderSha256": "0" * 64,
}


def made(**parameters):
    given = {"TenantName": templates.TENANT, "SourceRoles": "", **parameters}
    return decide_conditions(templates.tenant(), "freehold-acme", templates.TENANT_ACCOUNT, given)


class Group(unittest.TestCase):
    def test_without_subnets_nothing_of_it_is_made_and_nobody_may_start_a_machine(self):
        off, on = made(), made(**ON)

        self.assertEqual(
            set(on["Resources"]) - set(off["Resources"]), {"BuildSecurityGroup", "BuildMachine", "BuildGroup"}
        )
        self.assertEqual(set(on["Outputs"]) - set(off["Outputs"]), {"BuildGroupName"})
        self.assertNotIn("autoscaling", json.dumps(off["Resources"]))
        self.assertNotIn("FREEHOLD_BUILD_GROUP", json.dumps(off["Resources"]))
        self.assertEqual(
            {
                name
                for name, resource in on["Resources"].items()
                if "FREEHOLD_BUILD_GROUP" in resource["Properties"].get("Environment", {}).get("Variables", {})
            },
            {"Api", "DispatchJob", "Sweep"},
        )

    def test_it_has_no_machine_or_one_and_an_update_of_the_stack_says_nothing_about_which(self):
        group = properties(templates.tenant(), "BuildGroup")

        self.assertEqual((group["MinSize"], group["MaxSize"]), ("0", "1"))
        # CloudFormation would set it at each update, and end a build.
        self.assertNotIn("DesiredCapacity", group)
        self.assertNotIn("UpdatePolicy", templates.tenant()["Resources"]["BuildGroup"])
        # The build runner lowers the capacity before it knows that it may end.
        self.assertIs(group["NewInstancesProtectedFromScaleIn"], True)

    def test_its_machine_takes_no_connection_and_no_other_program_and_ends_when_it_is_switched_off(self):
        data = properties(templates.tenant(), "BuildMachine")["LaunchTemplateData"]
        closed = properties(templates.tenant(), "BuildSecurityGroup")

        self.assertEqual(
            data["MetadataOptions"], {"HttpEndpoint": "enabled", "HttpTokens": "required", "HttpPutResponseHopLimit": 1}
        )
        self.assertNotIn("SecurityGroupIngress", closed)
        self.assertNotIn("KeyName", data)
        self.assertEqual(data["InstanceInitiatedShutdownBehavior"], "terminate")
        for disk in data["BlockDeviceMappings"]:
            self.assertEqual((disk["Ebs"]["Encrypted"], disk["Ebs"]["DeleteOnTermination"]), (True, True))

    def test_three_roles_set_the_capacity_of_this_group_and_of_no_other(self):
        may = {
            (name, tuple(as_list(statement["Action"])), resource_text(resource))
            for name, role in templates.of_type(templates.tenant(), "AWS::IAM::Role").items()
            for statement in statements(role)
            if any(action.startswith(("autoscaling:", "ec2:")) for action in as_list(statement.get("Action", [])))
            for resource in as_list(statement["Resource"])
        }

        arn = "autoscaling:autoScalingGroup:*:autoScalingGroupName/fh-T--build-runner"
        self.assertEqual(
            may,
            {
                (role, ("autoscaling:SetDesiredCapacity",), arn)
                for role in ("DispatchJobRole", "SweepRole", "BuildRunnerRole")
            },
        )

    def test_its_name_is_the_same_wherever_it_is_written(self):
        stack = Evaluator(templates.tenant(), "freehold-acme", templates.TENANT_ACCOUNT, {"TenantName": "acme"})
        template = made(**ON)

        names = [stack.resolve(properties(template, "BuildGroup")["AutoScalingGroupName"])]
        for function in ("Api", "DispatchJob", "Sweep"):
            variables = properties(template, function)["Environment"]["Variables"]
            names.append(stack.resolve(variables["FREEHOLD_BUILD_GROUP"]))

        self.assertEqual(set(names), {GROUP})


class Script(StartScript, unittest.TestCase):
    PROGRAM = PROGRAM
    CALLED = ("dnf", "useradd", "usermod", "systemctl")
    FOLDERS = ("etc/systemd/system", "run")

    def setUp(self):
        super().setUp()
        # The document of a key, as KMS returns it: twelve bytes, and the key.
        document = base64.b64encode(bytes.fromhex("302a300506032b6570032100") + KEY).decode()
        self.tool("aws", f'echo aws "$@" >> "{self.root}/calls"\ncase "$1" in kms) echo {document} ;; esac')

    def script(self, **parameters):
        data = properties(templates.tenant(), "BuildMachine")["LaunchTemplateData"]["UserData"]
        text, _ = data["Fn::Base64"]["Fn::Sub"]
        values = {
            "AWS::Region": "eu-west-1",
            "TenantName": "acme",
            "BuilderUrl": "https://releases.example/freehold-builder",
            "BuilderSha256": hashlib.sha256(PROGRAM).hexdigest(),
            "RootKey": "arn:aws:kms:eu-west-1:111111111111:key/1",
            "BuildQueue": "https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme--build.fifo",
            "ReportsQueue": "https://sqs.eu-west-1.amazonaws.com/111111111111/fh-acme--reports",
            "Repository": "fh-acme",
            "DeployBucket": "fh-acme--111111111111--eu-west-1",
            "BuildIdleSecs": "600",
            **parameters,
        }
        text = re.sub(r"\$\{([A-Za-z0-9:.]+)\}", lambda match: values[match[1]], text)
        for folder in ("/etc/", "/opt/", "/run/"):
            text = text.replace(folder, f"{self.root}{folder}")
        return text

    def calls_after(self, status):
        """Returns what the end of the program with this exit status calls."""
        log = self.root / "calls"
        log.write_text("")
        subprocess.run(
            [self.root / "opt/freehold/end"],
            env={"PATH": f"{self.root}/bin:{os.environ['PATH']}", "EXIT_STATUS": status},
            check=True,
            timeout=60,
        )
        return self.calls()

    def config(self):
        """Returns the config: each line of it is a key and a value that is JSON too."""
        lines = (self.root / "etc/freehold/build-runner.toml").read_text().splitlines()
        return {key: json.loads(value) for key, value in (line.split(" = ", 1) for line in lines)}

    def test_it_starts_the_right_program_with_the_config_of_the_stack(self):
        ended = self.run_script()

        self.assertEqual(ended.returncode, 0, ended.stderr)
        config = self.config()
        self.assertEqual(config["tenant_key"], base64.b64encode(KEY).decode())
        self.assertEqual((config["install"], config["scaling_group"], config["idle_secs"]), ("build", GROUP, 600))
        self.assertEqual(self.calls()[-1], "systemctl enable --now build-runner")
        unit = (self.root / "etc/systemd/system/build-runner.service").read_text()
        self.assertIn("RestartPreventExitStatus=2 3 4\n", unit)
        self.assertIn(f"ExecStopPost=+{self.root}/opt/freehold/end\n", unit)
        self.assertLess(len(self.script()), 16_384)

    def test_what_the_image_adds_is_in_the_config_too(self):
        (self.root / "etc/freehold").mkdir(parents=True)
        (self.root / "etc/freehold/more.toml").write_text('inside_hosts = ["git.acme.internal"]\n')

        self.run_script()

        config = self.config()
        self.assertEqual(config["inside_hosts"], ["git.acme.internal"])

    def test_a_machine_that_cannot_be_set_up_ends_and_no_other_takes_its_place(self):
        ended = self.run_script(BuilderSha256="0" * 64)

        self.assertEqual(ended.returncode, 1)
        self.assertIn("is not the program with the SHA-256", ended.stderr)
        self.assertEqual(
            self.calls()[-2:],
            [
                f"{LOWER} {GROUP} --desired-capacity 0",
                "systemctl poweroff --no-block",
            ],
        )
        self.assertFalse((self.root / "opt/freehold/builder").exists())

    def test_the_machine_ends_when_its_program_says_so_and_not_when_it_is_restarted(self):
        self.run_script()
        lower = f"{LOWER} {GROUP} --desired-capacity 0"
        off = "systemctl poweroff --no-block"

        for status, expected in (
            ("4", [off]),
            ("2", [lower, off]),
            ("3", [lower, off]),
            ("0", []),
            ("1", []),
            ("KILL", []),
        ):
            self.assertEqual(self.calls_after(status), expected, status)

    def test_a_machine_whose_program_ends_ten_times_ends_and_no_other_takes_its_place(self):
        self.run_script()

        nine = [call for _ in range(9) for call in self.calls_after("1")]
        tenth = self.calls_after("1")

        self.assertEqual(nine, [])
        self.assertEqual(tenth, [f"{LOWER} {GROUP} --desired-capacity 0", "systemctl poweroff --no-block"])

    def test_a_capacity_that_cannot_be_set_keeps_no_machine(self):
        self.run_script()
        self.tool("aws", "exit 1")

        self.assertEqual(self.calls_after("3"), ["systemctl poweroff --no-block"])


class Parameters(unittest.TestCase):
    def test_no_parameter_reaches_the_shell_but_what_its_pattern_lets_through(self):
        parameters = templates.tenant()["Parameters"]

        for name, bad in (
            ("BuilderUrl", "https://a/$(reboot)"),
            ("BuilderUrl", "https://a/b?c"),
            ("RunnerUrl", "https://a/b?c"),
            ("BuilderSha256", "x"),
            ("TenantName", "a;reboot"),
            ("DeployBucket", "a$(reboot)"),
        ):
            self.assertNotRegex(bad, parameters[name]["AllowedPattern"], name)
        self.assertEqual(parameters["BuildIdleSecs"]["Type"], "Number")

    def test_subnets_need_a_vpc_and_a_program(self):
        rule = templates.tenant()["Rules"]["BuildMachineHasVpcAndProgram"]

        [assertion] = rule["Assertions"]
        needed = {test["Fn::Not"][0]["Fn::Equals"][0]["Ref"] for test in assertion["Assert"]["Fn::And"]}
        self.assertEqual(needed, {"BuildVpcId", "BuilderUrl", "BuilderSha256"})
