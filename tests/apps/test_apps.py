"""Runs the examples whole, and holds what a run makes of a config: stand-ins, values, and what is left out."""

import contextlib
import io
import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

import hcl2

import apps
import clusters
import collection
import following
import images
import install
import page
import proxy
import stand_ins
import values
import vendor
from config import Config
from repositories import HOST, Repositories

HERE = Path(__file__).parent
EXAMPLE, SOURCES = HERE / "example/shop", HERE / "example/sources"


class WithFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="freehold-apps-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)


class Whole(unittest.TestCase):
    def run_whole(self, example):
        """Returns what a run of an example found, and the lines that it printed."""
        if not (shutil.which("terraform") or shutil.which("tofu")):
            self.skipTest("there is neither `terraform` nor `tofu` on PATH")
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            found = apps.run(HERE / "example" / example, SOURCES)
        self.assertIsNone(found["reason"], said.getvalue())
        return found, said.getvalue().splitlines()

    def assert_went_through(self, found, lines, *parts):
        for part in parts:
            self.assertTrue(any(part in line for line in lines), "\n".join([part, *lines]))
        through = {one["name"]: one["value"] for one in collection.figures([found])}
        self.assertEqual({through[name] for name in collection.STEPS}, {1}, "\n".join(lines))
        [torn_down] = [line for line in lines if "tear down" in line]
        self.assertRegex(torn_down, "[1-9][0-9]* done", "\n".join(lines))

    def test_app_without_a_cluster_is_installed_changed_used_and_torn_down(self):
        found, lines = self.run_whole("shop")

        self.assertEqual((["network", "ledger"], False), (found["stand_ins"], found["cluster"]))
        self.assertEqual("app shop: ok: 5 of 6 components, 1 of 2 actions", lines[-1])
        self.assert_went_through(
            found,
            lines,
            "left out: component `cache`: image `111111111111.dkr.ecr.us-east-1.amazonaws.com/cache` is in a private",
            "left out: action `flush`: needs component `cache`, which is left out",
            "stand-ins of modules and programs: network, ledger, of images in: registry.example",
            "`greeting` to `good day-changed`: 2 done",
            "`show` ran",
        )

    def test_app_with_a_cluster_is_installed_changed_used_and_torn_down(self):
        if lacking := clusters.missing():
            self.skipTest(lacking)
        if not shutil.which("helm"):
            self.skipTest("there is no `helm` on PATH")

        found, lines = self.run_whole("desk")

        self.assertEqual((["sandbox"], True), (found["stand_ins"], found["cluster"]))
        self.assertEqual("app desk: ok: 4 of 4 components, 1 of 1 actions", lines[-1])
        # The chart, and the action that its deploy starts.
        self.assert_went_through(found, lines, "`greeting` to `good day-changed`: 2 done", "`check` ran")


