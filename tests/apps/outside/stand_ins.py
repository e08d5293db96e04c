"""Modules in the place of those whose providers cannot be had: same variables, same outputs, only `terraform_data`; and
programs for what stands in for Pulumi, which reads `program.json` (`runner/examples/pulumi-stand-in.rs`)."""

import json
import re
import shutil

import hcl2

# Names of outputs that hold several values; no module is run to see it.
PLURAL = re.compile(r"(ids|arns|azs|cidrs|names|servers|subnets|blocks|groups|namespaces|zones)$")

# Outputs of modules, and the variables that say their values.
TOLD = {"vpc.id": "vpc_id", "account.region": "region"}


def is_needed(module):
    """Returns whether a module has anything but what Terraform itself brings and modules beside it."""
    for table in _tables(module):
        if any(table.get(block) for block in ("provider", "data")):
            return True
        if any(next(iter(block)).strip('"') != "terraform_data" for block in table.get("resource", [])):
            return True
        if any("required_providers" in block for block in table.get("terraform", [])):
            return True
        calls = [call for block in table.get("module", []) for call in block.values()]
        if any(not _literal(call["source"]).startswith((".", "/")) for call in calls):
            return True
        if any(is_needed((module / _literal(call["source"])).resolve()) for call in calls):
            return True
    return False


def outputs(module):
    """Returns the names of a module's outputs."""
    return {name for name, _ in _blocks(_tables(module), "output")}


def replace(module, reads, lists, facts):
    """Replaces the files of a module.

    `reads` are the paths of its outputs that the app reads, `lists` those that it reads as lists, and `facts` the
    values that are known, by path. What the module is told is an output as it is told.
    """
    tables = _tables(module)
    variables = {name: _variable(block) for name, block in _blocks(tables, "variable")}
    facts = {**facts, **{path: f"${{var.{name}}}" for path, name in TOLD.items() if name in variables}}
    values = {name: _output(name, block, reads, lists, facts) for name, block in _blocks(tables, "output")}
    for file in [*module.glob("*.tf"), *module.glob("*.tf.json"), *module.glob(".terraform.lock.hcl")]:
        file.unlink()
    shutil.rmtree(module / ".terraform", ignore_errors=True)
    # A changed variable changes the resource, so that a plan shows it.
    kept = {name: f"${{var.{name}}}" for name in variables}
    document = {"resource": {"terraform_data": {"stand_in": {"input": kept}}}}
    # Terraform takes no empty blocks.
    document |= {name: block for name, block in (("variable", variables), ("output", values)) if block}
    (module / "main.tf.json").write_text(json.dumps(document, indent=2))


def write_module(folder, variables, outputs):
    """Writes a module that needs a stand-in, in the place of one that is not here: `outputs` are values by name."""
    lines = ["terraform {\n  required_providers {}\n}\n"]
    lines += [f'variable "{name}" {{\n  default = null\n}}\n' for name in variables]
    lines += [f'output "{name}" {{\n  value = {json.dumps(value)}\n}}\n' for name, value in outputs.items()]
    (folder / "main.tf").write_text("".join(lines))


def replace_program(program, settings, reads, lists, facts):
    """Writes what stands in for a program of Pulumi: a resource, and outputs of the form that the app reads.

    `settings` are the names of its variables and the keys of its configuration. Each is an output as it is told, so
    that a plan shows a changed one. `reads`, `lists` and `facts` are those of `replace`.
    """
    variables, keys = settings
    of_settings = {f"told_{name}": f"env:{name}" for name in variables if not name.startswith("PULUMI_")}
    of_settings |= {"told_" + re.sub(r"\W", "_", key): f"config:{key}" for key in keys}
    names = sorted({read.partition(".")[0] for read in reads})
    outputs = {name: _shape([name], None, reads, lists, facts) for name in names}
    resources = [{"name": "stand-in", "type": "stand-in:index:Part"}]
    (program / "program.json").write_text(json.dumps({"resources": resources, "outputs": {**of_settings, **outputs}}))


def _tables(module):
    return [hcl2.loads(file.read_text()) for file in sorted(module.glob("*.tf"))]


def _blocks(tables, kind):
    for table in tables:
        for block in table.get(kind, []):
            for name, body in block.items():
                if not name.startswith("__"):
                    yield name.strip('"'), body


def _variable(body):
    kept = {}
    if "type" in body:
        kept["type"] = re.sub(r"^\$\{(.*)\}$", r"\1", str(body["type"]), flags=re.S)
    if "default" in body:
        kept["default"] = _plain(body["default"])
    for flag in ("sensitive", "nullable"):
        if flag in body:
            kept[flag] = body[flag]
    return kept


def _output(name, body, reads, lists, facts):
    value = _shape([name], body.get("value"), reads, lists, facts)
    return {"value": value, **({"sensitive": True} if body.get("sensitive") is True else {})}


def _shape(path, value, reads, lists, facts):
    """Returns a value of the form that the module's own has, as far as it is written down or the app reads it."""
    dotted = ".".join(path)
    if dotted in facts:
        return facts[dotted]
    below = {read[len(dotted) + 1 :].partition(".")[0] for read in reads if read.startswith(f"{dotted}.")}
    known = {name: one for name, one in value.items() if not name.startswith("__")} if isinstance(value, dict) else {}
    if known or below:
        names = [*(name.strip('"') for name in known), *sorted(below)]
        values = {name.strip('"'): one for name, one in known.items()}
        return {name: _shape([*path, name], values.get(name), reads, lists, facts) for name in dict.fromkeys(names)}
    if dotted in lists or isinstance(value, list) or PLURAL.search(path[-1]):
        return [f"{_leaf(path)}-{number}" for number in range(3)]
    return _leaf(path)


def _leaf(path):
    name = path[-1]
    if name.endswith("enabled"):
        return "true"
    if name.endswith("arn"):
        return f"arn:aws:stand-in:::{'/'.join(path)}"
    return "stand-in-" + "-".join(path).replace("_", "-")


def _plain(value):
    """Returns a default of HCL as JSON has it: strings come with their quotes."""
    if isinstance(value, str):
        return None if value == "null" else _literal(value)
    if isinstance(value, dict):
        return {_literal(key): _plain(one) for key, one in value.items() if not key.startswith("__")}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _literal(text):
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
