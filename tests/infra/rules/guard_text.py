"""Writes values as Guard's literals: a text that names the tenant or the install becomes a pattern."""

import json
import re

# What a text of the golden stack has where another install has another text: the mark, its pattern, and the group of
# `NAMES`, a pattern for the template's description, that holds it.
MARKS = {
    "\ue001": ("[a-z][a-z0-9-]{1,29}", "1"),
    "\ue002": ("[a-z][a-z0-9-]{1,39}", "2"),
    "\ue003": ("[a-z][a-z0-9-]{1,19}", "3"),
    "\ue004": ("[0-9]{12}", "4"),
    "\ue005": ("[0-9a-f]{12}", "5"),
    "\ue006": ("[0-9]{12}", None),
    "\ue007": ("[a-z]{2}(?:-[a-z]+)+-[0-9]", None),
    "\ue008": ("sha256:[0-9a-f]{64}", None),
    # The camel-case name and the key of a role of the app.
    "\ue009": ("Custom[A-Za-z0-9]*", None),
    "\ue00a": ("custom[a-z0-9-]*", None),
    "\ue00b": ("BreakGlass[A-Za-z0-9]*", None),
    "\ue00c": ("break-glass[a-z0-9-]*", None),
    # The parameter and the name of an input.
    "\ue00d": ("Input[A-Za-z0-9]+", None),
    "\ue00e": ("[A-Za-z0-9_-]+", None),
    # Words of the vendor's, which begin no reference that CloudFormation replaces.
    "\ue00f": (r"(?:[^{]|\{(?!\{))*", None),
    # The parameter and the name of a secret of the app.
    "\ue010": ("AppSecret[A-Za-z0-9]+", None),
    "\ue011": ("[A-Za-z0-9_-]+", None),
    # The names of all secrets of the app.
    "\ue012": ("[A-Za-z0-9_,-]+", None),
    # The number of a later reports queue, or nothing.
    "\ue013": ("(?:--[1-9][0-9]*)?", None),
    # The partition of the queues, which is that of their region.
    "\ue014": ("aws(?:-[a-z]+)*", None),
}
INSTALL, APP, TENANT, VENDOR, VERSION, ACCOUNT, REGION, CONTRACT = list(MARKS)[:8]
CUSTOM, CUSTOM_KEY, BREAK_GLASS, BREAK_GLASS_KEY, INPUT, INPUT_NAME, WORDS = list(MARKS)[8:15]
SECRET, SECRET_NAME, SECRET_NAMES, SHARD, PARTITION = list(MARKS)[15:]
NAMES = (
    r"(?s)^Freehold install ([a-z0-9-]+) of app ([a-z0-9-]+) by ([a-z0-9-]+) [(]account ([0-9]{12})[)], "
    r"version ([0-9a-f]{12}).*$"
)
WIDTH = 128


def marks_in(text):
    return [mark for mark in MARKS if mark in text]


def class_of(mark):
    """Returns the pattern of what a mark stands for."""
    return MARKS[mark][0]


def literal(value):
    """Returns a value as Guard writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text(key)}: {literal(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, str):
        return pattern(value) if marks_in(value) else text(value)
    return json.dumps(value)


def text(value):
    if "'" not in value:
        return f"'{value}'"
    assert not value.endswith("\\"), value
    assert '\\"' not in value, value
    return '"' + value.replace('"', '\\"') + '"'


def pattern(value):
    """Returns the pattern of a text with marks, as a whole."""
    pieces = [MARKS[char][0] if char in MARKS else _plain(char) for char in value]
    return "/^" + "".join(pieces).replace("/", "\\/") + "$/"


def _plain(char):
    return "\\n" if char == "\n" else re.escape(char) if not char.isspace() else char


def is_named(value):
    """Returns whether a text has one of the names that the description has too."""
    return any(MARKS[mark][1] for mark in marks_in(value))


def named(value):
    """Returns a text with marks as a replacement of `NAMES`; nothing when a mark is not among the names."""
    if None in (MARKS[mark][1] for mark in marks_in(value)):
        return None
    return _with_groups(value, lambda char: char)


def named_pattern(values):
    """Returns a replacement of `NAMES` that is a pattern of these texts, with the names that the description has."""
    return "^(" + "|".join(_with_groups(value, _plain) for value in values) + ")$$"


def _with_groups(value, plain):
    pieces = []
    for char in value:
        shape, group = MARKS.get(char, (None, None))
        pieces.append(f"${{{group}}}" if group else (shape or plain(char)).replace("$", "$$"))
    return "".join(pieces)


def key(name):
    return name if re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", name) else f"'{name}'"


def wrapped(line, indent):
    """Returns a long clause on several lines, which end after a comma between values."""
    lines, start, depth, quote, at = [], 0, indent, None, 0
    last = None
    while at < len(line):
        char = line[at]
        if quote:
            if char == "\\" and quote in '/"':
                at += 1
            elif char == quote:
                quote = None
        elif char in "'\"/":
            quote = char
        elif char == "," and line[at : at + 2] == ", ":
            last = at + 1
        if at - start + depth > WIDTH and last:
            lines.append(" " * depth + line[start:last].strip())
            start, last, depth = last, None, indent + 4
        at += 1
    lines.append(" " * depth + line[start:].strip())
    return "\n".join(lines)
