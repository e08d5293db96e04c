"""Writes the definitions of the state machines: statemachines/source.yaml as one JSON file per key of `machines`."""

import json
import sys

import yaml

import templates

SOURCE = templates.MACHINES / "source.yaml"
COMMAND = "tests/infra/machines"


def definitions():
    """Returns the text that each definition file must have, by file name."""
    source = yaml.safe_load(SOURCE.read_text())
    return {f"{name}.asl.json": json.dumps(machine, indent=2) + "\n" for name, machine in source["machines"].items()}


def stale():
    """Returns the names of the files that are missing, differ from the source, or are not in it."""
    wanted = definitions()
    found = {path.name: path.read_text() for path in templates.MACHINES.glob("*.json")}
    return sorted(name for name in {*wanted, *found} if wanted.get(name) != found.get(name))


def write():
    wanted = definitions()
    for path in templates.MACHINES.glob("*.json"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (templates.MACHINES / name).write_text(text)


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(f"usage: {COMMAND} [--check]")
    if not sys.argv[1:]:
        write()
    elif names := stale():
        sys.exit(f"{', '.join(names)}: not what {SOURCE.relative_to(templates.ROOT)} says; run {COMMAND}")


if __name__ == "__main__":
    main()
