"""Splits Rust source text into code, comments and strings, and finds the parts that only tests use."""

import re
from dataclasses import dataclass

_STARTS = re.compile(r"""//|/\*|\b(?:br|cr|r)(?P<hashes>\#*)"|\b[bc]"|"|\bb'|'""")
_CHARACTER = re.compile(r"'(?:[^'\\\n]|\\(?:x[0-9a-fA-F]{2}|u\{[^}]*\}|.))'")
_TEST_ONLY = re.compile(r"#\[cfg\((?:test|all\(test,[^\]]*\))\)\]")
_ITEM = re.compile(
    r"\s*(?:pub(?:\([^)]*\))?\s+)?"
    r"(?:async|const|enum|extern|fn|impl|let|macro_rules|mod|static|struct|trait|type|unsafe|use)\b"
)


@dataclass(frozen=True)
class Piece:
    """A `comment`, a `string` or a `character` with its place. The text of a string excludes its quotes."""

    kind: str
    start: int
    end: int
    text: str


def pieces(text):
    """Returns the comments and strings of a source text, in order. A character literal is neither."""
    return [piece for piece in _pieces(text) if piece.kind != "character"]


def _pieces(text):
    found, at = [], 0
    while (match := _STARTS.search(text, at)) is not None:
        piece, at = _piece(text, match)
        if piece:
            found.append(piece)
    return found


def _piece(text, match):
    start, mark = match.start(), match.group()
    if mark == "//":
        end = _index(text, "\n", start)
        return Piece("comment", start, end, text[start:end]), end
    if mark == "/*":
        end = _end_of_block(text, start)
        return Piece("comment", start, end, text[start:end]), end
    if mark.endswith("'"):
        literal = _CHARACTER.match(text, match.end() - 1)
        if not literal:
            return None, match.end()  # a lifetime
        return Piece("character", start, literal.end(), literal.group()), literal.end()
    if match.group("hashes") is not None:
        close = '"' + match.group("hashes")
        end = _index(text, close, match.end())
        return Piece("string", start, end + len(close), text[match.end() : end]), end + len(close)
    end = match.end()
    while end < len(text) and text[end] != '"':
        end += 2 if text[end] == "\\" else 1
    return Piece("string", start, end + 1, _unescaped(text[match.end() : end])), end + 1


def _index(text, what, start):
    found = text.find(what, start)
    return len(text) if found < 0 else found


def _end_of_block(text, start):
    depth = 0
    for mark in re.compile(r"/\*|\*/").finditer(text, start):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(text)


def _unescaped(text):
    return re.sub(r"\\\n\s*", "", text).replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")


def blanked(text):
    """Returns the text with comments, strings and characters as blanks; places and lines stay the same."""
    parts, at = [], 0
    for piece in _pieces(text):
        parts += [text[at : piece.start], re.sub(r"[^\n]", " ", text[piece.start : piece.end])]
        at = piece.end
    return "".join([*parts, text[at:]])


def end_of_item(code, start):
    """Returns the end of the item that starts at `start` in blanked text: the place after its `;` or closing brace."""
    depth = 0
    for at in range(start, len(code)):
        if code[at] in "([{":
            depth += 1
        elif code[at] in ")]}":
            depth -= 1
            if depth == 0 and code[at] == "}":
                return at + 1
        elif code[at] == ";" and depth == 0:
            return at + 1
    return len(code)


def _end_of_part(code, start):
    """Returns the end of the field, variant, arm or statement that starts at `start`: the place after its comma."""
    depth = 0
    for at in range(start, len(code)):
        depth += (code[at] in "([{") - (code[at] in ")]}")
        if depth < 0:
            return at
        if depth == 0 and code[at] in ",;":
            return at + 1
    return len(code)


def test_parts(code):
    """Returns the places (start, end) of what is under `#[cfg(test)]` in blanked text."""
    parts, at = [], 0
    while (match := _TEST_ONLY.search(code, at)) is not None:
        begin = match.end()
        while (attribute := re.compile(r"\s*#\[[^\]]*\]").match(code, begin)) is not None:
            begin = attribute.end()
        at = end_of_item(code, begin) if _ITEM.match(code, begin) else _end_of_part(code, begin)
        parts.append((match.start(), at))
    return parts


def test_modules(code):
    """Returns the names of the modules in files of their own that only tests have."""
    return set(re.findall(_TEST_ONLY.pattern + r"\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;", code))


def line_of(text, at):
    """Returns the line of a place, counted from 1."""
    return text.count("\n", 0, at) + 1
