"""The commands of the vendor's guide that make a tool image, in their order, in a folder of their own.

The guide's list fetches programs from the Internet, so the list is exchanged for its archives alone, which are made
here: a gzipped tar with one file. Commands that need a tenant are left out.
"""

import io
import re
import shlex
import shutil
import subprocess
import tarfile

import tomllib

from programs import BIN, ROOT, Failed

FOLDER = ROOT / "target" / "guides" / "tool-image"
COMMANDS = ("freehold tools init", "freehold tools pin", "freehold tools build", "freehold app check")
MAKES_ARCHIVE = "mmdebstrap"
SYNC = "freehold app sync"


def check(sections):
    """Does the commands of the only block that makes a tool image."""
    blocks = [block for found in sections.values() for block in found if COMMANDS[0] in block.text]
    if len(blocks) != 1:
        raise Failed(f"docs/guides/vendor.md has {len(blocks)} blocks with `{COMMANDS[0]}` instead of one")
    [block] = blocks
    commands = block.text.replace("\\\n", " ").splitlines()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    _run("freehold app init my-app")
    for command in commands:
        if command.startswith(MAKES_ARCHIVE):
            _make(FOLDER / shlex.split(command)[-1])
        elif command.startswith(COMMANDS):
            _run(command)
            if command.startswith(COMMANDS[0]):
                _without_addresses(FOLDER / "my-app/tools/tools.toml", commands, block.place)
        elif not command.startswith(SYNC):
            raise Failed(f"{block.place}: this test does not know how to do `{command}`")
    settings = tomllib.loads((FOLDER / "my-app/runner.toml").read_text())
    if settings.get("tool_image") != "tools":
        raise Failed(f"{block.place}: after these commands `runner.toml` names no tool image: {settings}")
    order = [
        next((n for n, command in enumerate(commands) if command.startswith(one)), -1) for one in (*COMMANDS, SYNC)
    ]
    if -1 in order or order != sorted(order):
        raise Failed(f"{block.place}: the block needs `{'`, `'.join((*COMMANDS, SYNC))}`, in this order")


def _without_addresses(path, commands, place):
    """Leaves in the list the items with a file; the block has to make each of them."""
    head, *items = re.split(r"(?m)^(?=\[\[item\]\])", path.read_text())
    kept = [item for item in items if "file" in tomllib.loads(item)["item"][0]]
    made = {shlex.split(command)[-1] for command in commands if command.startswith(MAKES_ARCHIVE)}
    for item in kept:
        file = f"my-app/tools/{tomllib.loads(item)['item'][0]['file']}"
        if file not in made:
            raise Failed(f"{place}: the list of `tools init` needs `{file}`, which no command of the block makes")
    path.write_text(head + "".join(kept))


def _make(path):
    with tarfile.open(path, "w:gz") as archive:
        entry = tarfile.TarInfo("bin/sh")
        entry.mode = 0o755
        archive.addfile(entry, io.BytesIO())


def _run(command):
    words = shlex.split(command)
    done = subprocess.run([BIN / words[0], *words[1:]], cwd=FOLDER, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"`{command}` of the guide ended with {done.returncode}: {done.stderr.strip()}")
