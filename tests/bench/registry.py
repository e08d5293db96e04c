"""Registries on loopback (`docker-registry`), and images of random bytes in them."""

import contextlib
import hashlib
import http.client
import json
import random
import shutil
import socket
import subprocess
import sys
import time
import zlib

from programs import WORK

MIB = 1 << 20
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@contextlib.contextmanager
def registry(name):
    """Runs a registry with a separate directory; yields its address."""
    place = WORK / "registry" / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    config = {
        "version": 0.1,
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(place / "data")}, "delete": {"enabled": True}},
        "http": {"addr": address},
    }
    (place / "config.yml").write_text(json.dumps(config))  # JSON is YAML
    with open(place / "log", "w") as log:
        process = subprocess.Popen(["docker-registry", "serve", place / "config.yml"], stdout=log, stderr=log)
    try:
        _until_up(address, process)
        yield address
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(place, ignore_errors=True)


def _until_up(address, process):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if _ask(address, "GET", "/v2/")[0] == 200:
                return
        except OSError:
            time.sleep(0.05)
    sys.exit("docker-registry did not start")


def push_image(address, tag, mibs):
    """Pushes an image of layers of random bytes; a layer's size decides its bytes, so that images share layers."""
    layers = [_push_layer(address, number if mib < 1 else 0, int(mib * MIB)) for number, mib in enumerate(mibs)]
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [diff for diff, _ in layers]},
        }
    ).encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {**_push_bytes(address, config), "mediaType": "application/vnd.oci.image.config.v1+json"},
        "layers": [{**layer, "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip"} for _, layer in layers],
    }
    status, _ = _ask(
        address, "PUT", f"/v2/app/manifests/{tag}", json.dumps(manifest).encode(), {"content-type": MANIFEST}
    )
    if status != 201:
        sys.exit(f"the registry refused a manifest: {status}")


def _raw(number, size):
    bits = random.Random(f"{number} {size}")
    for start in range(0, size, MIB):
        yield bits.randbytes(min(MIB, size - start))


def _zipped(chunks):
    """Wraps chunks in gzip without compression: a tool would compress a layer that is not gzip."""
    packer = zlib.compressobj(level=0, wbits=31)
    for chunk in chunks:
        yield packer.compress(chunk)
    yield packer.flush()


def _push_layer(address, number, size):
    """Pushes a layer; returns the digest of its content and its descriptor."""
    inner, outer, length = hashlib.sha256(), hashlib.sha256(), 0
    for chunk in _raw(number, size):
        inner.update(chunk)
    for chunk in _zipped(_raw(number, size)):
        outer.update(chunk)
        length += len(chunk)
    pushed = _push(address, f"sha256:{outer.hexdigest()}", length, filter(None, _zipped(_raw(number, size))))
    return f"sha256:{inner.hexdigest()}", pushed


def _push_bytes(address, data):
    return _push(address, f"sha256:{hashlib.sha256(data).hexdigest()}", len(data), data)


def _push(address, digest, size, body):
    _, headers = _ask(address, "POST", "/v2/app/blobs/uploads/", b"")
    place = "/v2/" + headers["Location"].split("/v2/", 1)[1]
    place += ("&" if "?" in place else "?") + f"digest={digest}"
    headers = {"content-type": "application/octet-stream", "content-length": str(size)}
    status, _ = _ask(address, "PUT", place, body, headers)
    if status != 201:
        sys.exit(f"the registry refused a blob: {status}")
    return {"digest": digest, "size": size}


def _ask(address, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        answer.read()
        return answer.status, dict(answer.getheaders())
    finally:
        connection.close()
