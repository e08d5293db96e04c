"""What the vendor of an app does with it: syncs its config and builds it."""

import re
from pathlib import Path

import charts
from programs import TENANT, VENDOR, Failed

# Folders, and files in their place, without which an app works.
DISPENSABLE = ("policies", "runbooks", "installs", "operation_roles", "branch", "branches", "kubernetes_contexts")

# An error of a sync and the file that it is in; and one about a text at an address.
ERROR = re.compile(r"^error: (.+)\n\s+--> ([^:\n]+):", re.M)
ERROR_OF_ADDRESS = re.compile(r"^error: ([^:`\s]+\.toml): (cannot fetch .+)$", re.M)
ADDRESS = re.compile(r"cannot fetch `([^`]+)`")


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
        if not any([replace_text(app, *error) or leave_out_refused(app, *error) for error in errors]):
            raise Failed(f"the config is refused: {'; '.join(map(': '.join, errors)) or synced.reason}")
    raise Failed("the config is refused for another reason each time")


def errors_in(text):
    """Returns file and message of each error in what a sync says."""
    return [(file, message) for message, file in ERROR.findall(text)] + ERROR_OF_ADDRESS.findall(text)


def replace_text(app, place, message):
    """Puts a stand-in for a manifest or values at an address that cannot be read; returns whether there is one."""
    address, file = ADDRESS.search(message), app.config.folder / place
    owners = [name for name, (entry, _) in app.config.entries("component").items() if entry == file]
    if not address or not owners:
        return False
    [name], table = owners, app.config.entries("component")[owners[0]][1]
    if table.get("manifest") == address[1]:
        text = charts.manifest(name, address[1])
    elif any(one.get("contents") == address[1] for one in table.get("values_file", [])):
        text = "{}\n"
    else:
        return False
    local = f"./{name}-stand-in-{len(list(file.parent.glob('*-stand-in-*')))}.yaml"
    (file.parent / local).write_text(text)
    file.write_text(file.read_text().replace(f'"{address[1]}"', f'"{local}"'))
    app.replace(name, f"the text at `{address[1]}` cannot be fetched")
    return True


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
