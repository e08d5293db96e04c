"""The copy of an app config that a run changes: what it names, what it reads, and what is left out of it."""

import re
import shutil
from pathlib import Path
from typing import NamedTuple

import tomllib

from repositories import make_writable

# Folders and files whose entries are components and actions; nothing else can be left out by name.
KINDS = {"component": "components", "action": "actions"}
# The types of components that are deployed into a cluster.
IN_CLUSTER = ("helm_chart", "kubernetes_manifest", "job")
COMMIT = re.compile(r"[0-9a-f]{40}")
# A repository on GitHub, as an address or as owner and name.
ADDRESS = re.compile(r"^(?:(?:https|ssh)://(?:[^@/]+@)?github\.com/|git@github\.com:)?([^/:]+/[^/]+?)(?:\.git)?/?$")
NAMED = re.compile(r'(\brepo\s*=\s*")([^"]+)"')
# A value that a template reads: the sandbox, or a component by name, and the path below its outputs.
READ = re.compile(r"\.nuon\.(?:install\.)?(?:(sandbox)|components\.([\w-]+))\.outputs\.([\w.]+)")
# The same as an element of a list.
READ_AS_LIST = re.compile(
    r"(?:index\s+\(?\s*|range\s+(?:\S+\s*:=\s*)?)" + READ.pattern + "|" + READ.pattern + r"\s*\|\s*join"
)


class Source(NamedTuple):
    """A directory of a repository, or of the config itself, that a component, a step or the sandbox names."""

    repository: str | None
    reference: str
    directory: str


class Module(NamedTuple):
    """A Terraform module, or a program of Pulumi, that a component or the sandbox names."""

    owner: str
    source: Source


