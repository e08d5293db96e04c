"""The contract of the local registry: logins, who may push and pull, layer URLs."""

import base64
import hashlib
import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from contract_cloud import REGION, Contract, Instance, allow, needs, refusal, shared, until

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"


@needs("registry")
class Registry(Contract):
    PULL = ("ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer", "ecr:BatchCheckLayerAvailability")
    PUSH = (
        "ecr:InitiateLayerUpload",
        "ecr:UploadLayerPart",
        "ecr:CompleteLayerUpload",
        "ecr:PutImage",
        "ecr:BatchCheckLayerAvailability",
    )

    def setUp(self):
        super().setUp()
        self.repository = self.account.client("ecr").create_repository(repositoryName="app/web")["repository"]
        arn = self.repository["repositoryArn"]
        login = allow("ecr:GetAuthorizationToken")
        self.builder = self.account.role("builder", login, allow(*self.PUSH, *self.PULL, on=arn))
        self.reader = self.account.role("reader", login, allow(*self.PULL, on=arn))

    def login(self, principal):
        data = principal.client("ecr").get_authorization_token()["authorizationData"][0]
        return data["proxyEndpoint"], {"Authorization": f"Basic {data['authorizationToken']}"}

    def push_blob(self, principal, blob, endpoint=None):
        registry, login = self.login(principal)
        uploads = f"{endpoint or registry}/v2/app/web/blobs/uploads/"
        started = shared().http("POST", uploads, login)
        if started.status != 202:
            return started
        url = f"{endpoint or registry}{started.headers['Location']}?digest={digest(blob)}"
        return shared().http("PUT", url, login, blob)

    def push_image(self, principal, layer=b"layer"):
        self.push_blob(principal, b"{}")
        self.push_blob(principal, layer)
        manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST_TYPE,
                "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "size": 2, "digest": digest(b"{}")},
                "layers": [
                    {"mediaType": "application/vnd.oci.image.layer.v1.tar", "size": len(layer), "digest": digest(layer)}
                ],
            }
        )
        registry, login = self.login(principal)
        return shared().http(
            "PUT", f"{registry}/v2/app/web/manifests/v1", {**login, "Content-Type": MANIFEST_TYPE}, manifest.encode()
        )

    def test_login_names_the_accounts_own_registry_on_loopback(self):
        registry, _ = self.login(self.builder)

        host = f"{self.account.id}.dkr.ecr.{REGION}"
        self.assertEqual(f"http://{host}.localhost:{shared().port}", registry)
        self.assertEqual(f"{host}.amazonaws.com/app/web", self.repository["repositoryUri"])

    def test_builder_pushes_and_reader_only_pulls(self):
        self.assertEqual(201, self.push_image(self.builder).status)
        registry, login = self.login(self.reader)

        manifest = shared().http("GET", f"{registry}/v2/app/web/manifests/v1", login)
        blob = shared().http("GET", f"{registry}/v2/app/web/blobs/{digest(b'layer')}", login)

        self.assertEqual((200, 200, b"layer"), (manifest.status, blob.status, blob.body))
        self.assertEqual(403, self.push_image(self.reader).status)
        self.assertEqual(403, self.push_blob(self.reader, b"other").status)

    def test_registry_asks_for_a_login_and_refuses_a_made_up_one(self):
        registry, _ = self.login(self.builder)
        made_up = {"Authorization": "Basic " + base64.b64encode(b"AWS:made-up").decode()}

        anonymous = shared().http("GET", f"{registry}/v2/")

        self.assertEqual(401, anonymous.status)
        self.assertIn("Basic ", anonymous.headers["WWW-Authenticate"])
        self.assertEqual(403, shared().http("GET", f"{registry}/v2/", made_up).status)

    def test_login_of_another_account_needs_the_repository_policy(self):
        self.push_image(self.builder)
        stranger = shared().account().role("reader", allow("ecr:*"))
        registry, _ = self.login(self.reader)
        _, login = self.login(stranger)
        manifest = f"{registry}/v2/app/web/manifests/v1"

        before = shared().http("GET", manifest, login)
        self.account.client("ecr").set_repository_policy(
            repositoryName="app/web",
            policyText=json.dumps(
                {
                    "Version": "2012-10-17",
                    "Statement": [
                        {"Effect": "Allow", "Principal": {"AWS": stranger.id}, "Action": "ecr:BatchGetImage"}
                    ],
                }
            ),
        )

        self.assertEqual((403, 200), (before.status, shared().http("GET", manifest, login).status))

    def test_login_chooses_the_registry_when_the_host_is_an_address(self):
        pushed = self.push_blob(self.builder, b"x", endpoint=shared().endpoint)

        self.assertEqual(201, pushed.status, pushed)

    def test_layer_url_needs_no_login_and_cannot_be_altered(self):
        self.push_image(self.builder)
        ecr = self.reader.client("ecr")

        url = ecr.get_download_url_for_layer(repositoryName="app/web", layerDigest=digest(b"layer"))["downloadUrl"]

        self.assertTrue(
            url.startswith(f"http://{self.account.id}.dkr.ecr.{REGION}.localhost:{shared().port}/v2/app/web/blobs/"),
            url,
        )
        self.assertEqual(b"layer", shared().http("GET", url).body)
        for altered in (url[:-1] + "é", url.replace(digest(b"layer"), digest(b"{}")), url.partition("?")[0]):
            self.assertIn(shared().http("GET", altered.replace("é", "g")).status, (401, 403))
        nobody = self.account.role("nobody")
        self.refused(
            "AccessDenied",
            nobody.client("ecr").get_download_url_for_layer,
            repositoryName="app/web",
            layerDigest=digest(b"layer"),
        )

    def test_deleted_image_is_gone_from_the_registry_with_its_layers(self):
        self.push_image(self.builder, b"first")
        ecr = self.account.client("ecr")
        image = ecr.describe_images(repositoryName="app/web")["imageDetails"][0]["imageDigest"]
        registry, login = self.login(self.reader)
        before = shared().http("GET", f"{registry}/v2/app/web/manifests/{image}", login).status

        ecr.batch_delete_image(repositoryName="app/web", imageIds=[{"imageDigest": image}])

        after = shared().http("GET", f"{registry}/v2/app/web/manifests/{image}", login).status
        layer = shared().http("GET", f"{registry}/v2/app/web/blobs/{digest(b'first')}", login).status
        self.assertEqual((before, after, layer), (200, 404, 404))

    def test_absent_layers_are_reported_as_absent(self):
        self.push_image(self.builder)
        ecr, absent = self.reader.client("ecr"), digest(b"absent")

        found = ecr.batch_check_layer_availability(repositoryName="app/web", layerDigests=[digest(b"layer"), absent])

        self.refused("LayersNotFound", ecr.get_download_url_for_layer, repositoryName="app/web", layerDigest=absent)
        self.assertEqual(
            [(digest(b"layer"), "AVAILABLE", 5)],
            [(layer["layerDigest"], layer["layerAvailability"], layer["layerSize"]) for layer in found["layers"]],
        )
        self.assertEqual([absent], [failure["layerDigest"] for failure in found["failures"]])

    def test_wrong_digest_is_refused(self):
        registry, login = self.login(self.builder)
        started = shared().http("POST", f"{registry}/v2/app/web/blobs/uploads/", login)

        url = f"{registry}{started.headers['Location']}?digest={digest(b'other')}"

        self.assertEqual(400, shared().http("PUT", url, login, b"layer").status)

    def test_immutable_tag_cannot_be_moved(self):
        self.account.client("ecr").put_image_tag_mutability(repositoryName="app/web", imageTagMutability="IMMUTABLE")

        first, again = self.push_image(self.builder), self.push_image(self.builder)
        moved = self.push_image(self.builder, b"other layer")

        self.assertEqual((201, 201, 400), (first.status, again.status, moved.status))
        self.assertIn(b"TAG_INVALID", moved.body)

    def test_deviation_registry_has_no_referrers_api(self):
        self.push_image(self.builder)
        registry, login = self.login(self.builder)

        answer = shared().http("GET", f"{registry}/v2/app/web/referrers/{digest(b'subject')}", login)

        self.assertIn(answer.status, (403, 404))

    def test_deviation_another_accounts_registry_id_is_ignored(self):
        other = shared().account()
        self.push_image(self.builder)

        self.refused(
            "RepositoryNotFound",
            other.client("ecr").batch_get_image,
            registryId=self.account.id,
            repositoryName="app/web",
            imageIds=[{"imageTag": "v1"}],
        )

    @unittest.skipUnless(shutil.which("skopeo"), "skopeo is not installed")
    def test_skopeo_logs_in_pushes_and_pulls(self):
        with tempfile.TemporaryDirectory() as directory:
            source = write_image(Path(directory, "in"))
            name = f"docker://127.0.0.1:{shared().port}/app/web:v2"
            pushed = self.skopeo(self.builder, "dest", source, name)
            refused = self.skopeo(self.reader, "dest", source, name.replace("v2", "v3"))
            pulled = self.skopeo(self.reader, "src", name, f"dir:{directory}/out")

            self.assertEqual((0, 0), (pushed.returncode, pulled.returncode), pushed.stderr + pulled.stderr)
            self.assertIn("not authorized", refused.stderr)

    def skopeo(self, principal, side, source, target):
        _, login = self.login(principal)
        password = base64.b64decode(login["Authorization"].split()[1]).decode()
        return subprocess.run(
            [
                "skopeo",
                "copy",
                f"--{side}-creds",
                password,
                f"--{side}-tls-verify=false",
                "--insecure-policy",
                source,
                target,
            ],
            capture_output=True,
            text=True,
        )


