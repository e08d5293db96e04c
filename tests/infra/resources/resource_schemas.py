"""Writes the properties of CloudFormation's resource types as a table, from the resource schemas of cfn-lint.

The table has a line with the version of cfn-lint, a line for each shape, an empty line, and a line for each service
with its types and the number of each type's shape, from 0: `SQS Queue=7 QueuePolicy=8`.

A shape is a map with known properties: `DelaySeconds=n QueueName=s Tags=[3`. A required property has `!` instead of
`=`, and a shape that may have other properties begins with `+`. After the sign follow letters, one for each sort of
value that the property may have (`s` text, `n` number, `b` boolean, `l` list, `m` map), or `*` for any value; then
nothing, or `[` and the same for the items of a list, or `{` and the same for the values of a map with any keys, or the
number of a shape. Equal shapes are written once.

The table leaves out whatever could make a correct template look wrong: `anyOf`, `oneOf` and `allOf`, custom resources,
types of SAM, the values of properties that AWS CLI's `package` replaces, and required properties that only AWS writes.
"""

import zlib
from importlib.metadata import version

from cfnlint.helpers import REGIONS, TEMPLATED_PROPERTY_CFN_PATHS
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

LETTERS = {"string": "s", "number": "n", "integer": "n", "boolean": "b", "array": "l", "object": "m"}
ORDER = "snblm"
ANY = "*"
# Custom resources have properties of their own, and a transform adds properties to the types of SAM.
LEFT_OUT = ("AWS::CloudFormation::CustomResource", "AWS::Serverless::")


class Shapes:
    """The shapes of all types, each with the number of the shape that it refers to in its place."""

    def __init__(self):
        self.all = []
        self.known = {}

    def of_type(self, name, schema):
        """Returns the number of the shape of a resource type."""
        written_by_aws = {path.split("/")[-1] for path in schema.get("readOnlyProperties", [])}
        packaged = f"Resources/{name}/Properties/"
        templated = {path.removeprefix(packaged) for path in TEMPLATED_PROPERTY_CFN_PATHS if path.startswith(packaged)}
        return OfType(self, schema, written_by_aws, templated).shape(schema)

    def merged(self):
        """Returns for each shape the number of its class; shapes of one class cannot be told apart."""
        classes = [0] * len(self.all)
        while True:
            seen = {}
            lines = [line(shape, classes) for shape in self.all]
            finer = [seen.setdefault(pair, len(seen)) for pair in zip(classes, lines, strict=True)]
            if len(seen) == len(set(classes)):
                return finer
            classes = finer


class OfType:
    """Adds the shapes of one type."""

    def __init__(self, shapes, schema, written_by_aws, templated):
        self.shapes, self.schema = shapes, schema
        self.written_by_aws, self.templated = written_by_aws, templated

    def shape(self, node):
        """Returns the number of the shape of a schema with properties."""
        number = self.shapes.known.get(id(node))
        if number is not None:
            return number
        number = self.shapes.known[id(node)] = len(self.shapes.all)
        self.shapes.all.append(None)
        properties = node["properties"]
        is_open = node.get("additionalProperties") is not False or "patternProperties" in node
        required = set(node.get("required", [])) - self.written_by_aws
        required = {name for name in required if is_open or name in properties}
        templated = self.templated if node is self.schema else set()
        kinds = {name: ANY if name in templated else self.kind(inner) for name, inner in properties.items()}
        kinds.update({name: ANY for name in required if name not in kinds})
        self.shapes.all[number] = (is_open, tuple((name, name in required, kinds[name]) for name in sorted(kinds)))
        return number

    def kind(self, node):
        """Returns the letters of a schema, and what its items or values are: a text, or a list of texts and numbers."""
        node = self.resolved(node)
        types = node.get("type", [] if "properties" not in node else list(LETTERS))
        types = [types] if isinstance(types, str) else types
        if not types or any(name not in LETTERS for name in types):
            return ANY
        allowed = {LETTERS[name] for name in types}
        items, values = self.inside(node, allowed)
        if items and values:
            items = values = None
        letters = allowed - ({"l"} if items else set()) - ({"m"} if values else set())
        return ("".join(letter for letter in ORDER if letter in letters), *(items or values or ()))

    def inside(self, node, allowed):
        """Returns the kind of the items and the kind of the values; nothing where any are allowed."""
        items = values = None
        if "l" in allowed and isinstance(node.get("items"), dict):
            items = ("[", *self.kind(node["items"]))
        if "m" in allowed and node.get("properties"):
            values = (self.shape(node),)
        elif "m" in allowed:
            more = node.get("patternProperties") or {}
            others = node.get("additionalProperties")
            more = [*more.values(), *([others] if isinstance(others, dict) else [])]
            values = ("{", *self.kind(more[0])) if len(more) == 1 else None
        return items, values

    def resolved(self, node):
        for _ in range(16):
            if not isinstance(node.get("$ref"), str):
                return node
            target = self.schema
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return {}


def line(shape, classes):
    """Returns the line of a shape, with the classes of the shapes that it refers to."""
    is_open, properties = shape
    words = ["+"] if is_open else []
    for name, required, kind in properties:
        kind = "".join(str(classes[part]) if isinstance(part, int) else part for part in kind)
        words.append(f"{name}{'!' if required else '='}{kind}")
    return " ".join(words)


def table():
    """Returns the table as a text."""
    regions = {
        name: region for region in reversed(REGIONS) for name in PROVIDER_SCHEMA_MANAGER.get_resource_types(region)
    }
    shapes, numbers = Shapes(), {}
    for name in sorted(regions):
        if name.startswith("AWS::") and not name.startswith(LEFT_OUT):
            schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(regions[name], name).schema
            numbers[name] = shapes.of_type(name, schema)
    classes = shapes.merged()
    lines = {number: line(shape, classes) for number, shape in zip(classes, shapes.all, strict=True)}
    services = {}
    for name, number in numbers.items():
        _, service, kind = name.split("::")
        services.setdefault(service, []).append(f"{kind}={classes[number]}")
    parts = [f"cfn-lint {version('cfn-lint')}", *(lines[number] for number in range(len(lines))), ""]
    return "\n".join([*parts, *(f"{service} {' '.join(kinds)}" for service, kinds in services.items()), ""])


def compressed(text):
    return zlib.compress(text.encode(), 9)


def decompressed(data):
    return zlib.decompress(data).decode()
