"""The forms of what an app adds to an install stack: inputs, secrets and parts of its network."""

import json

from guard_text import SECRET, WORDS

# A number, or nothing.
OPTIONAL_NUMBER = r"^([-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?)?$"
BOOL = ["true", "false"]


def inputs():
    """Returns every form that the parameter of an input can have."""
    text = {"Type": "String", "Description": WORDS}
    number = {"ConstraintDescription": "must be a number"}
    may_be_empty = {"AllowedPattern": OPTIONAL_NUMBER, "ConstraintDescription": "must be a number, or empty"}
    a_bool = {"ConstraintDescription": "must be true or false"}
    secret = {**text, "NoEcho": True}
    forms = [
        {**text, "Type": "Number", **number},
        {**text, "Type": "Number", **number, "Default": WORDS},
        {**text, **may_be_empty, "Default": ""},
        {**secret, **may_be_empty, "Default": ""},
        {**secret, **may_be_empty},
        {**text, "Default": WORDS},
        {**secret, "Default": ""},
    ]
    for start in (text, secret):
        forms.append({**start, "MinLength": 1, "ConstraintDescription": "must not be empty"})
        forms.append({**start, **a_bool, "AllowedValues": BOOL})
        forms.append({**start, **a_bool, "AllowedValues": [*BOOL, ""], "Default": ""})
    forms += [{**text, **a_bool, "AllowedValues": BOOL, "Default": word} for word in BOOL]
    return forms


def secrets():
    """Returns every form that the parameter of a secret of the app can have."""
    secret = {"Type": "String", "Description": WORDS, "NoEcho": True}
    return [
        {**secret, "MinLength": 1, "ConstraintDescription": "must not be empty"},
        {**secret, "Default": ""},
    ]


def of_secret(secret):
    """Returns every form of a secret of the app, the one with all its names first."""
    plain = {name: value for name, value in secret.items() if name != "Condition"}
    changing = ("SecretString", "GenerateSecretString", "KmsKeyId")
    rest = {name: value for name, value in plain["Properties"].items() if name not in changing}
    entered = {"SecretString": {"Ref": SECRET}}
    generated = {"GenerateSecretString": {"PasswordLength": 32, "ExcludePunctuation": True}}
    forms = []
    for value, condition in ((entered, {}), (entered, {"Condition": f"Has{SECRET}"}), (generated, {})):
        for key_of in ({"Ref": "Key"}, "alias/aws/secretsmanager"):
            forms.append({**plain, **condition, "Properties": {**rest, **value, "KmsKeyId": key_of}})
    return forms


def in_regions(value):
    """Returns a part of a network with three zones, and as it is in a region with two."""
    fewer = json.loads(json.dumps(value), object_hook=_without_third_zone)
    return [value] if fewer == value else [value, fewer]


def _without_third_zone(node):
    third = [{"Ref": f"{kind}Subnet2"} for kind in ("Public", "Private")]
    if list(node) != ["Fn::Join"]:
        return node
    comma, items = node["Fn::Join"]
    return {"Fn::Join": [comma, [item for item in items if item not in third]]}
