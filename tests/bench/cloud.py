"""Counts of deploys and checks in the local cloud, and the function `api` beside its peer in Node."""

import shutil
import subprocess
import zipfile

from programs import ARCHITECTURE, HERE, ROOT, TARGET, WORK, program, tool

ZIPS = TARGET / "lambda" / ARCHITECTURE
# Which source tree the zips are of, as `infra/package` writes it.
ZIPS_OF = ZIPS.with_name(f"{ARCHITECTURE}.tree")


def counted(results):
    """Counts the cost of ten components (deploy, approvals, drift check), and the bytes of zips, if there are any.

    Then the function `api` of this tree answers once, as it is measured in a release.
    """
    results.is_dev_build("function", "the function")
    _count(results, "--", "sh", "-c", f"{_measure(1, 1)} --name function '{program('api', False)}'")


def functions(args, results):
    """Counts a deploy, and measures the function `api` and its peer in the same local cloud."""
    function = _function(args.release, results)
    node, why = _node()
    measure = _measure(args.trials, 50)
    ours, peer = f"{measure} --name function '{function}'", f"{measure} --name node {node}"
    script = f"set -e; {ours}; {peer}; {ours}; {peer}" if node else f"{ours}; {ours}"
    if not node:
        results.skip("node", why)
    _count(results, "--", "sh", "-c", script)


def _measure(trials, warm):
    return f"'{tool('lambda-rapi')}' --trials {trials} --warm {warm} --event \"$EVENT\""


def _count(results, *then):
    results.run_bin("bench-cloud", "--functions", TARGET / "lambda/local", *then)
    zips = [path.stat().st_size for path in ZIPS.glob("*.zip")]
    if not zips:
        results.skip("zip", "no zips; run `make package`")
    elif of_another_tree(ZIPS_OF):
        results.skip("zip", "no zips of this source tree; run `make package`")
    else:
        results.add("zip.largest", max(zips) / 1e6)


def of_another_tree(stamp):
    """Returns whether the zips with this stamp were made from other sources than those of this tree."""
    command = [ROOT / "infra/package", "--tree"]
    here = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    return here == "unknown" or not stamp.exists() or stamp.read_text().strip() != here


def _function(release, results):
    """Returns the program of the function `api`: what its zip for Lambda has, or its dev build."""
    if not release:
        results.is_dev_build("function", "the function")
        return program("api", release)
    bootstrap = WORK / "bootstrap"
    with zipfile.ZipFile(ZIPS / "api.zip") as archive:
        bootstrap.write_bytes(archive.read("bootstrap"))
    bootstrap.chmod(0o755)
    return bootstrap


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
