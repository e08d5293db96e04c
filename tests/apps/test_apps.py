"""Runs whole examples, and checks what a run makes of a config: stand-ins, values, and what is served."""

import contextlib
import io
import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import hcl2

import apps
import clusters
import collection
import images
import install
import proxy
import sources
import stand_ins
import values
import vendor
from config import Config, source_of, without_key
from fixture import WithFolder
from job_image import Tools
from repositories import HOST, Repositories

HERE = Path(__file__).parent
EXAMPLE, SOURCES = HERE / "example/shop", HERE / "example/sources"


class Whole(unittest.TestCase):
    def run_whole(self, example):
        """Returns what a run of an example found, and the lines that it printed."""
        if not (shutil.which("terraform") or shutil.which("tofu")):
            self.skipTest("there is neither `terraform` nor `tofu` on PATH")
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            found = apps.run(HERE / "example" / example, SOURCES, Tools())
        self.assertIsNone(found["reason"], output.getvalue())
        return found, output.getvalue().splitlines()

    def assert_went_through(self, found, lines, *parts):
        for part in parts:
            self.assertTrue(any(part in line for line in lines), "\n".join([part, *lines]))
        through = {one["name"]: one["value"] for one in collection.figures([found])}
        self.assertEqual({through[name] for name in collection.STEPS}, {1}, "\n".join(lines))
        [torn_down] = [line for line in lines if "tear down" in line]
        self.assertRegex(torn_down, "[1-9][0-9]* done", "\n".join(lines))

    def test_app_without_a_cluster_is_installed_changed_used_and_torn_down(self):
        found, lines = self.run_whole("shop")

        self.assertEqual((["ledger", "network"], False), (found["stand_ins"], found["cluster"]))
        self.assertEqual("app shop: ok: 5 of 6 components, 1 of 2 actions", lines[-1])
        self.assert_went_through(
            found,
            lines,
            "left out: component `cache`: image `111111111111.dkr.ecr.us-east-1.amazonaws.com/cache` is in a private",
            "left out: action `flush`: needs component `cache`, which is left out",
            "stand-ins of parts: ledger, network, of images and charts in: registry.example",
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

    def test_module_that_is_not_here_gets_one_that_is_told_and_gives_what_the_app_says(self):
        stand_ins.write_module(self.folder, {"size": 1}, {})
        self.assertTrue(stand_ins.is_needed(self.folder))

        stand_ins.replace(self.folder, set(), set(), {})

        made = json.loads((self.folder / "main.tf.json").read_text())
        self.assertEqual({"variable": {"size": {"default": None}}}, {name: made.get(name) for name in ("variable",)})
        self.assertNotIn("output", made)

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

    def test_output_that_no_install_stack_has_is_made_up_where_the_sandbox_reads_it(self):
        sandbox, variables = self.config.folder / "sandbox.toml", self.config.folder / "sandbox.tfvars"
        read = "{{.nuon.install_stack.outputs.%s}}"
        sandbox.write_text(f'[[var_file]]\ncontents = "./sandbox.tfvars"\n[vars]\nbucket = "a-{read % "bucket"}"\n')
        variables.write_text(f'a = "{read % "bucket.name"}"\nb = "{read % "bucket_arn"}"\n')

        self.assertTrue(self.config.make_up_output("bucket"))

        self.assertEqual({"bucket": "a-bucket"}, self.config.sandbox()["vars"])
        self.assertEqual(f'a = "bucket"\nb = "{read % "bucket_arn"}"\n', variables.read_text())
        self.assertFalse(self.config.make_up_output("bucket"))

    def test_commit_of_a_repository_that_is_served_here_becomes_main(self):
        file = self.config.folder / "components/site.toml"
        file.write_text(file.read_text().replace('"v1"', f'"{"a1" * 20}"'))
        self.assertIn({"main"} | {"a1" * 20}, self.config.repositories().values())

        self.config.forget_commits()

        self.assertEqual({"acme/modules": {"main"}}, self.config.repositories())

    def test_component_that_is_off_is_noted_and_stays_in_the_config(self):
        file = self.config.folder / "components/site.toml"
        file.write_text(f"toggleable = true\ndefault_enabled = false\n{file.read_text()}")

        install.note_what_is_off(self.config)

        self.assertEqual([("component", "site")], list(self.config.left_out))
        self.assertIn("site", self.config.entries("component"))

    def test_every_repository_is_named_with_its_references(self):
        self.assertEqual({"acme/modules": {"main", "v1"}}, self.config.repositories())

    def test_addresses_on_github_are_the_repositories_that_are_served(self):
        file = self.config.folder / "components/site.toml"
        text = file.read_text()
        for address in ("https://github.com/acme/modules.git", "git@github.com:acme/modules.git"):
            file.write_text(text.replace('"acme/modules"', f'"{address}"'))
            self.config.shorten_addresses()
            self.assertEqual(text, file.read_text())

    def test_sources_in_the_config_itself_need_no_repository(self):
        sources_of_tables = [
            {"public_repo": {"repo": "./src", "directory": "site"}},
            {"connected_repo": {"repo": "acme/modules"}},
            {"public_repo": {"repo": "{{ .nuon.install.id }}"}},
        ]

        found = [source_of(table) for table in sources_of_tables]

        self.assertEqual([(None, "main", "src/site"), ("acme/modules", "main", "."), None], found)

    def test_components_and_inputs_in_folders_of_folders_are_found(self):
        (self.config.folder / "components/more").mkdir()
        (self.config.folder / "components/more/late.toml").write_text('name = "late"\ntype = "job"\n')
        (self.config.folder / "inputs/more").mkdir(parents=True)
        (self.config.folder / "inputs/more/size.toml").write_text('name = "size"\n')

        self.assertIn("late", self.config.entries("component"))
        self.assertIn("size", [one["name"] for one in self.config.inputs()])

    def test_files_are_found_beside_a_file_in_the_folder_of_its_kind_and_in_the_config(self):
        file = self.config.folder / "components/web/web.toml"
        places = [file.parent / "a.yaml", self.config.folder / "components/a.yaml", self.config.folder / "a.yaml"]
        file.parent.mkdir()
        for place in places:
            place.write_text("")

        self.assertEqual(places, self.config.named(file, "./a.yaml"))
        places[1].unlink()
        self.assertEqual(places[::2], self.config.named(file, "./a.yaml"))

    def test_components_that_make_clusters_are_named_in_three_places(self):
        one = 'name = "{}"\ncomponent = "{}"\n'
        metadata = self.config.folder / "metadata.toml"
        metadata.write_text(metadata.read_text() + "[[kubernetes_context]]\n" + one.format("a", "network"))
        listed = "[[kubernetes_context]]\n" + one.format("b", "site")
        (self.config.folder / "kubernetes_contexts.toml").write_text(listed)
        (self.config.folder / "kubernetes_contexts").mkdir()
        (self.config.folder / "kubernetes_contexts/c.toml").write_text(one.format("c", "ledger"))

        self.assertEqual({"network", "site", "ledger"}, self.config.clusters())

    def test_field_that_a_server_is_too_old_for_is_removed_with_what_is_below_it(self):
        text = "spec:\n  rules:\n  - a: 1\n  - b:\n      c: 2\n  port: 80\n  policy: Local\n"

        self.assertEqual("spec:\n  port: 80\n  policy: Local\n", without_key(text, "rules"))
        self.assertEqual(text.replace("  policy: Local\n", ""), without_key(text, "policy"))
        self.assertEqual(text, without_key(text, "absent"))


class Names(unittest.TestCase):
    def test_folder_with_a_name_that_no_app_may_have_gets_another(self):
        folders = ("shop", "My_App v2", "3scale", "a", "-x" * 40)

        names = [apps.app_name(folder) for folder in folders]

        self.assertEqual(["shop", "my-app-v2", "app-3scale", "app-a"], names[:4])
        self.assertLessEqual(len(names[4]), 40)


class Sources(WithFolder):
    def setUp(self):
        super().setUp()
        self.config = Config(EXAMPLE, self.folder / "shop")
        self.repositories = Repositories(SOURCES, self.folder / "repositories")
        self.replaced = {}
        self.app = SimpleNamespace(
            config=self.config, repositories=self.repositories, replace=self.replaced.setdefault, changed={}
        )

    def add(self, name, text):
        (self.config.folder / f"components/{name}.toml").write_text(f'name = "{name}"\n{text}')

    def test_what_is_not_in_the_folder_of_sources_gets_a_stand_in_of_its_type(self):
        gone = '[public_repo]\nrepo = "acme/gone"\ndirectory = "{}"\n'
        self.add("chart", 'type = "helm_chart"\nchart_name = "front"\n' + gone.format("charts/front"))
        self.add("module", 'type = "terraform_module"\n' + gone.format("module") + "[vars]\nsize = 1\n")
        self.add("layers", 'type = "kubernetes_manifest"\n' + gone.format(".") + '[kustomize]\npath = "./base"\n')
        self.add("image", 'type = "docker_build"\ndockerfile = "Dockerfile"\n' + gone.format("image"))

        sources.invent_missing(self.app, self.repositories)

        folder = self.repositories.copy("acme/gone")
        self.assertEqual({"chart", "module", "layers"}, self.replaced.keys())
        self.assertIn('"name": "front"', (folder / "charts/front/Chart.yaml").read_text())
        self.assertTrue(stand_ins.is_needed(folder / "module"))
        self.assertTrue((folder / "base/kustomization.yaml").exists())
        self.assertEqual("`acme/gone` is not in the directory of sources", self.config.left_out["component", "image"])

    def test_sandbox_that_is_not_in_the_folder_of_sources_hands_out_a_cluster_when_one_is_needed(self):
        (self.config.folder / "sandbox.toml").write_text('[public_repo]\nrepo = "acme/gone"\n')
        self.add("chart", 'type = "helm_chart"\nsource = "./chart"\n')

        sources.invent_missing(self.app, self.repositories)

        self.assertIn("cluster", stand_ins.outputs(self.repositories.copy("acme/gone")))

    def test_module_that_makes_a_cluster_for_others_hands_it_out(self):
        listed = '[[kubernetes_context]]\nname = "second"\ncomponent = "nodes"\n'
        (self.config.folder / "kubernetes_contexts.toml").write_text(listed)
        self.add("nodes", 'type = "terraform_module"\n[public_repo]\nrepo = "acme/gone"\n')
        self.app.cluster = {"name": "c", "endpoint": "https://c"}

        sources.invent_missing(self.app, self.repositories)
        with mock.patch.object(clusters, "missing", return_value=None):
            sources.replace_modules(self.app, self.repositories)

        made = json.loads((self.repositories.copy("acme/gone") / "main.tf.json").read_text())
        handed_out = made["output"]["cluster"]["value"]
        self.assertEqual(("c", "https://c"), (handed_out["name"], handed_out["endpoint"]))

    def test_older_version_is_written_into_the_chart_of_a_component_and_nowhere_else(self):
        chart = self.repositories.copy("acme/modules") / "chart/templates"
        chart.mkdir(parents=True)
        (chart / "budget.yaml").write_text(
            "apiVersion: policy/v1\nkind: PodDisruptionBudget\n---\napiVersion: policy/v1x\n"
        )
        (chart / "_helpers.tpl").write_text('{{- print "policy/v1" -}}\n')
        source = '[public_repo]\nrepo = "acme/modules"\ndirectory = "chart"\nbranch = "main"\n'
        self.add("front", 'type = "helm_chart"\nchart_name = "front"\n' + source)

        first, again = (sources.write_version(self.app, "front", "policy/v1", "policy/v1beta1") for _ in range(2))

        self.assertEqual((True, False), (first, again))
        self.assertEqual(
            "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\n---\napiVersion: policy/v1x\n",
            (chart / "budget.yaml").read_text(),
        )
        self.assertEqual('{{- print "policy/v1beta1" -}}\n', (chart / "_helpers.tpl").read_text())

    def test_empty_defaults_leave_the_manifest_of_a_component(self):
        self.add("crds", 'type = "kubernetes_manifest"\nmanifest = "./crds.yaml"\n')
        file = self.config.folder / "components/crds.yaml"
        file.write_text('name:\n  default: ""\n  type: string\nother:\n  default: "x"\n')

        first, again = (sources.drop_empty_defaults(self.app, "crds") for _ in range(2))

        self.assertEqual((True, False), (first, again))
        self.assertEqual('name:\n  type: string\nother:\n  default: "x"\n', file.read_text())

    def test_text_at_an_address_that_cannot_be_read_gets_a_stand_in(self):
        self.add("crds", 'type = "kubernetes_manifest"\nmanifest = "https://x.example/crds"\n')
        file, message = "components/crds.toml", "cannot fetch `https://x.example/crds`: no answer"

        self.assertTrue(vendor.replace_text(self.app, file, message))

        manifest = self.config.entries("component")["crds"][1]["manifest"]
        self.assertIn("kind: ConfigMap", (self.config.folder / "components" / manifest).read_text())
        self.assertIn("crds", self.replaced)
        self.assertFalse(vendor.replace_text(self.app, "components/site.toml", message))


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

    def test_customer_switches_roles_of_the_app_on_and_no_role_of_a_mode(self):
        switch = "{Type: String, Default: '%s'}\n"
        names = {"EnableDeprovision": "false", "EnableBreakGlassFix": "false", "EnableCustomLook": "true"}
        template = "Parameters:\n" + "".join(f"  {name}: {switch % default}" for name, default in names.items())

        answers = values.of_switches(template + "  BreakGlassUntil: " + switch % "1970", "2026")

        self.assertEqual({"EnableBreakGlassFix": "true", "BreakGlassUntil": "2026"}, answers)
        self.assertEqual({}, values.of_switches("Parameters:\n  EnableProvision: " + switch % "false", "2026"))

    def test_changed_input_keeps_its_type(self):
        inputs = [
            {"default": "true"},
            {"default": False, "type": "bool"},
            {"default": "7"},
            {"default": 1.5, "type": "number"},
            {"default": ["a"], "type": "list"},
            {"default": "a"},
            {},
        ]

        changed = [values.changed(one) for one in inputs]

        self.assertEqual(["false", "true", "8", "2.5", '["three"]', "a-changed", "freehold-changed"], changed)


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
        remote = git("ls-remote", address, "refs/heads/v1")
        commit = remote.stdout.partition("\t")[0]
        git("init", "--quiet", self.folder / "clone")
        fetched = git("-C", self.folder / "clone", "fetch", "--depth", "1", "--", address, commit)
        elsewhere = git("ls-remote", "https://gitlab.com/acme/modules")

        self.assertEqual((40, 0), (len(commit), fetched.returncode), remote.stderr + fetched.stderr)
        self.assertIn("403", elsewhere.stderr)


if __name__ == "__main__":
    unittest.main()
