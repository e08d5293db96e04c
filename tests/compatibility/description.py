"""What one version of Freehold writes and reads: its messages, files and rows, and all types that they are made of."""

import re
from pathlib import Path

from rust_types import Sources

ROOT = Path(__file__).resolve().parents[2]
CRATES = ("crates/app", "crates/domain", "crates/permissions", "crates/protocol", "runner")

# The types that no trait marks, with the beginning of the path of the file that defines each.
_OTHERS = {
    "messages": {
        "AppVersion": "crates/protocol/src/",
        "DriftFound": "crates/protocol/src/",
        "Envelope": "crates/protocol/src/",
        "Finding": "crates/protocol/src/preflight.rs",
        "Health": "crates/protocol/src/",
        "Leftovers": "crates/protocol/src/",
        "Lineage": "crates/protocol/src/",
        "Notification": "crates/protocol/src/",
        "PlanRecord": "crates/protocol/src/",
        "Terms": "crates/protocol/src/",
        "WrittenDecision": "crates/protocol/src/",
    },
    "queues": {
        "DispatchMessage": "crates/app/src/",
        "GrantMessage": "crates/app/src/",
    },
    "files": {
        "Inventory": "runner/src/kinds/",
        "Kept": "runner/src/secrets/",
        "Line": "runner/src/record/audit/",
        "Mark": "runner/src/kinds/",
        "Notice": "runner/src/keys/",
        "Programs": "runner/src/upgrade/",
        "Record": "runner/src/work/journal/",
        "Renewal": "runner/src/keys/",
        "Use": "runner/src/approvals/",
    },
    "rows": {
        "GraphRow": "crates/app/src/table/",
        "KeyedRequest": "crates/app/src/idempotency/",
    },
}
_TRAITS = {"messages": "Payload", "rows": "Record"}
_TRANSPARENT = {"Box", "Arc", "Cow"}
_LISTS = {"Vec", "BTreeSet", "VecDeque"}
_PLAIN = {"String": "text", "str": "text", "Value": "any", "bool": "bool", "f64": "number"} | {
    f"{sign}{bits}": f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64)
}


def of_tree():
    """Returns the description of the files of this tree."""
    folders = [ROOT / crate / "src" for crate in CRATES]
    paths = [path for folder in folders for path in folder.rglob("*.rs")]
    return describe({str(path.relative_to(ROOT)): path.read_text() for path in paths})


def describe(files, others=None):
    """Returns the roots by kind, and every type that they lead to, for sources by their path.

    The name of a field that may be absent ends in `?`, and the name of a flat field begins with `..`. `others` are the
    roots that no trait marks.
    """
    return _Describer(Sources(files)).description(_OTHERS if others is None else others)


class _Describer:
    def __init__(self, sources):
        self.sources = sources
        self.types, self.names = {}, {}

    def description(self, all_others):
        roots = {}
        for kind, others in all_others.items():
            found = self.sources.implementing(_TRAITS[kind]) if kind in _TRAITS else []
            found += [self.sources.below(name, folder) for name, folder in others.items()]
            roots[kind] = {one.name: self._name(one) for one in sorted(found, key=lambda one: one.name)}
        return {"roots": roots, "types": dict(sorted(self.types.items()))}

    def _name(self, one):
        """Returns the name of a type, which is described when it is named for the first time.

        A type that only wraps another one is written as this other one.
        """
        key = (one.name, one.file)
        if key in self.names:
            return self.names[key]
        if one.shape and one.shape.kind == "value":
            return self._type(one.shape.value, one.file)
        name = one.name if one.name not in self.types else f"{one.name} of {one.file}"
        self.names[key] = name
        self.types[name] = {}
        self.types[name] |= self._body(one)
        return name

    def _body(self, one):
        strict = {"strict": True} if one.is_strict else {}
        if one.shape:
            return strict | self._shape(one.shape, one.file)
        tags = {"tag": one.tag} if one.tag else {}
        tags |= {"content": one.content} if one.content else {}
        variants = {name: self._shape(shape, one.file) for name, shape in one.variants.items()}
        return strict | tags | {"variants": variants}

    def _shape(self, shape, file):
        if shape.kind == "unit":
            return {}
        if shape.kind == "value":
            return {"value": self._type(shape.value, file)}
        written = {
            f"{'..' if one.is_flat else ''}{name}{'' if one.is_required else '?'}": self._type(one.type, file)
            for name, one in shape.fields.items()
        }
        return {"fields": written}

    def _type(self, text, file):
        name, inner = _parts(text)
        if name in _TRANSPARENT:
            return self._type(inner[-1], file)
        if name == "Option":
            return f"{self._type(inner[0], file)}?"
        if name in _LISTS or name == "[":
            return f"list<{self._type(inner[0], file)}>"
        if name in ("BTreeMap", "Map"):
            key, value = (self._type(part, file) for part in inner)
            return f"map<{key}, {value}>"
        if name == "(":
            return f"({', '.join(self._type(part, file) for part in inner)})"
        if name.split("::")[-1] in _PLAIN:
            return _PLAIN[name.split("::")[-1]]
        one = self.sources.resolve(name, file)
        if one is None:
            raise LookupError(f"{file}: no type is known that is called `{name}`")
        return self._name(one)


def _parts(text):
    """Returns the name of a type and the types in its brackets; the name of a tuple is `(`, that of an array `[`."""
    match = re.fullmatch(r"([\w:]*)(?:<(.*)>)?|(\()(.*)\)|(\[)(.*)\]", text)
    name = match[1] or match[3] or match[5]
    inner = next((part for part in (match[2], match[4], match[6]) if part), "")
    return name, parts_of(inner)


def parts_of(text):
    """Returns what stands between the commas of `text` that are in no brackets."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in "<([") - (sign in ">)]")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts if part.strip()]
