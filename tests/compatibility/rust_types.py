"""Reads from Rust sources which types serde writes and reads, and how: their fields, variants and tags, and what may be
absent."""

import re
from dataclasses import dataclass, field
from functools import partial

import rust_text

_TOKEN = re.compile(r"\s+|[A-Za-z_]\w*|\d\w*|'[a-z_]\w*\b(?!')|::|->|=>|.", re.S)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
# The macros that define a type which is written as one text: `id! { /// doc  Name, ... }`.
_TEXT_MACROS = ("id",)
_CASES = {
    "snake_case": lambda words: "_".join(words),
    "kebab-case": lambda words: "-".join(words),
    "camelCase": lambda words: words[0] + "".join(word.capitalize() for word in words[1:]),
    "PascalCase": lambda words: "".join(word.capitalize() for word in words),
    "lowercase": lambda words: "".join(words),
}


@dataclass(frozen=True)
class Text:
    """A string literal."""

    value: str


@dataclass(frozen=True)
class Group:
    """The tokens between two brackets."""

    opening: str
    tokens: tuple


@dataclass
class Field:
    """A field of a struct or a variant. The fields of a flat field stand beside it, in the same object."""

    type: str
    is_required: bool
    is_flat: bool = False


@dataclass
class Shape:
    """What a struct or a variant holds: nothing (`unit`), a value of another type (`value`), or `fields`."""

    kind: str
    value: str = ""
    fields: dict = field(default_factory=dict)


@dataclass
class Type:
    """A struct (`shape`) or an enum (`variants`). A strict type refuses fields that it does not know.

    The variant `*` reads what no other variant reads: an unknown word or, if it has a value, any object with the tag.
    """

    name: str
    file: str
    shape: Shape | None = None
    variants: dict = field(default_factory=dict)
    tag: str = ""
    content: str = ""
    is_strict: bool = False


class Sources:
    """The types of some crates, and what each file imports."""

    def __init__(self, files):
        """Reads sources by their path, such as `crates/protocol/src/lib.rs`."""
        self.types, self._imports, self._implementations = {}, {}, {}
        for path, text in sorted(files.items()):
            tokens = tokens_of(_without_tests(text))
            self._imports[path] = dict(_imports(tokens))
            found = [*_items(tokens, path), *_aliases(tokens, path)]
            for trait, name in _implementations(tokens):
                self._implementations.setdefault(trait, []).append((name, path))
                # A type whose traits are written by hand is one text.
                found += [Type(name, path, Shape("value", "String"))] if trait == "Serialize" else []
            for one in found:
                self.types.setdefault(one.name, []).append(one)

    def implementing(self, trait):
        """Returns the types that implement `trait`, in the order of their names."""
        found = [self.resolve(name, path) for name, path in self._implementations.get(trait, [])]
        return sorted(found, key=lambda one: one.name)

    def below(self, name, folder):
        """Returns the only type of this name that a file in `folder` defines."""
        (found,) = [one for one in self.types.get(name, []) if one.file.startswith(folder)]
        return found

    def resolve(self, path, file):
        """Returns the type that `path` names in `file`; `None` for a type of another crate, such as `String`."""
        first, *rest = path.split("::")
        full = [*self._imports[file].get(first, [first]), *rest]
        candidates = self.types.get(full[-1], [])
        beside = [one for one in candidates if one.file == file]
        if beside and len(full) == 1:
            return beside[0]
        crate = _crate_of(full[0], file)
        within = [one for one in candidates if one.file.startswith(crate)] or candidates
        return max(within, key=partial(_nearness, full, file), default=None)


def tokens_of(text):
    """Returns the token trees of a source text, without its comments."""
    flat, at = [], 0
    for piece in [*rust_text.pieces(text), None]:
        code = text[at:] if piece is None else text[at : piece.start]
        flat += [match.group() for match in _TOKEN.finditer(code) if not match.group().isspace()]
        if piece is not None:
            at = piece.end
            flat += [Text(piece.text)] if piece.kind == "string" else []
    return _trees(flat, 0, None)[0]


def _trees(flat, at, closing):
    found = []
    while at < len(flat) and flat[at] != closing:
        token, at = flat[at], at + 1
        if token in _CLOSING:
            inner, at = _trees(flat, at, _CLOSING[token])
            token = Group(token, inner)
        found.append(token)
    return tuple(found), at + 1


def _without_tests(text):
    code = rust_text.blanked(text)
    for start, end in reversed(rust_text.test_parts(code)):
        text = text[:start] + text[end:]
    return text


def _crate_of(first, file):
    """Returns the folder of the crate to which the first part of a path leads."""
    if first.startswith("freehold_"):
        name = first.removeprefix("freehold_").replace("_", "-")
        return f"{name}/src/" if name in ("runner", "functions", "cli") else f"crates/{name}/src/"
    return file.partition("/src/")[0] + "/src/"


def _nearness(full, file, one):
    """Returns how well the file of a type fits to the modules in a path, then to the file that names the type."""
    modules = set(one.file.removesuffix(".rs").replace("-", "_").split("/"))
    return len(modules & set(full[:-1])), len(_common(one.file, file))


def _common(one, other):
    parts = zip(one.split("/"), other.split("/"), strict=False)
    return [mine for mine, theirs in parts if mine == theirs]


def _imports(tokens):
    """Yields each name that `use` brings into a file, with its path."""
    for at, token in enumerate(tokens):
        if token == "use":
            end = tokens.index(";", at)
            yield from _tree_of_use(tokens[at + 1 : end], [])
        elif isinstance(token, Group) and token.opening == "{":
            yield from _imports(token.tokens)


