"""A real shell runs the start script of a runner's machine, with stand-ins for commands that change the machine."""

import hashlib
import os
import re
import subprocess
import unittest

import templates
from start_script import StartScript
from templates import properties

PROGRAM = b"#!/bin/sh\necho the runner\n"


class Script(StartScript, unittest.TestCase):
    PROGRAM = PROGRAM
    CALLED = ("update-ca-trust", "dnf", "useradd", "usermod", "systemctl")
    FOLDERS = ("etc/systemd/system", "etc/pki/ca-trust/source/anchors")

    def script(self, **parameters):
        """Returns the script with parameters filled in and its folders under the folder of the test."""
        text = properties(templates.install(), "Machine")["LaunchTemplateData"]["UserData"]["Fn::Base64"]["Fn::Sub"]
        values = {
            "CaBundle": "",
            "HttpsProxy": "",
            "RunnerUrl": "https://releases.example/freehold-runner",
            "AWS::Region": "eu-west-1",
            "RunnerSha256": hashlib.sha256(PROGRAM).hexdigest(),
            "AWS::StackName": "freehold-acme--globex-prod",
            "RevokeSessionsBefore": "1970-01-01T00:00:00Z",
            "InstallPackages": "true",
            **parameters,
        }
        text = re.sub(r"\$\{([A-Za-z0-9:]+)\}", lambda match: values[match[1]], text)
        return re.sub(r"(?<![\w.])/(etc|opt)/", lambda match: f"{self.root}/{match[1]}/", text)

    def test_another_moment_of_revocation_is_another_script_and_so_another_machine(self):
        self.assertNotEqual(self.script(), self.script(RevokeSessionsBefore="2026-11-30T18:00:00Z"))

    def test_the_right_program_is_started_with_its_stack(self):
        ended = self.run_script()

        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        unit = (self.root / "etc/systemd/system/freehold-runner.service").read_text()
        self.assertIn(
            f"ExecStart={self.root}/opt/freehold/freehold-runner run --stack freehold-acme--globex-prod\n",
            unit,
        )
        self.assertEqual((self.root / "opt/freehold/freehold-runner").read_bytes(), PROGRAM)
        self.assertEqual(self.calls()[-1], "systemctl enable --now freehold-runner freehold-drain")
        self.assertIn("useradd --system --shell /sbin/nologin freehold", self.calls())
        self.assertIn("usermod --add-subuids 231072-231073 --add-subgids 231072-231073 freehold", self.calls())

    def test_another_program_is_removed_and_nothing_is_started(self):
        ended = self.run_script(RunnerSha256="f" * 64)

        self.assertEqual(ended.returncode, 1)
        self.assertIn("is not the program with the SHA-256 fff", ended.stderr)
        self.assertFalse((self.root / "opt/freehold/freehold-runner").exists())
        self.assertEqual([call for call in self.calls() if call.startswith("systemctl")], [])

    def test_an_image_that_has_the_program_downloads_nothing(self):
        (self.root / "opt/freehold").mkdir(parents=True)
        (self.root / "opt/freehold/freehold-runner").write_bytes(PROGRAM)

        ended = self.run_script(RunnerUrl="")

        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual([call for call in self.calls() if call.startswith("curl")], [])

    def test_a_proxy_is_the_parameters_or_the_images(self):
        self.tool("curl", f'printenv HTTPS_PROXY https_proxy >> "{self.root}/proxies"; cp "{self.root}/published" "$9"')
        environment = self.root / "etc/freehold/environment"
        proxies = []
        for own, parameters in (
            (None, {"HttpsProxy": "http://proxy.example:3128"}),
            ("HTTPS_PROXY=http://u:p@image\n", {}),
        ):
            if own is not None:
                environment.write_text(own)
                environment.chmod(0o644)
            (self.root / "opt/freehold/freehold-runner").unlink(missing_ok=True)

            ended = self.run_script(**parameters)

            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            proxies += (self.root / "proxies").read_text().split()
            (self.root / "proxies").unlink()
            self.assertEqual(environment.stat().st_mode & 0o777, 0o600)
        self.assertEqual(proxies, ["http://proxy.example:3128"] * 2 + ["http://u:p@image"] * 2)

    def test_a_proxy_with_a_password_is_not_a_parameter(self):
        pattern = templates.install()["Parameters"]["HttpsProxy"]["AllowedPattern"]

        self.assertRegex("http://proxy.example:3128", pattern)
        for refused in ("http://user:password@proxy.example:3128", "http://a/$(reboot)", "https://proxy.example"):
            self.assertNotRegex(refused, pattern)

    def test_an_image_without_bubblewrap_is_refused_when_nothing_may_be_installed(self):
        none = "command() { return 1; }\n"

        ended = self.run_script(none, InstallPackages="false")

        self.assertEqual(ended.returncode, 1)
        self.assertIn("the image has no bubblewrap, and InstallPackages is false", ended.stderr)
        self.assertEqual([call for call in self.calls() if call.startswith(("dnf", "systemctl"))], [])
        self.assertEqual(self.run_script(none).returncode, 0)
        self.assertIn("dnf install --assumeyes bubblewrap", self.calls())

    def test_a_proxy_and_authorities_of_the_companys_are_used(self):
        ended = self.run_script(HttpsProxy="http://proxy.example:3128", CaBundle="Y2VydGlmaWNhdGU=")

        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual((self.root / "etc/pki/ca-trust/source/anchors/freehold.pem").read_text(), "certificate")
        self.assertEqual(
            (self.root / "etc/freehold/environment").read_text(),
            "HTTPS_PROXY=http://proxy.example:3128\nNO_PROXY=169.254.169.254,localhost\n",
        )
        self.assertIn("update-ca-trust", self.calls()[0])

    def test_no_answer_of_a_customers_reaches_the_shell_but_what_its_pattern_lets_through(self):
        parameters = templates.install()["Parameters"]

        for name, bad in (
            ("HttpsProxy", 'http://a"; rm -rf /; "'),
            ("HttpsProxy", "http://$(reboot)"),
            ("CaBundle", "`reboot`"),
            ("RunnerUrl", "https://a/$(reboot)"),
            ("RunnerUrl", "https://a/b?c"),
            ("RunnerUrl", "https://a/b#c"),
            ("RunnerUrl", "https://user@a/b"),
            ("RunnerSha256", "x"),
        ):
            self.assertNotRegex(bad, parameters[name]["AllowedPattern"], name)

    def test_it_fits_and_the_drain_waits_for_the_group(self):
        text = self.script()
        begin = text.index("#!/bin/bash\n# When the Auto Scaling group")
        drain = text[begin : text.index("\nEND", begin)]
        self.tool("sleep", f'echo slept >> "{self.root}/calls"')
        self.tool("aws", f'echo aws "$@" >> "{self.root}/calls"')
        self.tool(
            "curl",
            f"""case "$*" in
*api/token*) echo token ;;
*instance-id*) echo i-1 ;;
*) cat "{self.root}/state"; echo Terminated > "{self.root}/state" ;;
esac""",
        )
        (self.root / "state").write_text("InService\n")

        subprocess.run(
            ["bash", "-c", drain], env={"PATH": f"{self.root}/bin:{os.environ['PATH']}"}, check=True, timeout=60
        )

        self.assertLess(len(text), 16_384)
        self.assertEqual(
            self.calls(),
            [
                "slept",
                "systemctl stop freehold-runner",
                "aws autoscaling complete-lifecycle-action --region eu-west-1 "
                "--auto-scaling-group-name fh-acme--globex-prod--runner --lifecycle-hook-name drain "
                "--lifecycle-action-result CONTINUE --instance-id i-1",
            ],
        )
