"""Copies of images: our engine and skopeo take turns between registries on loopback."""

import json
import shutil
import subprocess
import sys

from programs import cargo, program
from registry import MIB, push_image, registry

# The layers of the copied images, in MiB.
IMAGES = {"small": [10], "big": [200], "many": [1 / 16] * 200, "base": [64, 16], "shared": [64, 16, 4]}
# The kernel's figure for a child's memory includes the parent that started it, so a small parent starts each child.
MEASURE = """import json, os, sys, time
started = time.monotonic()
_, status, used = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)
print(json.dumps([time.monotonic() - started, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
sys.exit(status != 0)"""


def copies(args, results):
    """Copies each image with each tool, in turns."""
    if not shutil.which("docker-registry"):
        for tool in ("copy", "skopeo"):
            results.skip(tool, "there is no docker-registry on PATH (Debian package docker-registry)")
        return
    engine, builder = program("examples/oci-copy", args.release), program("freehold-builder", args.release)
    if not args.release:
        cargo("build", "-p", "freehold-oci", "--example", "oci-copy")
        results.is_dev_build("copy", "the copy engine")
        results.is_dev_build("copy.runner", "the builder")
    tools = {"copy": lambda source, target: [engine, source, target.rsplit(":", 1)[0]]}
    if skopeo := shutil.which("skopeo"):
        tools["skopeo"] = lambda source, target: [
            skopeo,
            "copy",
            "--quiet",
            "--src-tls-verify=false",
            "--dest-tls-verify=false",
            f"docker://{source}",
            f"docker://{target}",
        ]
    else:
        results.skip("skopeo", "there is no skopeo on PATH (Debian package skopeo)")
    images = {**IMAGES, "big": [args.large]}
    with registry("from") as source:
        for tag, layers in images.items():
            push_image(source, tag, layers)
        for number in range(args.copies):
            for case, before in (
                ("small", None),
                ("big", None),
                ("many", None),
                ("shared", "base"),
                ("unchanged", "many"),
            ):
                # The tools take turns, so that neither always runs first.
                for tool in list(tools)[:: 1 if number % 2 else -1]:
                    # A fresh registry on another port each time, so that no tool remembers it.
                    with registry(f"to-{number}-{case}-{tool}") as target:
                        tag = before if case == "unchanged" else case
                        if before:
                            _copy(None, "", tools[tool](f"{source}/app:{before}", f"{target}/app:{before}"))
                        _copy(results, f"{tool}.{case}", tools[tool](f"{source}/app:{tag}", f"{target}/app:{tag}"))
            with registry(f"to-{number}-runner") as target:
                results.run_bin(
                    "bench-runner",
                    "--runner",
                    builder,
                    "copy",
                    "--image",
                    f"{source}/app:big",
                    "--target",
                    f"http://{target}",
                    "--name",
                    "copy.runner",
                )


def _copy(results, name, command):
    """Runs one copy and adds its figures, if anybody wants them. Our engine itself reports how much memory it used."""
    command = [sys.executable, "-ISc", MEASURE, *map(str, command)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"a copy failed: {' '.join(command[4:])}")
    *lines, measured = done.stdout.splitlines()
    wall, cpu, memory = json.loads(measured)
    report = json.loads(lines[-1]) if lines else {}
    memory = report["peak_kib"] / 1024 if report else memory
    if results is None:
        return
    for what, value in (("wall", wall), ("cpu", cpu), ("memory", memory)):
        results.add(f"{name}.{what}", value)
    if report:
        results.add(f"{name}.sent", report["sent_bytes"] / MIB)
