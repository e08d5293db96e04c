"""Counts of a deploy in the local cloud, and the function `api` beside its peer in Node."""

import os
import shutil
import subprocess
import zipfile

from programs import HERE, TARGET, WORK, tool

ZIPS = TARGET / "lambda/x86_64"


def counted(results):
    """Counts what a deploy of ten components costs, and the bytes of the zips where there are any."""
    _count(results)


def functions(args, results):
    """Counts a deploy, and measures the function `api` and its peer in the same local cloud."""
    program = _function(results)
    node, why = _node()
    measure = f"'{tool('lambda-rapi')}' --trials {args.trials} --warm 50 --event \"$EVENT\""
    ours, peer = f"{measure} --name function '{program}'", f"{measure} --name node {node}"
    script = f"set -e; {ours}; {peer}; {ours}; {peer}" if node else f"{ours}; {ours}"
    if not node:
        results.skip("node", why)
    _count(results, "--", "sh", "-c", script)


def _count(results, *then):
    results.run_bin("bench-cloud", "--functions", TARGET / "lambda/local", *then)
    zips = [path.stat().st_size for path in ZIPS.glob("*.zip")]
    if zips:
        results.add("zip.largest", max(zips) / 1e6)
    else:
        results.skip("zip", "no zips; run `make package`")


def _function(results):
    """Returns the program of the function `api`, from the best available build."""
    zipped, release = ZIPS / "api.zip", TARGET / "release/api"
    if zipped.is_file() and os.uname().machine == "x86_64":
        with zipfile.ZipFile(zipped) as archive:
            program = WORK / "bootstrap"
            program.write_bytes(archive.read("bootstrap"))
        program.chmod(0o755)
        return program
    if release.is_file():
        return release
    results.is_dev_build("function", "the function")
    return TARGET / "debug/api"


def _node():
    """Returns the command that runs the bundled peer, or nothing with the reason."""
    if not (shutil.which("node") and shutil.which("npm")):
        return None, "there is no node with npm on PATH"
    place = WORK / "node"
    shutil.copytree(HERE / "node", place, dirs_exist_ok=True)
    bundle = place / "bundle.mjs"
    steps = [
        ["npm", "ci" if (place / "package-lock.json").exists() else "install", "--silent", "--no-audit", "--no-fund"],
        [
            str(place / "node_modules/.bin/esbuild"),
            "bootstrap.mjs",
            "--bundle",
            "--minify",
            "--platform=node",
            "--format=esm",
            f"--outfile={bundle}",
            "--log-level=error",
            "--banner:js=import{createRequire}from'module';const require=createRequire(import.meta.url);",
        ],
    ]
    for step in steps:
        done = subprocess.run(step, cwd=place, capture_output=True, text=True)
        if done.returncode:
            return None, f"`{step[0]}` failed: {(done.stderr or done.stdout).strip()[:120]}"
    return f"node '{bundle}'", ""
