"""The contract of EKS: a cluster is a real API server, and exactly the principals with an access entry get in.

The tests share one cluster; each has roles and namespaces of its own. There are no nodes: what is said here about pods
rests on the fake kubelet.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from botocore.credentials import Credentials

import process_tree
import waiting
from contract_cloud import Contract, Instance, allow, needs, shared, until
from contract_kubernetes import (
    POLICY,
    START_SECS,
    Api,
    Cluster,
    begin_cluster,
    config_map,
    folder,
    helm,
    make_cluster,
    needs_clusters,
    pids,
    pod,
    shared_cluster,
    token,
)
from kubernetes import programs

CHART = Path(__file__).parents[1] / "kubernetes/chart"
NAMESPACES = "/api/v1/namespaces"
ADMIN, EDIT, VIEW = "AmazonEKSClusterAdminPolicy", "AmazonEKSEditPolicy", "AmazonEKSViewPolicy"


def arn(account, role):
    return f"arn:aws:iam::{account.id}:role/{role}"


class OnCluster(Contract):
    """A test on the shared cluster, with a role that has no rights at AWS."""

    def setUp(self):
        self.cluster = shared_cluster()
        self.account = self.cluster.account
        self.name = self._testMethodName.removeprefix("test_").replace("_", "-")[:50].rstrip("-")
        self.role = self.account.role(self.name)
        self.arn = arn(self.account, self.name)

    def admitted(self, policy=ADMIN, namespaces=()):
        """Gives the role an entry with a policy, and returns its API once that counts."""
        self.cluster.admit(self.arn, policy, namespaces)
        path = f"{NAMESPACES}/{namespaces[0]}/configmaps" if namespaces else NAMESPACES
        self.cluster.until_answered(200, self.role, path)
        return self.cluster.api(self.role)


@needs("clusters")
@needs_clusters
class Access(OnCluster):
    def test_describe_cluster_shows_an_api_server_with_a_certificate_of_its_authority(self):
        status, version = Api(self.cluster, None)("GET", "/version")

        account = self.cluster.administrator()("GET", f"{NAMESPACES}/default/serviceaccounts/default")[1]
        self.assertEqual(("ACTIVE", 200, "v1.20.2"), (self.cluster.status, status, version["gitVersion"]))
        self.assertTrue(account.get("secrets"), "a pod can be made")

    def test_eks_api_obeys_iam(self):
        describe = allow("eks:DescribeCluster", on=f"arn:aws:eks:*:{self.account.id}:cluster/one")
        reader = self.account.role("reader", describe).client("eks")

        reader.describe_cluster(name="one")

        self.refused("AccessDenied", reader.delete_cluster, name="one")
        self.refused("AccessDenied", self.role.client("eks").describe_cluster, name="one")

    def test_role_gets_in_by_its_entry_alone_and_not_after_it_is_removed(self):
        before = self.cluster.api(self.role)("GET", NAMESPACES)[0]
        self.cluster.admit(self.arn)
        without_policy = self.cluster.api(self.role)("GET", NAMESPACES)[0]
        self.cluster.eks.associate_access_policy(
            clusterName="one", principalArn=self.arn, policyArn=POLICY + ADMIN, accessScope={"type": "cluster"}
        )
        self.cluster.until_answered(200, self.role)
        used = self.cluster.api(self.role)

        self.cluster.eks.delete_access_entry(clusterName="one", principalArn=self.arn)

        self.assertEqual((401, 403), (before, without_policy))
        self.cluster.until_answered(401, self.role)
        # The API server keeps an accepted token for 10 s.
        waiting.until(lambda: used("GET", NAMESPACES)[0] == 401, "the used token is refused", START_SECS)

    def test_no_other_token_gets_in(self):
        self.admitted()
        namesake = shared().account().role(self.name)
        stranger = self.account.role("stranger")
        forged = Credentials(self.role.credentials.access_key, "x" * 40, self.role.credentials.token)
        tokens = {
            "a role without an entry": token(stranger, "one"),
            "the role of the same name in another account": token(namesake, "one"),
            "a token for another cluster": token(self.role, "two"),
            "a forged signature": token(self.role, "one", credentials=forged),
            "a token of 16 minutes ago": token(self.role, "one", age_secs=16 * 60),
            "another host than that of AWS": token(self.role, "one", host=f"127.0.0.1:{shared().port}"),
            "not a token of AWS": "abc",
        }

        answers = {what: Api(self.cluster, bearer)("GET", NAMESPACES)[0] for what, bearer in tokens.items()}

        self.assertEqual(dict.fromkeys(tokens, 401), answers)
        self.assertEqual(403, Api(self.cluster, None)("GET", NAMESPACES)[0], "no token")

    def test_policy_for_a_namespace_reaches_no_other(self):
        administrator = self.cluster.administrator()
        mine, other = administrator.namespace("mine"), administrator.namespace("other")

        api = self.admitted(EDIT, ["mine"])

        self.assertEqual(201, api("POST", f"{mine}/configmaps", config_map("one"))[0])
        self.assertEqual(403, api("POST", f"{other}/configmaps", config_map("one"))[0])
        self.assertEqual(403, api("GET", "/api/v1/nodes")[0])
        self.cluster.eks.disassociate_access_policy(clusterName="one", principalArn=self.arn, policyArn=POLICY + EDIT)
        self.cluster.until_answered(403, self.role, f"{mine}/configmaps")


@needs("clusters")
@needs_clusters
class Objects(OnCluster):
    def test_helm_installs_upgrades_and_waits_for_pods_and_hooks(self):
        if not (program := helm()):
            self.skipTest("there is no helm for this platform")
        api = self.admitted()
        tool = api.tool(program)
        install = ("upgrade", "--install", "app", CHART, "--namespace", "helm", "--create-namespace", "--wait")

        first = tool(*install, "--timeout", "60s")
        second = tool(*install, "--timeout", "60s", "--set", "greeting=hello,hook=true")
        greeting = api("GET", f"{NAMESPACES}/helm/configmaps/app")[1]["data"]["greeting"]
        held = tool(*install, "--timeout", "2s", "--set", "image=b,pod=hold")

        self.assertEqual((0, 0), (first[0], second[0]), first[2] + second[2])
        self.assertNotEqual(0, held[0])
        history = json.loads(tool("history", "app", "--namespace", "helm", "--output", "json")[1])
        self.assertEqual(["superseded", "deployed", "failed"], [revision["status"] for revision in history])
        self.assertEqual("hello", greeting)

    def test_server_side_apply_names_the_other_owner_of_a_field(self):
        api = self.admitted()
        path = api.namespace("applied") + "/configmaps/one"
        apply = api.tool(Path(programs.folder(), "kubectl"))
        words = ("apply", "--server-side", "--field-manager", "runner", "--namespace", "applied", "--filename", "-")
        first = apply(*words, stdin=json.dumps(config_map("one", key="value")))
        version = api("GET", path)[1]["metadata"]["resourceVersion"]

        again = apply(*words, stdin=json.dumps(config_map("one", key="value")))
        other = api(
            "PATCH", f"{path}?fieldManager=other", config_map("one", key="other"), "application/apply-patch+yaml"
        )

        self.assertEqual((0, 0), (first[0], again[0]), first[2] + again[2])
        self.assertEqual(version, api("GET", path)[1]["metadata"]["resourceVersion"], "nothing has changed")
        self.assertEqual((409, "FieldManagerConflict"), (other[0], other[1]["details"]["causes"][0]["reason"]))

    def test_deviation_pods_are_reported_as_running_without_nodes(self):
        api = self.admitted()
        pods = api.namespace("pods") + "/pods"
        account = f"{NAMESPACES}/pods/serviceaccounts/default"
        until(lambda: api("GET", account)[1].get("secrets"), "the account of its pods has a token")
        for name, labels in {"runs": {}, "held": {"fake-kubelet": "hold"}, "fails": {"fake-kubelet": "fail"}}.items():
            self.assertEqual(201, api("POST", pods, pod(name, **labels))[0])

        def phases():
            return {one["metadata"]["name"]: one["status"]["phase"] for one in api("GET", pods)[1]["items"]}

        until(lambda: phases() == {"runs": "Running", "held": "Pending", "fails": "Failed"}, "the pods are reported")
        self.assertEqual([], api("GET", "/api/v1/nodes")[1]["items"])

    def test_deviation_a_claim_gets_a_volume_in_name_only(self):
        api = self.admitted()
        claims = api.namespace("claims") + "/persistentvolumeclaims"
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        for name, storage in {"of-a-class": {"storageClassName": "gp2"}, "of-none": {}}.items():
            claim = {"metadata": {"name": name}, "spec": {**spec, **storage}}
            self.assertEqual(201, api("POST", claims, claim)[0])

        def phases():
            return {one["metadata"]["name"]: one["status"]["phase"] for one in api("GET", claims)[1]["items"]}

        # On AWS a driver of the cluster makes them; without a storage class of this name they wait.
        until(lambda: phases() == {"of-a-class": "Bound", "of-none": "Bound"}, "the claims are bound")

    def test_processes_that_are_killed_start_again_with_their_data(self):
        api = self.admitted()
        path = api.namespace("kept") + "/configmaps"
        api("POST", path, config_map("one", key="value"))
        for name in ("apiserver", "etcd", "controllers"):
            killed = self.cluster.pids()[name]

            os.kill(killed, signal.SIGKILL)

            waiting.until(lambda: self.cluster.pids().get(name, killed) != killed, f"{name} is back", START_SECS)  # noqa: B023
            waiting.until(lambda: api("GET", path)[0] == 200, "the API server answers", START_SECS)
        self.assertEqual({"key": "value"}, api("GET", f"{path}/one")[1]["data"])


@needs("clusters")
@needs_clusters
class Ends(Contract):
    def test_delete_ends_the_processes_also_while_they_start(self):
        eks = self.account.client("eks")
        begin_cluster(self.account, "brief")
        files = folder(self.account, "brief")
        starting = until(lambda: pids(files), "its first process")

        eks.delete_cluster(name="brief")
        self.ended(starting)
        again = make_cluster(self.account, "brief")
        running = again.pids()
        eks.delete_cluster(name="brief")

        self.assertEqual(("ACTIVE", 3), (again.status, len(running)))
        self.ended(running)
        self.assertFalse(files.exists())
        self.refused("ResourceNotFoundException", eks.describe_cluster, name="brief")

    def test_reset_and_down_end_the_clusters(self):
        instance = Instance()
        running = make_cluster(instance.account(), "one").pids()

        answer = instance.http("POST", f"{instance.endpoint}/_ministack/reset")

        self.assertEqual((200, 3), (answer.status, len(running)))
        self.ended(running)
        starting = self.started(instance)
        instance.close()
        self.ended(starting)

    def test_clusters_end_when_the_emulator_is_killed(self):
        instance = Instance()
        starting = self.started(instance)

        os.kill(int((instance.state / "cloud.pid").read_text()), signal.SIGKILL)

        self.ended(starting)
        instance.close()

    def test_stack_waits_for_its_cluster_and_keeps_its_access_entry(self):
        member = self.account.role("member")
        self.account.role_arn("eks")
        self.template("create_stack", ADMIN)
        files = folder(self.account, "stack")
        cluster = Cluster(self.account, "stack")
        outputs = self.settled()["Outputs"]

        self.assertEqual([cluster.ca], [one["OutputValue"] for one in outputs])
        cluster.until_answered(200, member, "/api/v1/secrets")
        self.template("update_stack", VIEW)
        cluster.until_answered(403, member, "/api/v1/secrets")
        cluster.until_answered(200, member, "/api/v1/configmaps")
        self.template("update_stack", None)
        cluster.until_answered(401, member, "/api/v1/configmaps")
        running = pids(files)
        self.account.client("cloudformation").delete_stack(StackName="s")
        self.ended(running)

    def started(self, instance):
        """Begins a cluster, and returns its processes while it starts."""
        account = instance.account()
        begin_cluster(account, "one")
        return until(lambda: pids(folder(account, "one")), "its first process")

    def ended(self, running):
        left = list(running.values())
        until(lambda: not any(map(process_tree.command_line, left)), f"the processes end: {running}")

    def template(self, operation, policy):
        entry = {"ClusterName": {"Ref": "Cluster"}, "PrincipalArn": arn(self.account, "member")}
        entry["AccessPolicies"] = [{"PolicyArn": f"{POLICY}{policy}", "AccessScope": {"Type": "cluster"}}]
        cluster = {"Name": "stack", "RoleArn": arn(self.account, "eks"), "ResourcesVpcConfig": {"SubnetIds": ["s"]}}
        resources = {"Cluster": {"Type": "AWS::EKS::Cluster", "Properties": cluster}}
        if policy:
            resources["Entry"] = {"Type": "AWS::EKS::AccessEntry", "Properties": entry}
        outputs = {"Ca": {"Value": {"Fn::GetAtt": ["Cluster", "CertificateAuthorityData"]}}}
        body = json.dumps({"Resources": resources, "Outputs": outputs})
        getattr(self.account.client("cloudformation"), operation)(StackName="s", TemplateBody=body)
        self.assertIn(self.settled()["StackStatus"], ("CREATE_COMPLETE", "UPDATE_COMPLETE"))

    def settled(self):
        stacks = self.account.client("cloudformation")

        def stack():
            found = stacks.describe_stacks(StackName="s")["Stacks"][0]
            return not found["StackStatus"].endswith("IN_PROGRESS") and found

        return waiting.until(stack, "the stack settles", START_SECS)


@needs("clusters")
class Missing(unittest.TestCase):
    def test_cluster_without_its_programs_fails_with_the_way_out(self):
        instance = Instance(env={"FREEHOLD_KUBERNETES": "/nowhere"})

        cluster = make_cluster(instance.account(), "one")

        instance.close()
        self.assertEqual("FAILED", cluster.status)
        self.assertIn("run `localstack/kubernetes/build`", cluster.health["issues"][0]["message"])


class Build(unittest.TestCase):
    """`kubernetes/build`, without building: that takes minutes."""

    def test_programs_that_are_there_are_found_without_building(self):
        with tempfile.TemporaryDirectory() as cache:
            where = self.build(cache, "--where").stdout.strip()
            Path(where).mkdir(parents=True)

            found = self.build(cache, path=self.tools(cache))

        self.assertTrue(where.startswith(cache), where)
        self.assertEqual((0, where), (found.returncode, found.stdout.strip()), found.stderr)

    def test_machine_that_cannot_build_is_told_why_and_gets_no_folder(self):
        with tempfile.TemporaryDirectory() as cache:
            refused = self.build(cache, path=self.tools(cache))
            left = list(Path(cache).glob("freehold/kubernetes/*"))

        self.assertEqual((3, "", []), (refused.returncode, refused.stdout, left), refused.stderr)
        self.assertIn("`apt-get` is missing", refused.stderr.splitlines()[-1])

    def build(self, cache, *words, path=os.environ["PATH"]):
        env = {"PATH": str(path), "HOME": cache, "XDG_CACHE_HOME": cache}
        return subprocess.run([programs.BUILD, *words], env=env, capture_output=True, text=True)

    def tools(self, folder):
        """Returns a PATH without the tools of Debian."""
        path = Path(folder, "tools")
        path.mkdir()
        for name in ("bash", "cat", "dirname", "getconf"):
            (path / name).symlink_to(shutil.which(name))
        return path


if __name__ == "__main__":
    unittest.main()