class StandIns(WithFolder):
    def test_module_keeps_its_variables_and_gives_outputs_of_the_form_that_is_read(self):
        (self.folder / "main.tf").write_text(
            'variable "size" {\n  type = number\n  default = 3\n}\nvariable "key" {\n  type = string\n'
            '  sensitive = true\n}\nresource "aws_vpc" "one" {}\noutput "vpc" {\n'
            "  value = { id = aws_vpc.one.id, arn = aws_vpc.one.arn }\n}\n"
            'output "account" {\n  value = { id = "1" }\n}\noutput "all" {\n  value = module.all\n}\n'
        )
        reads = {"all.zone.name", "all.list"}
        needed = stand_ins.is_needed(self.folder)

        stand_ins.replace(self.folder, reads, {"all.list"}, {"account.id": "222222222222"})

        made = json.loads((self.folder / "main.tf.json").read_text())
        outputs = {name: one["value"] for name, one in made["output"].items()}
        self.assertTrue(needed)
        self.assertEqual(
            {"size": {"type": "number", "default": 3}, "key": {"type": "string", "sensitive": True}}, made["variable"]
        )
        self.assertEqual("222222222222", outputs["account"]["id"])
        self.assertEqual("arn:aws:stand-in:::vpc/arn", outputs["vpc"]["arn"])
        self.assertEqual(3, len(outputs["all"]["list"]))
        self.assertEqual({"name": "stand-in-all-zone-name"}, outputs["all"]["zone"])
        self.assertEqual(["main.tf.json"], [file.name for file in self.folder.iterdir()])

    def test_program_of_pulumi_gives_what_is_read_and_what_it_is_told(self):
        settings = (["ZONE", "PULUMI_STACK"], ["aws:region"])

        stand_ins.replace_program(self.folder, settings, {"db.host", "zones"}, {"zones"}, {})

        made = json.loads((self.folder / "program.json").read_text())
        self.assertEqual(
            {
                "told_ZONE": "env:ZONE",
                "told_aws_region": "config:aws:region",
                "db": {"host": "stand-in-db-host"},
                "zones": [f"stand-in-zones-{number}" for number in range(3)],
            },
            made["outputs"],
        )
        self.assertEqual(1, len(made["resources"]))

    def test_module_without_providers_stays_as_it_is(self):
        self.assertFalse(stand_ins.is_needed(SOURCES / "acme/modules/site"))
        self.assertTrue(stand_ins.is_needed(SOURCES / "acme/modules/network"))

    def test_reader_of_modules_keeps_quotes_as_the_stand_ins_expect(self):
        self.assertEqual('"x"', hcl2.loads('a = "x"\n')["a"])


class Configs(WithFolder):
    def setUp(self):
        super().setUp()
        self.config = Config(EXAMPLE, self.folder / "shop")

    def test_what_a_component_hands_out_is_found_in_templates(self):
        self.assertEqual(({"subnets", "dns.zone_id"}, {"subnets"}), self.config.reads("network"))

    def test_what_needs_a_component_is_left_out_with_it(self):
        self.config.leave_out("component", "network", "for a reason")

        self.assertEqual(
            {
                ("component", "network"): "for a reason",
                ("component", "site"): "needs component `network`, which is left out",
                ("action", "show"): "needs component `site`, which is left out",
            },
            self.config.left_out,
        )

    def test_what_needs_two_of_those_left_out_is_left_out_once(self):
        last = '[vars]\nsubnet = "{{ .nuon.components.network.outputs.id }}{{ .nuon.components.site.outputs.page }}"\n'
        (self.config.folder / "components/z-last.toml").write_text(f'name = "last"\n{last}')

        self.config.leave_out("component", "network", "for a reason")

        self.assertEqual({"cache", "ledger", "orders", "web"}, set(self.config.entries("component")))
        self.assertIn(("component", "last"), self.config.left_out)

    def test_commit_of_a_repository_that_is_served_here_becomes_main(self):
        file = self.config.folder / "components/site.toml"
        file.write_text(file.read_text().replace('"v1"', f'"{"a1" * 20}"'))
        self.assertIn({"main"} | {"a1" * 20}, self.config.repositories().values())

        self.config.forget_commits()

        self.assertEqual({"acme/modules": {"main"}}, self.config.repositories())

    def test_every_repository_is_named_with_its_references(self):
        self.assertEqual({"acme/modules": {"main", "v1"}}, self.config.repositories())


class Refusals(unittest.TestCase):
    def test_file_of_each_error_of_a_sync_is_found(self):
        said = (
            "error: folder `src` does not exist\n  --> actions/alb.toml:11:19\n   |\n11 | x\n\n"
            "warning: `labels` has no effect yet\n  --> actions/alb.toml:1:1\n"
            "error: components/crds.toml: cannot fetch `https://x.example/crds`: no answer\n"
        )

        self.assertEqual(
            [
                ("actions/alb.toml", "folder `src` does not exist"),
                ("components/crds.toml", "cannot fetch `https://x.example/crds`: no answer"),
            ],
            vendor.errors_in(said),
        )

    def test_what_the_product_cannot_deploy_is_found_by_name(self):
        said = (
            "app `x` cannot be deployed yet: component `a` is a `job`, action `b` reads outputs of the sandbox, "
            "and 2 more"
        )

        self.assertEqual(
            [("component", "a", "is a `job`"), ("action", "b", "reads outputs of the sandbox")],
            install.IN_THE_WAY.findall(said),
        )