def _tree_of_use(tokens, before):
    for part in _split(tokens, ","):
        path = [*before]
        for at, token in enumerate(part):
            if isinstance(token, Group):
                yield from _tree_of_use(token.tokens, path)
                break
            if token == "as":
                yield part[at + 1], path
                break
            if token != "::":
                path.append(token)
        else:
            yield path[-1], path


def _split(tokens, sign):
    """Returns the parts of `tokens` between signs, without an empty last one. `<` and `>` are brackets too."""
    parts, depth = [[]], 0
    for token in tokens:
        depth += {"<": 1, ">": -1}.get(token, 0) if isinstance(token, str) else 0
        if token == sign and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts if parts[-1] else parts[:-1]


def _implementations(tokens):
    """Yields the trait and the type of each `impl Trait for Type` without parameters."""
    for at, token in enumerate(tokens):
        if token == "impl" and tokens[at + 2 : at + 3] == ("for",):
            yield tokens[at + 1], tokens[at + 3]


def _items(tokens, path):
    """Yields the types that a file defines for serde."""
    attributes, at = [], 0
    while at < len(tokens):
        token = tokens[at]
        if token == "#" and isinstance(tokens[at + 1], Group):
            attributes.append(tokens[at + 1].tokens)
            at += 2
            continue
        if token in ("struct", "enum") and isinstance(tokens[at + 1], str):
            one = _item(tokens, at, attributes, path)
            if one is not None:
                yield one
        elif token in _TEXT_MACROS and tokens[at + 1 : at + 2] == ("!",):
            name = next(part for part in _visible(tokens[at + 2].tokens) if isinstance(part, str))
            yield Type(name, path, Shape("value", "String"))
        elif isinstance(token, Group) and token.opening == "{":
            yield from _items(token.tokens, path)
        if token not in ("pub", "struct", "enum") and not (isinstance(token, Group) and token.opening == "("):
            attributes = []
        at += 1


def _aliases(tokens, path):
    """Yields the other names that a file gives to types."""
    for at, token in enumerate(tokens):
        if token == "type" and tokens[at + 2] == "=":
            yield Type(tokens[at + 1], path, Shape("value", _type_text(tokens[at + 3 : tokens.index(";", at)])))


def _visible(tokens):
    """Returns the tokens of a field or variant without its attributes and its visibility."""
    tokens = list(tokens)
    while tokens and tokens[0] == "#":
        del tokens[:2]
    if tokens and tokens[0] == "pub":
        del tokens[0]
        if isinstance(tokens[0], Group) and tokens[0].tokens[0] in ("crate", "in", "self", "super"):
            del tokens[0]
    return tokens


def _item(tokens, at, attributes, path):
    name, serde = tokens[at + 1], _serde(attributes)
    if not serde["derived"]:
        return None
    one = Type(name, path, is_strict="deny_unknown_fields" in serde)
    if "into" in serde or "try_from" in serde:
        return Type(name, path, Shape("value", serde.get("into") or serde["try_from"]))
    body = next(token for token in tokens[at + 2 :] if token == ";" or isinstance(token, Group))
    if tokens[at] == "struct":
        one.shape = _shape(body, serde, all_default="default" in serde)
        return one
    one.tag, one.content = serde.get("tag", ""), serde.get("content", "")
    for part in _split(body.tokens, ","):
        own = _serde(_attributes(part))
        variant, *held = _visible(part)
        words = re.findall(r"[A-Z][a-z0-9]*", variant)
        written = own.get("rename") or _CASES[serde.get("rename_all", "PascalCase")]([word.lower() for word in words])
        holds = held[0] if held and isinstance(held[0], Group) else ";"
        one.variants["*" if {"other", "untagged"} & own.keys() else written] = _shape(holds, own)
    return one


def _attributes(tokens):
    return [tokens[at + 1].tokens for at, token in enumerate(tokens[:-1]) if token == "#"]


def _serde(attributes):
    """Returns the arguments of all `#[serde(...)]`, and whether one of serde's traits is derived."""
    found = {"derived": False}
    for attribute in attributes:
        if attribute[0] == "derive":
            found["derived"] |= bool({"Serialize", "Deserialize"} & set(attribute[1].tokens))
        if attribute[0] == "serde":
            for part in _split(attribute[1].tokens, ","):
                found[part[0]] = part[2].value if len(part) > 2 else ""
    return found


def _shape(body, serde, all_default=False):
    if body == ";":
        return Shape("unit")
    parts = _split(body.tokens, ",")
    if body.opening == "(":
        values = [_type_text(_visible(part)) for part in parts]
        return Shape("value", values[0] if len(values) == 1 else f"({', '.join(values)})")
    shape = Shape("fields")
    for part in parts:
        own = _serde(_attributes(part))
        name, _, *tokens = _visible(part)
        written = own.get("rename") or _renamed(name, serde)
        text = "String" if "with" in own else _type_text(tokens)
        is_required = not ("default" in own or all_default or text.startswith("Option<"))
        if "skip" not in own:
            shape.fields[written] = Field(text, is_required, "flatten" in own)
    return shape


def _renamed(name, serde):
    case = serde.get("rename_all_fields") or serde.get("rename_all") or "snake_case"
    return _CASES[case](name.removeprefix("r#").split("_"))


def _type_text(tokens):
    """Returns a type as text, without lifetimes and references."""
    text = ""
    for token in tokens:
        if isinstance(token, Group) and ";" in token.tokens:
            text += f"[{_type_text(token.tokens[: token.tokens.index(';')])}]"
        elif isinstance(token, Group):
            text += f"({', '.join(_type_text(part) for part in _split(token.tokens, ','))})"
        elif token == ",":
            text += ", "
        elif token not in ("&", "dyn", "mut") and not token.startswith("'"):
            text += token
    return text