@needs("registry")
class ShortLivedRegistry(unittest.TestCase):
    def test_layer_url_and_login_expire(self):
        instance = Instance(env={"FREEHOLD_LAYER_URL_SECS": "10", "FREEHOLD_REGISTRY_TOKEN_SECS": "10"})
        self.addCleanup(instance.close)
        account = instance.account()
        ecr = account.client("ecr")
        ecr.create_repository(repositoryName="repo")
        data = ecr.get_authorization_token()["authorizationData"][0]
        registry, login = data["proxyEndpoint"], {"Authorization": f"Basic {data['authorizationToken']}"}
        instance.http("POST", f"{registry}/v2/repo/blobs/uploads/?digest={digest(b'x')}", login, b"x")
        url = ecr.get_download_url_for_layer(repositoryName="repo", layerDigest=digest(b"x"))["downloadUrl"]

        self.assertEqual(200, instance.http("GET", url).status)

        self.assertIn(b"expired", until(lambda: refusal(instance, url, {}), "the layer URL expires"))
        self.assertIn(b"expired", until(lambda: refusal(instance, f"{registry}/v2/", login), "the login expires"))


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def write_image(directory):
    """Writes a small image in skopeo's `dir:` form and returns its name."""
    directory.mkdir()
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [digest(b"\0" * 1024)]},
        }
    ).encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "size": len(config),
            "digest": digest(config),
        },
        "layers": [
            {"mediaType": "application/vnd.oci.image.layer.v1.tar", "size": 1024, "digest": digest(b"\0" * 1024)}
        ],
    }
    for data in (config, b"\0" * 1024):
        (directory / digest(data).partition(":")[2]).write_bytes(data)
    (directory / "manifest.json").write_text(json.dumps(manifest))
    (directory / "version").write_text("Directory Transport Version: 1.1\n")
    return f"dir:{directory}"


if __name__ == "__main__":
    unittest.main()