class Lacking(unittest.TestCase):
    def test_programs_that_a_script_calls_are_found(self):
        script = "STATUS=$(aws ssm describe)\nif kubectl get pods; then echo helm chart\nfi\nx | psql -c 1"

        self.assertEqual(["aws", "kubectl", "psql"], [found[1] for found in vendor.CALLED.finditer(script)])

    def test_what_an_action_lacks_on_this_machine_is_found_in_its_log(self):
        said = {
            "step.sh: line 3: aws: command not found": "needs `aws`, which is not on this machine",
            "[freehold: refused a connection to a.b:443: `a.b:443` is not among": "reaches `a.b`, which is not among "
            "the hosts of the contract",
            "Error from server (BadRequest): pod web-1 does not have a host assigned": "looks into pod `web-1`, and "
            "the cluster here has no nodes",
            "all is well": None,
        }

        self.assertEqual(list(said.values()), [following.lacking(log) for log in said])

    def test_what_the_cluster_here_lacks_is_found_in_the_reason_of_a_part(self):
        reasons = {
            "the cluster has no kind `Pool` of `x.sh/v1`; correct the kind": "needs `Pool` of `x.sh/v1`, "
            "which the cluster here lacks",
            "typed patch object: .spec.internalTrafficPolicy: field not declared in schema": "sets "
            "`.spec.internalTrafficPolicy`, which the API server here is too old for",
            "object: .spec.versions[0].x-kubernetes-validations: field not declared in schema": "sets "
            "`.spec.versions[0].x-kubernetes-validations`, which the API server here is too old for",
        }

        found = [following.lacking(reason, following.LACKING_PARTS) for reason in reasons]

        self.assertEqual(list(reasons.values()), found)

    def test_what_a_part_that_was_left_out_would_have_made_is_lacking(self):
        config = SimpleNamespace(removed={("action", "init"): "kubectl create secret generic db-login"})
        said = 'Error from server (NotFound): secrets "{}" not found'

        found = [following.needs_removed(config, said.format(name)) for name in ("db-login", "other")]

        self.assertEqual(["needs `db-login`, which action `init` would make, and that is left out", None], found)

    def test_empty_list_is_lacking_only_when_a_component_was_left_out(self):
        said = 'error executing jsonpath "{.items[0]}": array index out of bounds: index 0, length 0. Printing more'
        configs = [
            SimpleNamespace(removed=removed) for removed in ({("component", "client"): ""}, {("action", "a"): ""})
        ]

        found = [following.needs_removed(config, said) for config in configs]

        self.assertEqual(["finds an empty list in the cluster; left out are `client`", None], found)

    def test_action_of_a_node_is_known_without_its_event(self):
        names = ("action:check", "action:check@post-deploy-component:api", "component:check")

        self.assertEqual(["check", "check", None], [following.action_of({"name": name}) for name in names])


