"""What the vendor of an app does: serves its sources, syncs its config and builds it."""

import re
import shutil
from pathlib import Path

import clusters
import images
import proxy
import stand_ins
from programs import CUSTOMER, REGION, ROOT, TENANT, VENDOR, Failed
from repositories import HOST, Repositories

# Folders, and files in their place, without which an app works.
DISPENSABLE = ("policies", "runbooks", "installs", "operation_roles", "branches")

# What stands in for `pulumi`, which cannot be had.
PULUMI = ROOT / "target/debug/examples/pulumi-stand-in"

# Where a box, which shows the machine's `/usr`, finds programs.
OF_A_BOX = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# A program that a script calls with a subcommand, and that a machine may lack.
CALLED = re.compile(
    r"(?:^|[|;&(`]|\b(?:if|while|then|do|!))[ \t]*(aws|helm|kubectl|psql|argocd|tailscale)[ \t]+[a-z-]", re.M
)

# An error of a sync and the file that it is in; and one about a text at an address.
ERROR = re.compile(r"^error: (.+)\n\s+--> ([^:\n]+):", re.M)
ERROR_OF_ADDRESS = re.compile(r"^error: ([^:`\s]+\.toml): (cannot fetch .+)$", re.M)


def serve(app):
    """Serves the repositories that the config names, with stand-ins for modules whose providers cannot be had."""
    repositories = Repositories(app.sources, app.work / "repositories")
    named = app.config.repositories()
    missing = {name for name in named if not repositories.copy(name)}
    leave_out_missing(app, repositories, missing)
    leave_out_lacking_programs(app)
    handlers = serve_images(app)
    replaced = [*replace_modules(app, repositories, missing), *replace_programs(app, repositories, missing)]
    for name, references in named.items():
        if name not in missing:
            repositories.commit(name, references)
    app.programs.variables.update(repositories.settings())
    app.build_variables = proxy.serve(app.work, {**handlers, HOST: repositories.handler()})
    served = ", ".join(sorted(named.keys() - missing)) or "none"
    app.stand_ins, app.images = replaced, sorted(handlers)
    modules, registries = ", ".join(replaced) or "none", ", ".join(sorted(handlers)) or "none"
    stand_ins_of = f"of modules and programs: {modules}, of images in: {registries}"
    return f"repositories: {served}; stand-ins {stand_ins_of}"


def leave_out_missing(app, repositories, missing):
    for kind in ("component", "action"):
        for name, (_, table) in app.config.entries(kind).items():
            parts = [table, *table.get("steps", [])]
            sources = [part.get(key, {}).get("repo") for part in parts for key in ("public_repo", "connected_repo")]
            if lacking := missing.intersection(sources):
                app.config.leave_out(kind, name, f"`{lacking.pop()}` is not in the folder of sources")
            elif nowhere := _missing_directory(table, repositories):
                app.config.leave_out(kind, name, nowhere)


def _missing_directory(table, repositories):
    source = table.get("public_repo") or table.get("connected_repo") or {}
    repository, directory = source.get("repo"), source.get("directory", ".")
    if repository and not (repositories.copy(repository) / directory).is_dir():
        return f"`{repository}` has no directory `{directory}`"
    return None


def leave_out_lacking_programs(app):
    """Leaves out actions whose scripts call a program that is not here; some wait long before they give up."""
    for name, (_, table) in app.config.entries("action").items():
        scripts = [step.get("inline_contents", "") + step.get("command", "") for step in table.get("steps", [])]
        called = {found[1] for script in scripts for found in CALLED.finditer(script)}
        if lacking := sorted(program for program in called if not shutil.which(program, path=OF_A_BOX)):
            app.config.leave_out("action", name, f"needs `{lacking[0]}`, which is not on this machine")


def serve_images(app):
    """Returns what answers for the registries of public images; leaves out what comes from other registries."""
    registry, handlers = images.registry(app.work / "image"), {}
    for name, (_, table) in app.config.entries("component").items():
        public = table.get("public", {}).get("image_url")
        private = next((table[key].get("image_url") for key in ("aws_ecr", "gcp_gar") if key in table), None)
        if public and registry and "{{" not in public:
            handlers[images.host_of(public)] = registry
        elif public and not registry:
            app.config.leave_out("component", name, f"image `{public}` needs `busybox`, which stands in for it")
        elif private:
            app.config.leave_out("component", name, f"image `{private}` is in a private registry")
        elif "helm_repo" in table:
            app.config.leave_out("component", name, f"`{table['helm_repo'].get('repo_url')}` is not served here")
    return handlers


