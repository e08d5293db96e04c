"""Reads which modules of a crate mention each other, and finds the circles of imports."""

import collections
import re

import rust_text

_USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
_PATH = re.compile(r"\b(?:crate|self|super)(?:::\w+)+")
_CHILD = re.compile(r"(?<![:\w])[a-z]\w*(?:::\w+)+")
# Who may see an item; the path in it is not an import.
_VISIBILITY = re.compile(r"\bpub\(in [^)]*\)")
# A word that may be a name in scope: no part of a path behind its first, no field, no method, no declaration.
_NAME = re.compile(
    r"(?<!:)(?<![^.]\.)(?<!\bconst )(?<!\benum )(?<!\bfn )(?<!\blet )(?<!\bmod )(?<!\bstatic )"
    r"(?<!\bstruct )(?<!\btrait )(?<!\btype )\b([A-Za-z_]\w*)\b(?!:[^:])"
)


def circles(read):
    """Returns the circles of each crate: its folder and the sorted names of two or more modules."""
    return [(folder, names) for folder in _crates(read) for names in _Crate(read, folder).circles()]


def folder_circles(read):
    """Returns the circles of the modules at the top of each crate: whose files, taken together, mention each other."""
    return [(folder, names) for folder in _crates(read) for names in _Crate(read, folder).folder_circles()]


def _crates(read):
    return [
        path.removesuffix("Cargo.toml")
        for path in read.files
        if path.endswith("Cargo.toml")
        and any(path.removesuffix("Cargo.toml") + root in read.files for root in ("src/lib.rs", "src/main.rs"))
    ]


class _Crate:
    def __init__(self, read, folder):
        self.modules = {}  # a module's path as a tuple of names, to its product code
        source = f"{folder}src/"
        root = "lib.rs" if f"{source}lib.rs" in read.files else "main.rs"
        for path in read.files:
            if not path.startswith(source) or not path.endswith(".rs") or path in read.only_tests:
                continue
            if path.startswith(f"{source}bin/") or (root == "lib.rs" and path == f"{source}main.rs"):
                continue
            names = path[len(source) : -3].split("/")
            names = () if names == [root[:-3]] else tuple(names[:-1] if names[-1] == "mod" else names)
            if "tests" not in names:
                self.modules[names] = _product(read.code(path))
        self.exports = {module: self._exports(module) for module in self.modules}

    def circles(self):
        """Returns the names of the modules of each circle."""
        arrows = {module: self._arrows(module) for module in self.modules}
        return sorted(["::".join(module) or "crate" for module in sorted(knot)] for knot in _knots(arrows))

    def folder_circles(self):
        """Returns the names of the modules at the top that mention each other, directly or through others."""
        arrows = {module[0]: set() for module in self.modules if module}
        for module in filter(None, self.modules):
            arrows[module[0]] |= {other[0] for other in self._arrows(module) if other and other[0] != module[0]}
        return sorted(sorted(knot) for knot in _knots(arrows))

    def _exports(self, module):
        uses = (match for match in _USE.finditer(self.modules[module]) if match.group(1))
        return {name: path for match in uses for path, name in _flat(match.group(2))}

    def _arrows(self, module):
        code = self.modules[module]
        paths = [path for match in _USE.finditer(code) if not match.group(1) for path, _ in _flat(match.group(2))]
        rest = _VISIBILITY.sub("", _USE.sub("", code))
        paths += [match.group().split("::") for match in _PATH.finditer(rest)]
        paths += [match.group().split("::") for match in _CHILD.finditer(rest)]
        names = set(_NAME.findall(rest))
        paths += [path for name, path in self.exports[module].items() if name in names]
        return {self._home(module, path) for path in paths} - {None, module}

    def _home(self, module, path, depth=0):
        """Returns the module which a path leads to; nothing for other crates' paths."""
        path, at = list(path), module
        if path and path[0] == "crate":
            at, path = (), path[1:]
        elif path and path[0] in ("self", "super"):
            while path and path[0] in ("self", "super"):
                at = at[:-1] if path[0] == "super" else at
                path = path[1:]
        elif not path or (*module, path[0]) not in self.modules:
            return None
        while path and (*at, path[0]) in self.modules:
            at, path = (*at, path[0]), path[1:]
        exported = self.exports.get(at, {}).get(path[0]) if path else None
        if exported and depth < 8:
            return self._home(at, exported, depth + 1) or at
        return at


def _product(code):
    for start, end in rust_text.test_parts(code):
        code = code[:start] + re.sub(r"[^\n]", " ", code[start:end]) + code[end:]
    return code


def _flat(tree, before=()):
    """Yields each path of a `use` tree and the name that it gets here."""
    for part in _split(tree):
        part = part.strip()
        if "{" in part:
            head, _, inner = part.partition("{")
            names = [name.strip() for name in head.split("::") if name.strip()]
            yield from _flat(inner.rpartition("}")[0], (*before, *names))
        elif part:
            path, _, alias = part.partition(" as ")
            names = [*before, *(name.strip() for name in path.split("::"))]
            names = names[:-1] if names[-1] == "self" and len(names) > 1 else names
            yield names, alias.strip() or names[-1]


def _split(tree):
    depth, begin = 0, 0
    for at, letter in enumerate(tree):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            yield tree[begin:at]
            begin = at + 1
    yield tree[begin:]


def _knots(arrows):
    """Returns the sets of two or more modules that all reach each other."""
    reach = {}
    for start in arrows:
        seen, todo = set(), collections.deque(arrows[start])
        while todo:
            at = todo.popleft()
            if at not in seen:
                seen.add(at)
                todo.extend(arrows.get(at, ()))
        reach[start] = seen
    knots = {frozenset(other for other in reach[at] if at in reach[other]) for at in arrows if at in reach[at]}
    return [knot for knot in knots if len(knot) > 1]