class Config:
    def __init__(self, original, folder):
        shutil.copytree(original, folder)
        make_writable(folder)
        self.folder, self.name = folder, folder.name
        self.left_out = {}  # (kind, name) -> why
        self.removed = {}  # (kind, name) -> the text of its file
        self.types = {}  # (kind, name) -> the type of a component that is left out
        self.shorten_addresses()
        self.forget_commits()

    def entries(self, kind):
        """Returns file and table of every component or action, by name."""
        files = sorted((self.folder / KINDS[kind]).rglob("*.toml"))
        tables = ((file, tomllib.loads(file.read_text())) for file in files)
        return {table["name"]: (file, table) for file, table in tables if "name" in table}

    def inputs(self):
        files = [self.folder / "inputs.toml", *sorted((self.folder / "inputs").rglob("*.toml"))]
        tables = [tomllib.loads(file.read_text()) for file in files if file.exists()]
        # A file of the folder may be one input.
        return [one for table in tables for one in table.get("input", [table] if "name" in table else [])]

    def sandbox(self):
        file = self.folder / "sandbox.toml"
        return tomllib.loads(file.read_text()) if file.exists() else {}

    def clusters(self):
        """Returns the components that make clusters into which others are deployed."""
        files = [self.folder / "metadata.toml", self.folder / "kubernetes_contexts.toml"]
        files += sorted((self.folder / "kubernetes_contexts").rglob("*.toml"))
        tables = [tomllib.loads(file.read_text()) for file in files if file.exists()]
        # A file of the folder may be one cluster.
        listed = [one for table in tables for one in table.get("kubernetes_context", [table])]
        return {one["component"] for one in listed if "component" in one}

    def needs_cluster(self):
        """Returns whether something of the app is in a cluster or uses one."""
        components, actions = ([table for _, table in self.entries(kind).values()] for kind in KINDS)
        return any(one.get("type") in IN_CLUSTER for one in components) or any(
            one.get("enable_kube_config") for one in actions
        )

    def named(self, file, path):
        """Returns the files that a path in a file of the config may name, the one that counts first."""
        of_kind = self.folder / file.relative_to(self.folder).parts[0]
        folders = dict.fromkeys((file.parent, of_kind, self.folder))
        return [folder / path for folder in folders if (folder / path).exists()]

    def modules(self):
        """Returns the Terraform modules that come from repositories."""
        return self._sources_of("terraform_module", "terraform")

    def programs(self):
        """Returns the programs of Pulumi that come from repositories."""
        return self._sources_of("pulumi", "pulumi")

    def _sources_of(self, component, sandbox):
        """Returns the sources of components of one type, and that of the sandbox if it is of one type."""
        named = [(name, table) for name, (_, table) in self.entries("component").items()]
        sources = [_module(name, table) for name, table in named if table.get("type") == component]
        if self.sandbox().get("type", "terraform") == sandbox:
            sources.append(_module("sandbox", self.sandbox()))
        return [source for source in sources if source]

    def settings_of_program(self, owner):
        """Returns the names of the variables and the keys of the configuration that a program of Pulumi gets."""
        table = self.sandbox() if owner == "sandbox" else self.entries("component")[owner][1]
        return list(table.get("env_vars", {})), list(table.get("config", table.get("pulumi_config", {})))

    def repositories(self):
        """Returns every repository that the config names, with the references that it names there."""
        tables = [table for kind in KINDS for _, table in self.entries(kind).values()]
        steps = [step for table in tables for step in table.get("steps", [])]
        found = {}
        for named in [*tables, *steps, self.sandbox()]:
            if source := source_of(named):
                found.setdefault(source.repository, set()).add(source.reference)
        found.pop(None, None)
        return found

    def shorten_addresses(self):
        """Puts `owner/name` in the place of addresses on GitHub, which the repositories here are served under."""
        for file in self.folder.rglob("*.toml"):
            text = file.read_text()
            file.write_text(NAMED.sub(lambda found: found[1] + ADDRESS.sub(r"\1", found[2]) + '"', text))

    def forget_commits(self):
        """Puts `main` in the place of commits: the repositories that are served here have commits of their own."""
        commits = {one for references in self.repositories().values() for one in references if COMMIT.fullmatch(one)}
        for file in self.folder.rglob("*.toml"):
            text = file.read_text()
            for commit in commits:
                text = text.replace(commit, "main")
            file.write_text(text)

    def text(self, below=""):
        files = (file for file in (self.folder / below).rglob("*") if file.is_file())
        return "\n".join(file.read_text(errors="replace") for file in files)

    def reads(self, owner):
        """Returns the paths below the outputs of `owner` that templates read, and those that they read as lists."""
        text = self.text()
        every = {match[2].rstrip(".") for match in READ.findall(text) if (match[0] or match[1]) == owner}
        lists = {m for g in READ_AS_LIST.findall(text) for m in (g[2], g[5]) if owner in (*g[:2], *g[3:5]) and m}
        return every, {path.rstrip(".") for path in lists}

    def leave_out(self, kind, name, why):
        """Removes a component or an action, and whatever reads its outputs or is triggered by it."""
        entries = self.entries(kind)
        if name not in entries:
            return False
        file, table = entries[name]
        self.removed[kind, name], self.types[kind, name] = file.read_text(), table.get("type")
        file.unlink()
        self.left_out[kind, name] = why
        for other_kind in KINDS:
            for other, (file, table) in self.entries(other_kind).items():
                if not file.exists():
                    continue  # left out meanwhile, for something else that it needs
                if kind == "component" and _needs(name, table, file.read_text()):
                    self.leave_out(other_kind, other, f"needs {kind} `{name}`, which is left out")
        return True

    def make_up_output(self, output):
        """Writes a text for an output of the install stack wherever the sandbox reads it; returns whether it did."""
        place, found = self.folder / "sandbox.toml", False
        named = [one.get("contents", "") for one in self.sandbox().get("var_file", [])]
        files = [file for path in named if path.startswith("./") for file in self.named(place, path)[:1]]
        for file in [place, *files] if place.exists() else []:
            text = file.read_text()
            written = re.sub(rf"{{{{[^{{}}]*\.install_stack\.outputs\.{re.escape(output)}\b[^{{}}]*}}}}", output, text)
            file.write_text(written)
            found |= written != text
        return found

    def remove_field(self, component, key):
        """Removes a key from the manifest of a component, wherever it is there; returns whether it was."""
        file, table = self.entries("component").get(component, (None, {}))
        named = table.get("manifest", "")
        if not named:
            return False
        if named.startswith("./"):
            file = next(iter(self.named(file, named)), file)
        text = file.read_text()
        shorter = without_key(text, key)
        file.write_text(shorter)
        return shorter != text


def without_key(text, key):
    """Returns YAML without a key and what is below it, as lines; a key that begins an item of a list stays."""
    kept, depth = [], None
    for line in text.splitlines(keepends=True):
        indent, body = len(line) - len(line.lstrip()), line.strip()
        is_below = depth is not None and (not body or indent > depth or (indent == depth and body.startswith("- ")))
        if is_below:
            continue
        depth = indent if re.match(rf"{re.escape(key)}:(\s|$)", body) else None
        if depth is None:
            kept.append(line)
    return "".join(kept)


def _needs(component, table, text):
    triggers = (trigger.get("component_name") for trigger in table.get("triggers", []))
    outputs = rf"\.components\.{re.escape(component)}\b"
    return component in [*table.get("dependencies", []), *triggers] or re.search(outputs, text) is not None


def source_of(table):
    """Returns the source that a table names, or nothing."""
    named = table.get("public_repo") or table.get("connected_repo") or {}
    repository, directory = named.get("repo"), named.get("directory") or "."
    if not repository or "{{" in repository:
        return None
    if repository.startswith("."):
        return Source(None, "main", str(Path(repository) / directory.lstrip("/")))
    return Source(ADDRESS.sub(r"\1", repository), named.get("branch") or "main", str(Path(directory.lstrip("/"))))


def _module(owner, table):
    source = source_of(table)
    return source and Module(owner, source)
