"""A registry in which every image is the same small one: the machine's busybox stands in for it."""

import functools
import hashlib
import http.server
import json
import re
import shutil

import image_layout

DOCKER_HUB = "registry-1.docker.io"
MANIFEST = re.compile(r"^/v2/.+/manifests/([^/]+)$")
BLOB = re.compile(r"^/v2/.+/blobs/sha256:([0-9a-f]{64})$")
# Where signatures of an image are looked for. The stand-in has none.
OF_AN_IMAGE = re.compile(r"^sha256-[0-9a-f]{64}")


def host_of(image):
    """Returns the host of an image's registry (distribution reference: without one it is Docker Hub)."""
    first, slash, _ = image.partition("/")
    is_host = slash and ("." in first or ":" in first or first == "localhost")
    host = first if is_host else "docker.io"
    return DOCKER_HUB if host in ("docker.io", "index.docker.io") else host.partition(":")[0]


def registry(folder):
    """Returns what answers for a registry, or nothing on a machine without busybox."""
    busybox = shutil.which("busybox")
    if not busybox:
        return None
    image_layout.make(busybox, folder)
    return functools.partial(Registry, folder)


class Registry(http.server.BaseHTTPRequestHandler):
    """Answers reads of the OCI distribution specification 1.1, without a login."""

    protocol_version = "HTTP/1.1"

    def __init__(self, layout, *arguments):
        self._layout = layout
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
        if found := BLOB.match(path):
            blob = self._layout / "blobs/sha256" / found[1]
            return ("application/octet-stream", blob.read_bytes()) if blob.exists() else None
        if (found := MANIFEST.match(path)) and not OF_AN_IMAGE.match(found[1]):
            manifest = json.loads((self._layout / "index.json").read_bytes())["manifests"][0]
            if found[1] == manifest["digest"] or not found[1].startswith("sha256:"):
                digest = manifest["digest"].partition(":")[2]
                return manifest["mediaType"], (self._layout / "blobs/sha256" / digest).read_bytes()
        return None

    def log_message(self, *_):
        pass
