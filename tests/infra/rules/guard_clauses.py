"""The clauses of a rule of Guard: what they compare, in every form that a template can have it, and why they fail."""

import re

import guard_text
from guard_text import class_of, key, literal

FIX = "Fix: ask the vendor for the template that this version of Freehold renders."


class Clauses:
    """The clauses of one rule, and the variables that they use."""

    def __init__(self):
        self.clauses, self.names = [], {}
        # What may stand in a place instead, by its path.
        self.variants = {}

    def say(self, clause, what):
        self.clauses.append(clause)
        self.clauses.append(f"        <<{what}. {FIX}>>")

    def counted(self, name, path):
        self.clauses.append(f"let {name} = some {path}")
        self.clauses.append(f"let count_of_{name} = count(%{name})")

    def same(self, path, value, what):
        forms = [value, *([self.variants[path]] if path in self.variants else [])]
        self.is_one_of(path, forms, f"{what} is not what Freehold renders")
        self.leaves(path, value)

    def is_one_of(self, path, values, what):
        """Compares with values in both forms: Guard reads `!GetAtt A.B` as a text, and the long form as a list."""
        forms = [form for value in values for form in (literal(value), literal(short(value)))]
        forms = list(dict.fromkeys(forms))
        self.say(f"{path} == {forms[0]}" if len(forms) == 1 else f"{path} in [{', '.join(forms)}]", what)

    def leaves(self, path, value):
        for place, leaf in _leaves(value):
            # The tags of all resources are compared together.
            if not re.search(r"\.Tags\[\d+\]\.Value$", "".join(place)):
                self.leaf(path + "".join(place), [leaf])

    def leaf(self, path, leaves, what="This names another install than the description"):
        """Compares a text that names the tenant or the install with the names in the description."""
        if not any(map(guard_text.is_named, leaves)):
            return
        replacement = guard_text.named(leaves[0]) if len(leaves) == 1 else None
        if replacement is not None:
            self.say(f"{path} == %{self.name(replacement)}", what)
            return
        found = f"found_{len(self.clauses)}"
        pattern = self.name(guard_text.named_pattern(leaves))
        self.clauses.append(f'let {found} = regex_replace({path}, %{pattern}, "as rendered")')
        self.say(f'%{found} == "as rendered"', what)

    def name(self, replacement):
        """Returns the variable with the names of the description in a text."""
        return self.names.setdefault(guard_text.text(replacement), f"name_{len(self.names) + 1}")

    def flat(self, path):
        """A list in this list is refused: `in` looks into it, and takes one that is empty or has known items."""
        self.say(f"{path}[*] !is_list", "A list has a list in it")

    def items(self, path, plain, full):
        """A list to which an app adds: nothing else may be in it, and nothing of Freehold's may lack."""
        self.flat(path)
        self.is_one_of(f"{path}[*]", [*plain, *full], "Freehold does not render this item")
        for item in plain:
            self.is_one_of(f"some {path}[*]", [item], "An item that Freehold renders is missing")

    def as_many(self, path, kinds):
        """Compares how many values there are with how many roles of the app."""
        number = len(self.clauses)
        names = "|".join(map(class_of, kinds))
        self.clauses.append(f"let values_{number} = some {path}")
        self.clauses.append(f"let roles_{number} = some Resources[ keys == /^({names})Role$/ ]")
        self.clauses.append(f"let values_count_{number} = count(%values_{number})")
        self.clauses.append(f"let roles_count_{number} = count(%roles_{number})")
        self.say(
            f"%values_count_{number} == %roles_count_{number}", "A role of the app is missing here, or one is too many"
        )

    def added(self, section, own, classes, vary=None):
        """Compares a section to which an app adds: Freehold's own entries, and the forms of what an app adds."""
        names = ", ".join([*map(literal, own), *classes])
        self.say(f"{section}[ keys not in [{names}] ] empty", "No install stack has this")
        for name, value in own.items():
            path = f"{section}.{key(name)}"
            varied = (vary or {}).get(name)
            if not varied:
                self.same(path, value, f"`{name}`")
                continue
            self.only(path, list(value), "Freehold does not render this")
            for part, each in value.items():
                if part in varied:
                    self.say(f"{path}.{part} in [{', '.join(varied[part])}]", f"`{name}` is not what Freehold renders")
                else:
                    self.same(f"{path}.{part}", each, f"`{name}`")
        for matched, forms in classes.items():
            self.is_one_of(f"{section}[ keys == {matched} ]", forms, "An app cannot add this")

    def only(self, path, names, what):
        self.say(f"{path}[ keys not in [{', '.join(map(literal, names))}] ] empty", what)


def short(node):
    """Returns a value with `Fn::GetAtt` as its short form has it."""
    if isinstance(node, dict):
        if list(node) == ["Fn::GetAtt"]:
            return {"Fn::GetAtt": ".".join(node["Fn::GetAtt"])}
        return {name: short(value) for name, value in node.items()}
    return [short(value) for value in node] if isinstance(node, list) else node


def _leaves(node, place=()):
    """Yields each text below a value with the way to it, as Guard writes it."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield from _leaves(value, (*place, f".{key(name)}"))
    elif isinstance(node, list):
        for at, value in enumerate(node):
            yield from _leaves(value, (*place, f"[{at}]"))
    elif isinstance(node, str):
        yield place, node
