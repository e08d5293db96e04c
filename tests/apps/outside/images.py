"""A registry with one image under every name, for which the machine's busybox stands in, and with charts."""

import functools
import hashlib
import http.server
import json
import re
import shutil

import image_layout

DOCKER_HUB = "registry-1.docker.io"
MANIFEST = re.compile(r"^/v2/(.+)/manifests/([^/]+)$")
BLOB = re.compile(r"^/v2/(.+)/blobs/sha256:([0-9a-f]{64})$")
# Where signatures of an image are looked for. The stand-in has none.
OF_AN_IMAGE = re.compile(r"^sha256-[0-9a-f]{64}")


def host_of(image):
    """Returns the host of an image's registry (distribution reference: without one it is Docker Hub)."""
    first, slash, _ = image.partition("/")
    is_host = slash and ("." in first or ":" in first or first == "localhost")
    host = first if is_host else "docker.io"
    return DOCKER_HUB if host in ("docker.io", "index.docker.io") else host.partition(":")[0]


def layout(folder):
    """Returns the folder of the image that stands in for all, or nothing on a machine without busybox."""
    busybox = shutil.which("busybox")
    if not busybox:
        return None
    image_layout.make(busybox, folder)
    return folder


def registry(image, charts=None):
    """Returns what answers for a registry: charts by their repositories, and the image under every other name."""
    return functools.partial(Registry, image, charts or {})


class Registry(http.server.BaseHTTPRequestHandler):
    """Answers reads of the OCI distribution specification 1.1, without a login."""

    protocol_version = "HTTP/1.1"

    def __init__(self, image, charts, *arguments):
        self._image, self._charts = image, charts
        super().__init__(*arguments)

    def do_GET(self):
        found = self._find()
        kind, content = found or ("application/json", b'{"errors": [{"code": "NOT_FOUND"}]}')
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Docker-Content-Digest", f"sha256:{hashlib.sha256(content).hexdigest()}")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    do_HEAD = do_GET

    def _find(self):
        path = self.path.partition("?")[0]
        if path == "/v2/":
            return "application/json", b"{}"
        found = BLOB.match(path) or MANIFEST.match(path)
        layout = self._charts.get(found[1], self._image) if found else None
        if layout is None or OF_AN_IMAGE.match(found[2]):
            return None
        if BLOB.match(path):
            blob = layout / "blobs/sha256" / found[2]
            return ("application/octet-stream", blob.read_bytes()) if blob.exists() else None
        manifest = json.loads((layout / "index.json").read_bytes())["manifests"][0]
        if found[2] != manifest["digest"] and found[2].startswith("sha256:"):
            return None
        digest = manifest["digest"].partition(":")[2]
        return manifest["mediaType"], (layout / "blobs/sha256" / digest).read_bytes()

    def log_message(self, *_):
        pass
