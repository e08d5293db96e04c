"""Charts, kustomizations and manifests in the place of those that cannot be had. Each makes one object, which holds the
values that it is told, so that a changed value changes it."""

import functools
import gzip
import hashlib
import http.server
import io
import json
import re
import tarfile
from urllib.parse import urlsplit

VERSION = "1.0.0"
TEMPLATE = """apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-stand-in
data:
  values: {{ toYaml .Values | quote }}
"""
OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  of: {source}\n"


def write_chart(folder, name):
    for path, text in _chart(name, VERSION).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def write_kustomization(folder, name, source):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kustomization.yaml").write_text("resources:\n  - stand-in.yaml\n")
    (folder / "stand-in.yaml").write_text(manifest(name, source))


def manifest(name, source):
    """Returns a manifest of one object in the place of that at `source`."""
    return OBJECT.format(name=f"{name.replace('_', '-').lower()}-stand-in", source=json.dumps(source))


def version_of(asked):
    """Returns a version that a range such as `~1.2` or `>= 1.2, < 2` takes: the first that it names."""
    found = re.search(r"\d+(?:\.(?:\d+|x|X|\*)){0,2}(?:-[\w.-]+)?", asked or "")
    if not found:
        return VERSION
    numbers, dash, rest = found[0].partition("-")
    parts = [part if part.isdigit() else "0" for part in numbers.split(".")]
    return ".".join([*parts, "0", "0"][:3]) + dash + rest


def write_layout(folder, name, asked):
    """Writes a chart as an image layout, in the form in which Helm keeps it in a registry; returns the folder."""
    blobs = folder / "blobs/sha256"
    blobs.mkdir(parents=True)

    def put(content, kind):
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)}

    version = version_of(asked)
    config = put(_chart(name, version)["Chart.yaml"].encode(), "application/vnd.cncf.helm.config.v1+json")
    layer = put(_archive(name, version), "application/vnd.cncf.helm.chart.content.v1.tar+gzip")
    kind = "application/vnd.oci.image.manifest.v1+json"
    manifest = {"schemaVersion": 2, "mediaType": kind, "config": config, "layers": [layer]}
    (folder / "index.json").write_text(json.dumps({"manifests": [put(json.dumps(manifest).encode(), kind)]}))
    return folder


class Repositories:
    """Chart repositories over HTTPS, by their host: an index of charts, and an archive of each."""

    def __init__(self):
        self._files = {}  # host -> path -> content
        self._entries = {}  # (host, folder) -> chart -> entries of the index

    def add(self, address, name, asked):
        """Puts a stand-in for a chart into the repository at `address`."""
        place, version = urlsplit(address), version_of(asked)
        folder = place.path.strip("/")
        archive = _archive(name, version)
        file = f"{name}-{version}.tgz"
        entries = self._entries.setdefault((place.hostname, folder), {})
        entry = {"version": version, "urls": [file], "digest": hashlib.sha256(archive).hexdigest()}
        entries.setdefault(name, []).append({"apiVersion": "v2", "name": name, **entry})
        files = self._files.setdefault(place.hostname, {})
        prefix = f"/{folder}/" if folder else "/"
        files[prefix + file] = archive
        files[f"{prefix}index.yaml"] = json.dumps({"apiVersion": "v1", "entries": entries}).encode()

    def handlers(self):
        """Returns what answers for each host."""
        return {host: functools.partial(Files, files) for host, files in self._files.items()}


class Files(http.server.BaseHTTPRequestHandler):
    """Answers reads of a few files."""

    protocol_version = "HTTP/1.1"

    def __init__(self, files, *arguments):
        self._files = files
        super().__init__(*arguments)

    def do_GET(self):
        content = self._files.get(self.path.partition("?")[0])
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, *_):
        pass


def _chart(name, version):
    about = {"apiVersion": "v2", "name": name, "version": version, "description": "a stand-in"}
    return {"Chart.yaml": json.dumps(about), "values.yaml": "{}\n", "templates/values.yaml": TEMPLATE}


def _archive(name, version):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, text in _chart(name, version).items():
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return gzip.compress(packed.getvalue(), mtime=0)
