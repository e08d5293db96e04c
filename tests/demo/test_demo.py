"""What the demo says of the machine that it runs on: which parts its app has, and what it leaves out."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import tomllib

import demo
import programs
from demo_cluster import FILES, LEFT_OUT, NO_HELM, Cluster
from programs import ROOT, Failed, Programs

WHOLE = SimpleNamespace(terraform="/usr/bin/terraform", sandbox="bubblewrap", no_box=None)
BARE = SimpleNamespace(terraform=None, sandbox="none", no_box="there is no `bwrap` on PATH")


def cluster(exists, has_chart):
    made = Cluster.__new__(Cluster)
    made.exists, made.has_chart = exists, has_chart
    return made


NONE, NO_CHART, ALL = cluster(False, False), cluster(True, False), cluster(True, True)


class OnCloud(Programs):
    """The programs on a machine where the cloud of `make up` is up or not, and has a tenant or not."""

    def __init__(self, is_up, has_tenant):
        super().__init__()
        self.answers = {"status": is_up, "tenant": has_tenant}

    def succeeds(self, *command):
        return self.answers[command[1]]

    def start_own_cloud(self):
        self.endpoint = "its own"


class Cloud(unittest.TestCase):
    def test_a_second_demo_takes_a_cloud_of_its_own(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(programs, "ROOT", Path(folder)):
            place = Path(folder, "target", "local", "endpoint")
            place.parent.mkdir(parents=True)
            place.write_text("that of make up\n")
            output = io.StringIO()
            chosen = {}
            for is_up, has_tenant in [(False, False), (True, False), (True, True)]:
                on = OnCloud(is_up, has_tenant)
                with contextlib.redirect_stdout(output):
                    on.start_cloud()
                chosen[is_up, has_tenant] = on.endpoint

        expected = {(False, False): "its own", (True, False): "that of make up", (True, True): "its own"}
        self.assertEqual(chosen, expected)
        self.assertIn("`make down up` empties it", output.getvalue())


class Words(unittest.TestCase):
    def test_machine_with_everything_leaves_nothing_out(self):
        self.assertEqual([], demo.left_out(WHOLE, ALL))

    def test_machine_without_the_programs_of_a_cluster_is_told_the_one_command_that_makes_them(self):
        self.assertEqual([LEFT_OUT], demo.left_out(WHOLE, NONE))
        self.assertIn("`make cluster`", LEFT_OUT)
        self.assertIn("\ncluster: ", (ROOT / "Makefile").read_text())

    def test_each_part_that_is_left_out_is_a_line_of_its_own(self):
        output = io.StringIO()

        with contextlib.redirect_stdout(output):
            demo.tell_left_out(BARE, NO_CHART)

        lines = output.getvalue().splitlines()
        self.assertEqual(["left out: the Terraform components", "left out: the sandbox of jobs"], heads(lines[:2]))
        self.assertEqual([f"left out: {NO_HELM}"], lines[2:])

    def test_parts_are_those_that_the_machine_can_have(self):
        self.assertEqual("an image, a CloudFormation stack and an action", demo.parts(BARE, NONE))
        self.assertEqual(
            "an image, two Terraform modules, a CloudFormation stack, a cluster, a Helm chart, a Kubernetes manifest "
            "and an action",
            demo.parts(WHOLE, ALL),
        )

    def test_change_touches_what_reads_the_input(self):
        check = "action:health-check"

        self.assertEqual(("greeting=good morning", [check, "greeter", "settings"]), demo.change_of(WHOLE, ALL))
        self.assertEqual(("greeting=good morning", [check, "greeter"]), demo.change_of(BARE, ALL))
        self.assertEqual(("retention_days=30", [check, "storage"]), demo.change_of(BARE, NO_CHART))


def heads(lines):
    return [line.rpartition(":")[0].partition(": neither")[0].partition(": `")[0] for line in lines]


class Config(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="freehold-demo-")
        self.addCleanup(folder.cleanup)
        self.config = Path(folder.name)
        (self.config / "components").mkdir()

    def components(self):
        return {file.stem for file in (self.config / "components").iterdir()}

    def test_cluster_brings_its_components_and_the_context_that_they_name(self):
        ALL.add(self.config)

        [context] = tomllib.loads((self.config / "metadata.toml").read_text())["kubernetes_context"]
        self.assertEqual({"cluster", "greeter", "limits"}, self.components())
        self.assertEqual("cluster", context["component"])
        for file in self.config.glob("components/*.toml"):
            self.assertIn(tomllib.loads(file.read_text()).get("kubernetes_context"), (None, context["name"]))

    def test_chart_is_left_out_without_helm_and_everything_without_a_cluster(self):
        NONE.add(self.config)
        self.assertEqual(set(), self.components())

        NO_CHART.add(self.config)
        self.assertEqual({"cluster", "limits"}, self.components())

    def test_roles_of_the_demo_keep_their_policies_beside_the_cluster(self):
        for file in FILES.glob("permissions/*.toml"):
            with self.subTest(file.name):
                own = tomllib.loads((ROOT / "examples/demo/permissions" / file.name).read_text())["policies"]
                both = tomllib.loads(file.read_text())["policies"]
                self.assertEqual(own, [one for one in both if not one["name"].startswith("cluster")])


class Shown(unittest.TestCase):
    QUOTA = {"kind": "ResourceQuota", "metadata": {"name": "demo"}}
    NETWORK = {"kind": "NetworkPolicy", "metadata": {"name": "own-namespace-only"}}
    TEXT = {"kind": "ConfigMap", "metadata": {"name": "greeter"}, "data": {"index.html": "good morning"}}
    PODS = {"kind": "Deployment", "metadata": {"name": "greeter"}, "status": {"readyReplicas": 2}}

    def print_of(self, objects, greeting="good morning"):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            ALL.show_objects(objects, greeting)
        return output.getvalue()

    def test_it_says_that_nothing_runs_in_the_pods(self):
        output = self.print_of([self.QUOTA, self.NETWORK, self.TEXT, self.PODS])

        self.assertIn("2 of 2 pods are ready", output)
        self.assertIn("a small fake kubelet makes its pods ready: nothing runs", output)

    def test_missing_or_wrong_object_fails_the_demo(self):
        all_but = {
            "NetworkPolicy": [self.QUOTA, self.TEXT, self.PODS],
            "Deployment": [self.QUOTA, self.NETWORK, self.TEXT],
        }
        for kind, objects in all_but.items():
            with self.assertRaisesRegex(Failed, f"no {kind}"):
                self.print_of(objects)
        with self.assertRaisesRegex(Failed, "instead of `hello`"):
            self.print_of([self.QUOTA, self.NETWORK, self.TEXT, self.PODS], greeting="hello")


if __name__ == "__main__":
    unittest.main()
