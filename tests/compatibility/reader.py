"""Reads values as the types of a description do, as serde reads JSON: an unknown field is ignored, but a strict type
refuses it. What a text may contain is not checked."""

import re

from description import parts_of

_INTEGER = re.compile(r"([iu])(\d+)")
_PLAIN = {"any": object, "bool": bool, "number": (int, float), "text": str}


class Refused(Exception):
    """A value that a type does not read; the text names the type and the reason."""


class Reader:
    """The reader of one version. It remembers what it has read, and what it ignored, as `Type.field`."""

    def __init__(self, description):
        self.types = description["types"]
        self.seen, self.ignored = set(), set()

    def read(self, name, value):
        """Reads a value as a type.

        Raises `Refused`.
        """
        if name.endswith("?"):
            return value is None or self.read(name[:-1], value)
        head, _, inner = name.partition("<")
        if head in self.types:
            return self._read_type(head, value)
        if head == "list":
            _expect(isinstance(value, list), name, value)
            return [self.read(inner[:-1], item) for item in value]
        if head == "map":
            _expect(isinstance(value, dict), name, value)
            key, item = parts_of(inner[:-1])
            return [(self.read(key, _key(key, one)), self.read(item, value[one])) for one in value]
        if head.startswith("("):
            items = parts_of(name[1:-1])
            _expect(isinstance(value, list) and len(value) == len(items), name, value)
            return [self.read(item, one) for item, one in zip(items, value, strict=True)]
        if head not in _PLAIN and not _INTEGER.fullmatch(head):
            raise Refused(f"`{head}` is not known")
        return _expect(_is_plain(head, value), name, value)

    def _read_type(self, name, value):
        one = self.types[name]
        if "variants" in one:
            return self._read_variant(name, one, value)
        _expect(isinstance(value, dict), name, value)
        return self._leave(name, one, set(value) - self._read_fields(name, one["fields"], value))

    def _read_fields(self, name, fields, value):
        """Reads the fields of an object, and returns their names. Flat fields read what the others leave."""
        known = {}
        for field, type_name in fields.items():
            plain = field.strip(".?")
            self.known(f"{name}.{plain}", plain in value or field.startswith(".."))
            if not field.startswith(".."):
                known[plain] = type_name
                if plain not in value and not field.endswith("?"):
                    raise Refused(f"{name}: `{plain}` is missing")
        for field in known.keys() & value.keys():
            self.read(known[field], value[field])
        rest = {field: item for field, item in value.items() if field not in known}
        consumed = known.keys() & value.keys()
        for field, type_name in fields.items():
            if field.startswith(".."):
                consumed |= self._read_flat(type_name.rstrip("?"), rest)
        return consumed

    def _read_flat(self, type_name, rest):
        one = self.types.get(type_name)
        if one is None:
            self.read(type_name, rest)
            return set(rest)
        if "variants" in one:
            return self._read_tagged(type_name, one, rest)
        return self._read_fields(type_name, one["fields"], rest)

    def _read_variant(self, name, one, value):
        if "tag" in one:
            _expect(isinstance(value, dict), name, value)
            return self._leave(name, one, set(value) - self._read_tagged(name, one, value))
        word, inner = (value, None) if isinstance(value, str) else _only(name, value)
        shape = self._variant(name, one, word)
        return self._read_shape(f"{name}.{word}", shape, inner)

    def _read_tagged(self, name, one, value):
        """Reads an enum with a tag, and returns the names of the fields that belong to it."""
        later = one["variants"].get("*", {}).get("value")
        if later is None:
            return self._read_known(name, one, value)
        before = set(self.seen), set(self.ignored)
        known = {word: shape for word, shape in one["variants"].items() if word != "*"}
        try:
            return self._read_known(name, one | {"variants": known}, value)
        except Refused:
            self.seen, self.ignored = before
        self.known(f"{name}.*", True)
        self.read(later, value)
        return set(value)

    def _read_known(self, name, one, value):
        tag, content = one["tag"], one.get("content")
        _expect(isinstance(value.get(tag), str), f"{name}: `{tag}`", value.get(tag))
        shape = self._variant(name, one, value[tag])
        variant = f"{name}.{value[tag]}"
        if content:
            self._read_shape(variant, shape, value.get(content))
            return {tag, content}
        rest = {field: item for field, item in value.items() if field != tag}
        if "fields" in shape:
            return {tag} | self._read_fields(variant, shape["fields"], rest)
        if "value" in shape and shape["value"] in self.types and "fields" in self.types[shape["value"]]:
            # The struct in the variant decides itself about what it does not know.
            self.read(shape["value"], rest)
            return set(value)
        if "value" in shape:
            return {tag} | self._read_flat(shape["value"], rest)
        return {tag}

    def _read_shape(self, name, shape, value):
        if "value" in shape:
            return self.read(shape["value"], value)
        if "fields" in shape:
            _expect(isinstance(value, dict), name, value)
            return self._leave(name, {}, set(value) - self._read_fields(name, shape["fields"], value))
        return _expect(value is None, name, value)

    def _variant(self, name, one, word):
        variants = one["variants"]
        if word not in variants and "*" not in variants:
            raise Refused(f"{name}: `{word}` is not known")
        self.known(f"{name}.{word if word in variants else '*'}", True)
        return variants.get(word, {})

    def known(self, name, is_there):
        """Remembers that a value has this field or variant."""
        if is_there:
            self.seen.add(name)

    def _leave(self, name, one, fields):
        """Ignores the fields that nothing has read, or refuses them."""
        for field in sorted(fields):
            if one.get("strict"):
                raise Refused(f"{name}: `{field}` is not known")
            self.ignored.add(f"{name}.{field}")


def all_names(description):
    """Returns every field and every variant of a description, as `Type.field`."""
    found = set()
    for name, one in description["types"].items():
        found |= {f"{name}.{field.strip('.?')}" for field in one.get("fields", {})}
        for variant, shape in one.get("variants", {}).items():
            found.add(f"{name}.{variant}")
            found |= {f"{name}.{variant}.{field.strip('.?')}" for field in shape.get("fields", {})}
    return found


def _expect(is_right, name, value):
    if not is_right:
        raise Refused(f"{name}: {str(value)[:60]!r} is of another type")


def _only(name, value):
    _expect(isinstance(value, dict) and len(value) == 1, name, value)
    return next(iter(value.items()))


def _key(name, key):
    """Returns the key of a map as a value of its type: the keys of JSON are texts."""
    return int(key) if _INTEGER.fullmatch(name) and re.fullmatch(r"-?\d+", key) else key


def _is_plain(name, value):
    if match := _INTEGER.fullmatch(name):
        bits = int(match[2])
        lowest, most = (0, 2**bits) if match[1] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1))
        return type(value) is int and lowest <= value < most
    return isinstance(value, _PLAIN[name])