class Pages(WithFolder):
    RESULT = {
        "app": "shop",
        "reason": None,
        "steps": [{"step": "provision", "seconds": 4.3, "detail": "3 done"}],
        "whole": {"component": 3, "action": 2},
        "cluster": False,
        "stand_ins": ["network"],
        "images": [],
        "left_out": [["component", "cache", "its image is\nprivate"]],
    }

    def test_page_has_the_last_result_of_each_app_and_what_was_left_out(self):
        failed = {**self.RESULT, "reason": "no"}

        text = page.text([failed, self.RESULT], "2026-11-22", "0123456")

        self.assertIn("| shop | ok | 1 of 3 | network | none | 0 of 2 |  |  | 4.3 |  |  |  |\n", text)
        self.assertIn("## shop\n\n- component `cache`: its image is private\n", text)
        self.assertIn("on 2026-11-22, commit 0123456", text)
        self.assertIn("1 of 3 components were deployed as they are, and 0 of 2 actions ran.", text)

    def test_type_of_what_was_left_out_is_named_as_a_type(self):
        left_out = [["component", "rds", "is a `pulumi`"], ["action", "a", "needs component `rds`, which is left out"]]

        text = page.text([{**self.RESULT, "left_out": left_out}], "2026-11-22", "0123456")

        self.assertIn("- component `rds`: is of type `pulumi`\n", text)
        self.assertIn("- action `a`: needs component `rds`, which is left out\n", text)

    def test_figures_count_the_apps_that_got_through_a_step(self):
        values_of = {one["name"]: (one["value"], one["attempted"]) for one in collection.figures([self.RESULT] * 2)}

        steps = {"apps.provisioned": (2, 2), "apps.changed": (0, 2), "apps.torn_down": (0, 2)}
        self.assertEqual({**steps, "apps.components": (2, 6), "apps.actions": (0, 4)}, values_of)

    def test_apps_of_another_cloud_are_not_run_and_sources_come_before_bare_configs(self):
        for name, kind in {"appconfigs/a": "aws-cloudformation", "appconfigs/b": "gcp-terraform"}.items():
            (self.folder / name).mkdir(parents=True)
            (self.folder / name / "stack.toml").write_text(f'type = "{kind}"\n')
        whole = self.folder / "sources/acme/apps/a"
        shutil.copytree(self.folder / "appconfigs/a", whole)

        self.assertEqual([whole.resolve()], collection.of_aws(self.folder, self.folder / "sources"))

        (self.folder / "appconfigs/a/sandbox.tfvars").write_text("")
        bare = (self.folder / "appconfigs/a").resolve()
        self.assertEqual([bare], collection.of_aws(self.folder, self.folder / "sources"))


class Values(unittest.TestCase):
    def test_vendor_answers_what_has_no_default_and_is_not_the_customers(self):
        answers = values.of_inputs(Config(EXAMPLE, Path(tempfile.mkdtemp()) / "shop").inputs())

        self.assertEqual({"domain": "example.com"}, answers)

    def test_customer_answers_parameters_without_a_default_and_secrets(self):
        template = "Parameters:\n  A: {Type: String}\n  B: {Type: String, Default: x}\n  C: {AllowedValues: [m, n]}\n"
        template += "  AppSecretKey: {Type: String, Default: ''}\n"

        answers = values.of_parameters(template + "Other: !Sub x\n", "222222222222")

        runner = {"RunnerPrincipal": "arn:aws:iam::222222222222:root"}
        self.assertEqual({"A": "freehold", "AppSecretKey": "freehold", "C": "m", **runner}, answers)

    def test_changed_input_keeps_its_type(self):
        changed = [values.changed(one) for one in ({"default": "true"}, {"default": "7"}, {"default": "a"}, {})]

        self.assertEqual(["false", "8", "a-changed", "freehold-changed"], changed)


class Served(WithFolder):
    def test_registry_of_an_image_is_found_in_its_name(self):
        names = ("acme/web", "nginx", "docker.io/acme/web", "ghcr.io/acme/web", "localhost:5000/web")

        hosts = [images.host_of(name) for name in names]

        self.assertEqual([*[images.DOCKER_HUB] * 3, "ghcr.io", "localhost"], hosts)

    def test_commit_is_fetched_through_the_proxy_under_its_public_address(self):
        repositories = Repositories(SOURCES, self.folder)
        repositories.copy("acme/modules")
        repositories.commit("acme/modules", {"main", "v1"})
        variables = proxy.serve(self.folder, {HOST: repositories.handler()})

        def git(*words):
            env = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), **variables}
            return subprocess.run(["git", *words], env=env, capture_output=True, text=True)

        address = "https://github.com/acme/modules"
        listed = git("ls-remote", address, "refs/heads/v1")
        commit = listed.stdout.partition("\t")[0]
        git("init", "--quiet", self.folder / "clone")
        fetched = git("-C", self.folder / "clone", "fetch", "--depth", "1", "--", address, commit)
        elsewhere = git("ls-remote", "https://gitlab.com/acme/modules")

        self.assertEqual((40, 0), (len(commit), fetched.returncode), listed.stderr + fetched.stderr)
        self.assertIn("403", elsewhere.stderr)


if __name__ == "__main__":
    unittest.main()
