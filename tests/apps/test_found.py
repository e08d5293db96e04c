"""Tests what a run says of an app: what a part lacks, which kinds and charts are stand-ins, and the page."""

import hashlib
import io
import json
import shutil
import tarfile
import unittest
from types import SimpleNamespace

import tomllib

import charts
import collection
import following
import images
import install
import kinds
import lacks
import page
import sources
import vendor
from fixture import WithFolder
from job_image import listed


class Charts(WithFolder):
    def test_version_of_a_stand_in_is_one_that_is_asked_for(self):
        asked = ("0.40.0", "~1.2", ">= 1.10, < 2", "2.x", "1.0.0-rc.1", "*", None)

        versions = [charts.version_of(one) for one in asked]

        self.assertEqual(["0.40.0", "1.2.0", "1.10.0", "2.0.0", "1.0.0-rc.1", "1.0.0", "1.0.0"], versions)

    def test_repository_of_charts_has_an_index_and_the_archives_that_it_names(self):
        repositories = charts.Repositories()
        repositories.add("https://charts.example/stable", "web", "1.2.3")
        repositories.add("https://charts.example/stable", "api", None)

        [(host, handler)] = repositories.handlers().items()
        [files] = handler.args
        entries = json.loads(files["/stable/index.yaml"])["entries"]

        self.assertEqual(("charts.example", {"web", "api"}), (host, entries.keys()))
        [entry] = entries["web"]
        archive = files[f"/stable/{entry['urls'][0]}"]
        self.assertEqual(entry["digest"], hashlib.sha256(archive).hexdigest())
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            self.assertIn("web/Chart.yaml", tar.getnames())

    def test_chart_in_a_registry_is_found_by_its_repository_and_images_by_every_other_name(self):
        chart = charts.write_layout(self.folder / "chart", "redis", "20.1.0")
        image = charts.write_layout(self.folder / "image", "any", None)
        answers = SimpleNamespace(_charts={"bitnami/redis": chart}, _image=image)

        def manifest(path):
            answers.path = path
            return images.Registry._find(answers)

        kind, content = manifest("/v2/bitnami/redis/manifests/20.1.0")
        layer = json.loads(content)["layers"][0]
        answers.path = f"/v2/bitnami/redis/blobs/{layer['digest']}"

        self.assertEqual("application/vnd.oci.image.manifest.v1+json", kind)
        self.assertIn("helm.chart", layer["mediaType"])
        self.assertEqual(layer["size"], len(images.Registry._find(answers)[1]))
        self.assertNotEqual(content, manifest("/v2/acme/web/manifests/1.0")[1])
        self.assertIsNone(manifest(f"/v2/acme/web/manifests/sha256-{'a' * 64}.sig"))


class Kinds(unittest.TestCase):
    def test_kinds_that_are_lacking_are_found_each_once(self):
        reason = (
            'no matches for kind "NodePool" in version "x.sh/v1"; no matches for kind "NodePool" in version "x.sh/v1"; '
            "the cluster has no kind `Issuer` of `y.io/v2`"
        )

        self.assertEqual([("Issuer", "y.io/v2"), ("NodePool", "x.sh/v1")], kinds.lacking(reason))

    def test_versions_of_a_group_are_ordered_as_kubernetes_does(self):
        versions = ["x/v1beta1", "x/v2alpha1", "x/v1", "x/v2beta2", "x/v2beta10"]

        found = sorted(versions, key=kinds._age)

        self.assertEqual(["x/v1", "x/v2beta10", "x/v2beta2", "x/v1beta1", "x/v2alpha1"], found)

    def test_definition_takes_any_object_of_its_kind(self):
        policy, issuer = kinds.definition("NetworkPolicy", "x.sh/v1"), kinds.definition("ClusterIssuer", "y.k8s.io/v2")

        self.assertEqual("networkpolicies.x.sh", policy["metadata"]["name"])
        self.assertEqual(("Namespaced", "Cluster"), (policy["spec"]["scope"], issuer["spec"]["scope"]))
        self.assertIn("annotations", issuer["metadata"])
        self.assertTrue(
            policy["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-preserve-unknown-fields"]
        )


class ToolImages(unittest.TestCase):
    def test_list_has_the_archives_first_and_no_checksum(self):
        table = tomllib.loads(listed(["base.tar.gz"], ["helm"]))

        self.assertEqual(["base", "helm"], [item["name"] for item in table["item"]])
        self.assertEqual(["tree", None], [item.get("kind") for item in table["item"]])
        self.assertFalse(any("sha256" in item for item in table["item"]))


