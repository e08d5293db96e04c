"""Makes an OCI image layout whose one layer is the machine's static busybox."""

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path

IMAGE = "application/vnd.oci.image"


def make(busybox, into):
    """Writes the layout to the directory `into`; the same busybox gives the same digests."""
    blobs = Path(into) / "blobs" / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)

    def put(data, media_type):
        digest = hashlib.sha256(data).hexdigest()
        (blobs / digest).write_bytes(data)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    tar = _tar(Path(busybox).read_bytes())
    layer = put(gzip.compress(tar, 6, mtime=0), f"{IMAGE}.layer.v1.tar+gzip")
    config = put(
        _json(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": {"Cmd": ["/bin/sh"]},
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(tar).hexdigest()}"]},
            }
        ),
        f"{IMAGE}.config.v1+json",
    )
    manifest = put(
        _json({"schemaVersion": 2, "mediaType": f"{IMAGE}.manifest.v1+json", "config": config, "layers": [layer]}),
        f"{IMAGE}.manifest.v1+json",
    )
    (Path(into) / "index.json").write_bytes(_json({"schemaVersion": 2, "manifests": [manifest]}))
    (Path(into) / "oci-layout").write_bytes(_json({"imageLayoutVersion": "1.0.0"}))
    return manifest["digest"]


def _json(value):
    return json.dumps(value, sort_keys=True).encode()


def _tar(busybox):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        directory = tarfile.TarInfo("bin")
        directory.type, directory.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(directory)
        program = tarfile.TarInfo("bin/busybox")
        program.size, program.mode = len(busybox), 0o755
        tar.addfile(program, io.BytesIO(busybox))
        shell = tarfile.TarInfo("bin/sh")
        shell.type, shell.linkname = tarfile.SYMTYPE, "busybox"
        tar.addfile(shell)
    return raw.getvalue()