def replace_modules(app, repositories, missing):
    """Returns whose modules have a stand-in."""
    replaced = []
    for folder, names in _folders(app.config.modules(), repositories, missing):
        if stand_ins.is_needed(folder):
            every, lists = (set().union(*parts) for parts in zip(*map(app.config.reads, names), strict=True))
            known = facts(app, stand_ins.outputs(folder)) if "sandbox" in names else {}
            stand_ins.replace(folder, every, lists, known)
            replaced += names
    return sorted(replaced)


def replace_programs(app, repositories, missing):
    """Gives every program of Pulumi a stand-in, and the runner what stands in for `pulumi`. Returns whose they are."""
    replaced = []
    for folder, names in _folders(app.config.programs(), repositories, missing):
        every, lists = (set().union(*parts) for parts in zip(*map(app.config.reads, names), strict=True))
        outputs = {path.partition(".")[0] for path in every}
        known = facts(app, outputs) if "sandbox" in names else {}
        variables, keys = zip(*map(app.config.settings_of_program, names), strict=True)
        stand_ins.replace_program(folder, (sum(variables, []), sum(keys, [])), every, lists, known)
        replaced += names
    if replaced:
        app.tools = app.work / "tools"
        app.tools.mkdir()
        shutil.copy(PULUMI, app.tools / "pulumi")
    return sorted(replaced)


def _folders(sources, repositories, missing):
    """Yields each folder of repositories that `sources` name, with the components that are made of it."""
    owners = {}
    for source in sources:
        if source.repository not in missing:
            owners.setdefault((source.repository, source.directory), []).append(source.owner)
    for (repository, directory), names in owners.items():
        folder = repositories.copy(repository) / directory
        if not folder.is_dir():
            raise Failed(f"`{repository}` has no directory `{directory}`, of which {', '.join(names)} is made")
        yield folder, names


def facts(app, outputs):
    """Returns what is known of a sandbox: the account, and the cluster when it hands one out."""
    known = {"account.id": CUSTOMER, "account.region": REGION}
    if "cluster" in outputs and (missing := clusters.missing()):
        app.config.left_out["sandbox", "cluster"] = missing
    elif "cluster" in outputs:
        app.cluster = clusters.make(app.programs)
        clusters.make_namespaces(app.programs, app.config)
        known |= {f"cluster.{name}": value for name, value in app.cluster.items()}
    return known


def sync(app):
    """Syncs the config, and prints each warning once."""
    warnings, version = sync_what_is_valid(app)
    for warning in sorted(set(warnings)):
        print(f"{app.config.name}: warning: {warning}", flush=True)
    return f"version {version}, {len(warnings)} warnings"


def sync_what_is_valid(app):
    """Syncs the config without what is refused; returns the warnings and the number of the version."""
    for _ in range(20):
        found = app.programs.answer("app", "check", app.config.folder).value["found"]
        errors = [(one["file"], one["message"]) for one in found if one["severity"] == "error"]
        synced = None if errors else app.programs.answer("app", "sync", app.config.folder)
        if synced and synced.code == 0:
            warnings = [one["message"] for one in found if one["severity"] == "warning"]
            return warnings, synced.value["number"]
        # A sync reads more than a check: folders and addresses that the config names. It lists errors for people only.
        errors = errors or errors_in(app.programs.output("app", "sync", app.config.folder))
        if not any([leave_out_refused(app, file, message) for file, message in errors]):
            raise Failed(f"the config is refused: {'; '.join(map(': '.join, errors)) or synced.reason}")
    raise Failed("the config is refused for another reason each time")


def errors_in(text):
    """Returns file and message of each error in what a sync says."""
    return [(file, message) for message, file in ERROR.findall(text)] + ERROR_OF_ADDRESS.findall(text)


def leave_out_refused(app, place, message):
    """Leaves out the component or action in whose file an error is, or a file that an app works without."""
    file = app.config.folder / place
    for kind in ("component", "action"):
        for name, (entry, _) in app.config.entries(kind).items():
            if entry == file:
                return app.config.leave_out(kind, name, message)
    if Path(place).parts[0].removesuffix(".toml") in DISPENSABLE and file.exists():
        file.unlink()
        app.config.left_out["file", place] = message
        return True
    return False


def build(app):
    files, programs = app.programs.files, app.programs
    config = files / "build-runner.toml"
    words = ("--out", config, "--state-dir", files / "build-state", "--sandbox", programs.sandbox)
    programs.freehold_quietly("tenant", "build-runner", *words)
    role = f"fh-{TENANT}--build-runner"
    programs.start_runner("build", config, VENDOR, role, app.build_variables, quiet=True)
    built = app.ask("build", app.config.name)
    return f"{len(built['builds'])} components"
