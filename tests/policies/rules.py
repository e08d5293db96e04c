"""Draws policies in Rego, of the forms that policies for plans have: loops, functions, comprehensions, negation, sets,
comparisons of any two values, and functions that fail."""

ROOTS = ["r.change.after", "r.change.before", "r.change", "r", "input.freehold", "input.plan"]
FIELDS = ["name", "cidr_block", "acl", "from_port", "internal", "size", "tags", "ingress", "actions", "address", "type"]
TEXTS = ['"x"', '"10.0.0.0/8"', '"0.0.0.0/0"']
LITERALS = [*TEXTS, "0", "1", "443", "1.5", "true", "false", "null", "[]", "{}", '["create"]']
CONDITIONS = [
    "{a} == {b}",
    "{a} != {b}",
    "{a} < {b}",
    "{a} >= {b}",
    "not {a}",
    "not {a} == {b}",
    "{b} in {a}",
    "some v in {a}; v == {b}",
    "some k, v in {a}; v != {b}",
    "every v in {a} {{ v != {b} }}",
    "count({a}) > 1",
    'startswith({a}, "10")',
    'contains({a}, "0")',
    "is_string({a})",
    "is_null({a})",
    "to_number({a}) > 1",
    'regex.match("^[0-9.]+/", {a})',
    'net.cidr_contains("10.0.0.0/8", {a})',
    'glob.match("aws_*", [], {a})',
    'object.get({a}, "name", "none") == "none"',
    "{a} + 1 > 22",
    "sum([v | some v in {a}; is_number(v)]) > 2",
    "max({{v | some v in {a}}}) != {b}",
    "lower({a}) == {a}",
    'split({a}, ".")[0] == "10"',
    'concat(",", sort([t | some t in {a}; is_string(t)])) != {b}',
    "json.unmarshal({a}).Statement",
    "type_name({a}) == type_name({b})",
    'sprintf("%v", [{a}]) == sprintf("%v", [{b}])',
    "array.concat({a}, [1])[0] == {b}",
    "helper({a}, {b})",
    "{{t | some t in {a}}} & {{ {b} }} != set()",
    'trim_prefix({a}, "10.") != {a}',
    'replace({a}, ".", "/") == {b}',
    "numbers.range(0, count({a}))[1] == 1",
    "abs({a}) == {a}",
    "round({a}) == {a}",
    "base64.decode(base64.encode({a})) == {a}",
    "{a} == {b}; {b} == {a}",
]


def _reference(draw):
    return f"{draw.choice(ROOTS)}.{draw.choice(FIELDS)}"


# What a function needs of its first argument; without it most calls would fail.
NEEDS = {
    "is_string": ("startswith", "contains", "regex", "net.", "lower", "split", "trim_", "replace", "base64", "json."),
    "is_number": ("+ 1", "abs(", "round("),
    "is_array": ("sum(", "array.", "concat(", "range("),
    "is_object": ("object.",),
}


def _condition(draw):
    left, form = _reference(draw), draw.choice(CONDITIONS)
    right = _reference(draw) if draw.random() < 0.3 else draw.choice(LITERALS)
    condition = form.format(a=left, b=right)
    need = next((need for need, words in NEEDS.items() if any(word in form for word in words)), None)
    if need is None or draw.random() < 0.1:
        return condition
    return f"{need}({left}); {condition}"


def _rule(draw, name):
    body = "\n".join(f"\t{_condition(draw)}" for _ in range(draw.randrange(1, 4)))
    message = draw.choice(
        ['sprintf("%s by %d", [r.address, {n}])', '"plain {n}"', 'concat(" ", [r.address, r.type, "{n}"])']
    ).replace("{n}", str(draw.randrange(9)))
    return f"{name} contains msg if {{\n\tsome r in input.plan.resource_changes\n{body}\n\tmsg := {message}\n}}\n"


def policy(draw):
    """Returns the text of a policy."""
    package = draw.choice(["nuon", "freehold"])
    rules = [_rule(draw, draw.choice(["deny", "deny", "warn"])) for _ in range(draw.randrange(1, 5))]
    helper = "helper(a, b) if a == b\n\nhelper(a, _) if is_boolean(a)\n"
    return f"package {package}\n\n{helper}\n" + "\n".join(rules)
