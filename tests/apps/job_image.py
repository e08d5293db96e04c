"""The image in which the jobs of an app run their programs: a generated list, and `freehold tools pin` and `build`.

It is that of every app without one of its own, so that actions find what public ones call, whatever the machine has.
"""

import functools
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import tomllib

import clusters
from programs import BIN, ROOT, Failed

# What stands in for `pulumi`, which cannot be had.
PULUMI = ROOT / "target/debug/examples/pulumi-stand-in"
ARCHIVES = Path(__file__).with_name("tools")
# How `tests/apps/tools` ends where the archives cannot be made.
CANNOT = 3
# Programs of archives are in folders of these names.
OF_PROGRAMS = re.compile(r"^(?:\./)?usr/(?:local/)?s?bin/([^/]+)$")
COMPONENT = "tools"
# Making an image takes half a minute of a processor, so runs share it.
IMAGES = ROOT / "target" / "apps-tools"


class Tools:
    """The items of an image, and what they bring. The first app that needs an image has it made; others find it."""

    def __init__(self, folder=IMAGES):
        self._folder = folder
        self._archives, self.missing = None, None

    def programs(self, app):
        """Returns the names of all programs in the image of an app, or nothing when there is no image."""
        if not self._found():
            return None
        names = {found[1] for archive in self._archives for found in map(OF_PROGRAMS.match, _names(archive)) if found}
        return names | set(self._own(app))

    def give(self, app):
        """Gives the image to an app; returns why it has another one or none, or nothing."""
        runner = app.config.folder / "runner.toml"
        if runner.exists() and (own := tomllib.loads(runner.read_text()).get("tool_image")):
            app.has_own_tools = True
            return f"the app brings its own, component `{own}`"
        if COMPONENT in app.config.entries("component"):
            return f"the app has a component `{COMPONENT}` that is none"
        if not self._found():
            return self.missing
        app.ask("tools", "init", app.config.folder)
        place = app.config.folder / "tools"
        shutil.rmtree(place)
        shutil.copytree(self._image(app), place, copy_function=_link)
        app.has_tool_image = True
        return None

    def _found(self):
        if self._archives is None and self.missing is None:
            made = subprocess.run([ARCHIVES], capture_output=True, text=True)
            if made.returncode == 0:
                folder = Path(made.stdout.strip())
                self._archives = [folder / "base.tar.gz", folder / "aws.tar.gz"]
            elif made.returncode == CANNOT:
                self.missing = made.stderr.strip().splitlines()[-1]
            else:
                raise Failed(f"`tests/apps/tools` ended with {made.returncode}: {made.stderr.strip()}")
        return self._archives

    def _own(self, app):
        """Returns the programs at hand that the image has beside the archives, by name."""
        found = {name: shutil.which(name) for name in ("helm", "terraform", "tofu")}
        found["kubectl"] = None if clusters.missing() else clusters.program()
        found["pulumi"] = app.pulumi
        return {name: path for name, path in found.items() if path}

    def _image(self, app):
        """Returns the folder of the list and its image; makes it first when no app needed the same before."""
        own = self._own(app)
        folder = self._folder / _key([BIN / "freehold", *self._archives, *own.values()])
        if not folder.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            new = Path(tempfile.mkdtemp(prefix="new-", dir=self._folder))
            for archive in self._archives:
                _link(archive, new / archive.name)
            for name, path in own.items():
                _link(Path(path).resolve(), new / name)
            (new / "tools.toml").write_text(listed([archive.name for archive in self._archives], sorted(own)))
            app.ask("tools", "pin", new)
            app.ask("tools", "build", new)
            for file in new.iterdir():
                if file.name not in ("tools.toml", "image"):
                    file.unlink()
            if not folder.exists():  # another run may have been faster
                new.rename(folder)
        return folder


def _key(files):
    """Returns a name for what is made of these files, whose changes change it."""
    states = ((Path(file).resolve(), Path(file).stat()) for file in files)
    lines = (f"{file} {state.st_size} {state.st_mtime_ns}\n" for file, state in states)
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:16]


def listed(archives, programs):
    """Returns the list of an image, without checksums."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    head = f'platforms = ["linux/{machine}"]\n\n[env]\nPATH = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"\n'
    trees = [f'\n[[item]]\nname = "{name.partition(".")[0]}"\nkind = "tree"\nfile = "{name}"\n' for name in archives]
    return head + "".join([*trees, *(f'\n[[item]]\nname = "{name}"\nfile = "{name}"\n' for name in programs)])


@functools.cache
def _names(archive):
    with tarfile.open(archive) as tar:
        return tar.getnames()


def _link(source, target):
    try:
        os.link(source, target)
    except OSError:  # on another file system
        shutil.copy(source, target)
    return target