class Refusals(unittest.TestCase):
    def test_file_of_each_error_of_a_sync_is_found(self):
        stderr = (
            "error: directory `src` does not exist\n  --> actions/alb.toml:11:19\n   |\n11 | x\n\n"
            "warning: `labels` has no effect\n  --> actions/alb.toml:1:1\n"
            "error: components/crds.toml: cannot fetch `https://x.example/crds`: no answer\n"
        )

        self.assertEqual(
            [
                ("actions/alb.toml", "directory `src` does not exist"),
                ("components/crds.toml", "cannot fetch `https://x.example/crds`: no answer"),
            ],
            vendor.errors_in(stderr),
        )

    def test_what_the_product_cannot_deploy_is_found_by_name(self):
        message = (
            "app `x` cannot be deployed yet: component `a` is a `job`, action `b` reads outputs of the sandbox, "
            "and 2 more"
        )

        self.assertEqual(
            [("component", "a", "is a `job`"), ("action", "b", "reads outputs of the sandbox")],
            install.IN_THE_WAY.findall(message),
        )


class Lacking(unittest.TestCase):
    def test_programs_that_a_script_calls_are_found(self):
        script = "STATUS=$(aws ssm describe)\nif kubectl get pods; then echo helm chart\nfi\nx | psql -c 1"

        self.assertEqual(["aws", "kubectl", "psql"], [found[1] for found in sources.CALLED.finditer(script)])

    def test_what_an_action_lacks_on_this_machine_is_found_in_its_log(self):
        reasons = {
            "step.sh: line 3: aws: command not found": "needs `aws`, which is not here",
            "[freehold: refused a connection to a.b:443: `a.b:443` is not among": "reaches `a.b`, which is not among "
            "the hosts of the contract",
            "Error from server (BadRequest): pod web-1 does not have a host assigned": "looks into pod `web-1`, and "
            "the cluster here has no nodes",
            "./check.sh: 4: set: Illegal option -o pipefail": "asks `sh` for `-o pipefail`, which the one of "
            "this machine lacks",
            "all is well": None,
        }

        self.assertEqual(list(reasons.values()), [lacks.of(log) for log in reasons])

    def test_what_the_cluster_here_lacks_is_found_in_the_reason_of_a_part(self):
        reasons = {
            "the cluster has no kind `Pool` of `x.sh/v1`; correct the kind": "needs `Pool` of `x.sh/v1`, "
            "which the cluster here lacks",
            "typed patch object: .spec.internalTrafficPolicy: field not declared in schema": "sets "
            "`.spec.internalTrafficPolicy`, which the API server here is too old for",
            "policy `policies/deny.rego` (of the vendor) denies this: image `web`": "is what policy "
            "`policies/deny.rego` of the app denies",
            "object: .spec.versions[0].x-kubernetes-validations: field not declared in schema": "sets "
            "`.spec.versions[0].x-kubernetes-validations`, which the API server here is too old for",
            'Internal error occurred: failed calling webhook "mutate.x.sh": Post "https://x.y.svc:443/mutate"': "needs "
            "the webhook `mutate.x.sh`, which a program in the cluster serves, and none runs here",
        }

        found = [lacks.of(reason, lacks.OF_PARTS) for reason in reasons]

        self.assertEqual(list(reasons.values()), found)

    def test_a_component_that_reads_a_lost_action_is_found_and_one_that_reads_another_is_not(self):
        app = SimpleNamespace(
            failed_actions={"look": "why"}, config=SimpleNamespace(left_out={("action", "gone"): "why"})
        )
        reason = "component `web`, manifest: `.nuon.actions.workflows.{}` has no value (line 2, column 3)"

        found = [following.reads_lost_action(app, reason.format(name)) for name in ("look", "gone", "other")]

        self.assertEqual(["`look`", "`gone`"], [what.split()[5].rstrip(",") for what in found[:2]])
        self.assertIsNone(found[2])

    def test_what_a_part_that_was_left_out_would_have_made_is_lacking(self):
        config = SimpleNamespace(removed={("action", "init"): "kubectl create secret generic db-login"})
        log = 'Error from server (NotFound): secrets "{}" not found'

        found = [lacks.removed(config, log.format(name)) for name in ("db-login", "other")]

        self.assertEqual(["needs `db-login`, which action `init` would make, and that is left out", None], found)

    def test_empty_list_is_lacking_only_when_a_component_was_left_out(self):
        log = 'error executing jsonpath "{.items[0]}": array index out of bounds: index 0, length 0. Printing more'
        configs = [
            SimpleNamespace(removed=removed) for removed in ({("component", "client"): ""}, {("action", "a"): ""})
        ]

        found = [lacks.removed(config, log) for config in configs]

        self.assertEqual(["finds an empty list in the cluster; left out are `client`", None], found)

    def test_action_that_reads_what_the_install_stack_lacks_is_left_out(self):
        left_out = {}
        app = SimpleNamespace(kinds=[], cluster=None, config=None, fail_action=lambda *one: not left_out.update([one]))
        reason = "no install stack has an output `zone`; make it an input of the app"
        node = {"name": "action:seed@post-provision", "state": "failed", "reason": reason}

        self.assertTrue(following.leave_out_lacking(app, {"nodes": [node]}))

        self.assertEqual({"seed": "reads `zone` of the install stack, which has no such output"}, left_out)

    def test_sandbox_gets_a_text_for_what_the_install_stack_lacks(self):
        config = SimpleNamespace(left_out={}, make_up_output=lambda output: output == "zone")
        app = SimpleNamespace(kinds=[], cluster=None, config=config, changed={})
        config.entries, config.remove_field = lambda _: {}, lambda *_: False
        node = {"name": "sandbox", "state": "failed", "reason": "no install stack has an output `zone`; make it"}

        self.assertTrue(following.leave_out_lacking(app, {"nodes": [node]}))

        self.assertEqual([("sandbox", "zone")], list(config.left_out))

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
        "replaced": {"network": "its module's providers are not here"},
        "kinds": [],
        "changed": {},
        "images": [],
        "ran_actions": [],
        "failed_actions": [],
        "idle_actions": [],
        "left_out": [["component", "cache", "its image is\nprivate", "container_image"]],
    }

    def test_page_has_the_last_result_of_each_app_and_what_was_left_out(self):
        failed = {**self.RESULT, "reason": "no"}

        text = page.text([failed, self.RESULT], "2026-11-22", "0123456")

        self.assertIn("| shop | ok | 1 of 3 | network | none | 0 of 2 | 0 |  |  | 4.3 |  |  |  |\n", text)
        self.assertIn("## shop\n\n- component `cache` (container_image): left out: its image is private\n", text)
        self.assertIn("on 2026-11-22, commit 0123456", text)
        self.assertIn("1 of 3 components were deployed as they are, and 0 of 2 actions succeeded.", text)

    def test_page_names_each_stand_in_and_why_an_action_failed(self):
        result = {
            **self.RESULT,
            "stand_ins": ["network", "web"],
            "replaced": {
                "network": "its module's providers are not here",
                "web": "the chart of `https://x.example` cannot be fetched",
            },
            "kinds": [["NodePool", "x.sh/v1"]],
            "changed": {"api": ["without `.spec.policy`"]},
            "ran_actions": ["show"],
            "failed_actions": ["look"],
            "idle_actions": ["nightly"],
            "left_out": [["action", "look", "finds nothing", None]],
        }

        text = page.text([result], "2026-11-22", "0123456", {"aws-cloudformation": 1, "azure-bicep": 2})

        self.assertIn("| shop | ok | 0 of 3 | network, web, kind NodePool | none | 1 of 2 | 1 |", text)
        self.assertIn("has 3. 1 have a stack of CloudFormation", text)
        self.assertIn("install into: 2 of `azure-bicep`.", text)
        notes = text.partition("## shop\n\n")[2].splitlines()
        self.assertEqual(
            [
                "- `web`: a stand-in: the chart of `https://x.example` cannot be fetched",
                "- kind `NodePool` of `x.sh/v1`: a stand-in; the API server lacks it",
                "- component `api`: deployed without `.spec.policy`, because the API server here is too old for it",
                "- action `look`: it ran and failed: finds nothing",
                "- action `nightly`: no event of the run starts it",
            ],
            notes,
        )

    def test_type_of_what_was_left_out_is_named_as_a_type(self):
        left_out = [
            ["component", "rds", "is a `pulumi`", None],
            ["action", "a", "needs component `rds`, which is left out", None],
        ]

        text = page.text([{**self.RESULT, "left_out": left_out}], "2026-11-22", "0123456")

        self.assertIn("- component `rds`: left out: is of type `pulumi`\n", text)
        self.assertIn("- action `a`: left out: needs component `rds`, which is left out\n", text)

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


if __name__ == "__main__":
    unittest.main()
