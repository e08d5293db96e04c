"""The golden files of this version and of the last one: values of every message, file and row, with their types."""

import json

from description import ROOT

# The folders that keep values. `previous` in each of them has those of the last version.
FOLDERS = ("crates/app/golden", "crates/protocol/golden", "runner/golden", "tests/compatibility/golden")
ENDINGS = (".json", ".jsonl", ".spool")
THIS, LAST = "", "previous/"

# The first word of the name of a message's file, and the type of the message.
_MESSAGES = {
    "app": "AppVersion",
    "cancel": "Cancel",
    "envelope": "Envelope",
    "grant": "ArtifactGrant",
    "licence": "Licence",
    "lineage": "Lineage",
    "notification": "Notification",
    "order": "Order",
    "preflight": "list<Finding>",
    "receipt": "Receipt",
    "report": "Report",
    "retired": "Retired",
    "signed": "SignedContract",
    "statement": "Statement",
    "terms": "Terms",
    "written": "WrittenDecision",
}


def types(version):
    """Returns the description of this version or of the last one."""
    return _read(f"tests/compatibility/golden/{version}types.json")


def values(version, description):
    """Yields each value of a version, with the name of its type and the place of its file.

    A type has the name that the description gives it: that of a record may be another one than that of its fields.
    """
    rows = description["roots"]["rows"]
    folder = ROOT / f"crates/protocol/golden/{version}"
    for path in sorted(folder.glob("*.json")):
        yield _MESSAGES[path.stem.split("-")[0]], path.name, json.loads(path.read_text())
    for path in sorted(folder.glob("fields/*.json")):
        yield from ((path.stem, f"fields/{path.name}", value) for value in json.loads(path.read_text()))
    for file in ("crates/app/golden/{}messages.json", "runner/golden/{}files.json"):
        for name, of_type in _read(file.format(version)).items():
            yield from ((name, file.format(version), value) for value in of_type)
    for row in _read(f"crates/app/golden/{version}rows.json"):
        # A row that reserves a name has no fields.
        if row["type"] != "prefix":
            yield rows[row["type"]], f"{row['pk']} {row['sk']}", row["body"]


def _read(path):
    return json.loads((ROOT / path).read_text())
