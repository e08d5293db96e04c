"""Plausible values for inputs and parameters, by their types and names."""

import yaml

from programs import INSTALL

# What the names of parameters for secrets of the app begin with.
SECRET = "AppSecret"
# What the names of parameters begin with that switch roles of the app on, and the end of those for emergencies.
SWITCH, UNTIL = ("EnableBreakGlass", "EnableCustom"), "BreakGlassUntil"
BY_NAME = {
    "email": "someone@example.com",
    "domain": "example.com",
    "url": "https://example.com",
    "cidr": "10.7.0.0/16",
    "port": "8080",
    # The cluster of a customer who has one.
    "cluster_name": INSTALL,
    "public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBUwT3ZsK0z0pZ5nV0m0yJ3V9p0Y1c2d3e4f5g6h7i8j someone",
}
BY_TYPE = {
    "number": "3",
    "bool": "true",
    "list": '["one","two"]',
    "json": '{"one":1}',
    "yaml": "one: 1",
    "hcl": '{ one = "1" }',
}
OTHERS = {"list": '["three"]', "json": '{"two":2}', "yaml": "two: 2", "hcl": '{ two = "2" }', "bool": "false"}


class Template(yaml.SafeLoader):
    """Reads a template; the functions of CloudFormation are of no interest here."""


Template.add_multi_constructor("!", lambda loader, suffix, node: suffix)


def of_inputs(inputs):
    """Returns an answer for each input that the vendor has to give."""
    return {
        one["name"]: plausible(one["name"], one.get("type", "string"))
        for one in inputs
        if _is_open(one) and not one.get("user_configurable")
    }


def _is_open(one):
    """Returns whether an input has no value that may stay."""
    return "default" not in one or (one.get("required") and one["default"] == "")


def of_parameters(template, account):
    """Returns an answer for each parameter without a default and each secret; the account may take the runner's role.

    A customer may leave a secret empty; an app whose inputs ask for more than that works only with it.
    """
    answers = {"RunnerPrincipal": f"arn:aws:iam::{account}:root"}
    for name, one in yaml.load(template, Loader=Template)["Parameters"].items():
        is_open = "Default" not in one or name.startswith(SECRET)
        if is_open and name not in answers:
            answers[name] = one["AllowedValues"][0] if "AllowedValues" in one else plausible(name, "string")
    return answers


def of_switches(template, until):
    """Returns the parameters that switch on what the app's own roles need, those for emergencies until a moment."""
    parameters = yaml.load(template, Loader=Template)["Parameters"]
    on = {name: "true" for name, one in parameters.items() if name.startswith(SWITCH) and one.get("Default") == "false"}
    return {**on, **({UNTIL: until} if on and UNTIL in parameters else {})}


def plausible(name, kind):
    if kind in BY_TYPE:
        return BY_TYPE[kind]
    return next((value for part, value in BY_NAME.items() if part in name.lower()), "freehold")


def changed(one):
    """Returns a value of the input's type other than the one that it has."""
    kind, before = one.get("type", "string"), str(one.get("default", ""))
    if before.lower() in ("true", "false"):
        return "false" if before.lower() == "true" else "true"
    if kind == "number" or before.isdigit():
        return str((float if "." in before else int)(before or 3) + 1)
    return OTHERS.get(kind, f"{before or 'freehold'}-changed")
