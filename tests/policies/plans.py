"""Draws plans of Terraform that policies have something to say about: ordinary values, edge values and missing ones."""

import json

KINDS = [
    "aws_security_group",
    "aws_s3_bucket_acl",
    "aws_db_instance",
    "aws_iam_role",
    "aws_lb",
    "aws_vpc",
    "aws_eip",
    "aws_lambda_permission",
]
ACTIONS = [["create"], ["update"], ["delete"], ["no-op"], ["delete", "create"], ["create", "delete"], ["read"], []]
ACCOUNTS = ["222222222222", "333333333333"]
TEXTS = ["", "x", "10.0.0.0/8", "0.0.0.0/0", "::/0", "public-read", *ACCOUNTS, "Ünïcode-ß", "a" * 70]
NUMBERS = [0, 1, 22, 80, 443, 65535, -1, 1.5, 1e3]
KEYS = ["name", "cidr_block", "acl", "from_port", "internal", "publicly_accessible", "principal", "size", "tags"]


def value(draw, depth=0):
    """Returns a value as it is in a plan; a deeper one is simpler."""
    kind = draw.random()
    if kind < 0.35:
        return draw.choice(TEXTS)
    if kind < 0.55:
        return draw.choice(NUMBERS)
    if kind < 0.65:
        return draw.choice([True, False])
    if kind < 0.75 or depth > 2:
        return None
    if kind < 0.88:
        return [value(draw, depth + 1) for _ in range(draw.randrange(4))]
    return {draw.choice(KEYS): value(draw, depth + 1) for _ in range(draw.randrange(4))}


def _trust(draw):
    principal = draw.choice(
        [
            "*",
            {"AWS": f"arn:aws:iam::{draw.choice(ACCOUNTS)}:root"},
            {"AWS": ["222222222222", "*"]},
            {"Service": "ec2.amazonaws.com"},
            {},
        ]
    )
    statement = {"Effect": draw.choice(["Allow", "Deny"]), "Principal": principal, "Action": "sts:AssumeRole"}
    if draw.random() < 0.4:
        statement["Condition"] = {"StringEquals": {draw.choice(["aws:SourceAccount", "aws:x"]): "222222222222"}}
    return json.dumps({"Statement": draw.choice([statement, [statement]])})


def _after(draw, kind):
    after = {key: value(draw) for key in KEYS if draw.random() < 0.5}
    if kind == "aws_security_group":
        ranges = draw.choice([["0.0.0.0/0"], ["10.0.0.0/8"], ["::/0"], [], None])
        after["ingress"] = [
            {
                "from_port": draw.choice(NUMBERS[:6]),
                "to_port": draw.choice(NUMBERS[:6]),
                "protocol": draw.choice(["tcp", "-1"]),
                "cidr_blocks": ranges,
                "ipv6_cidr_blocks": draw.choice([ranges, []]),
            }
            for _ in range(draw.randrange(3))
        ]
    if kind == "aws_iam_role":
        after["assume_role_policy"] = draw.choice([_trust(draw), "not json", None])
    return after


def plan(draw):
    """Returns the document on which a runner evaluates policies."""
    changes = []
    for number in range(draw.randrange(6)):
        kind = draw.choice(KINDS)
        actions = draw.choice(ACTIONS)
        tags = {"freehold:install": draw.choice(["globex", "initech"])} if draw.random() < 0.5 else None
        if tags and draw.random() < 0.5:
            tags["freehold:tenant"] = draw.choice(["acme", "umbrella"])
        changes.append(
            {
                "address": f"{kind}.r{number}",
                "type": kind,
                "change": {
                    "actions": actions,
                    "before": None if actions == ["create"] else {"tags": tags, **_after(draw, kind)},
                    "after": None if actions == ["delete"] else _after(draw, kind),
                    "after_unknown": draw.choice([{}, {"assume_role_policy": True}]),
                    **({"importing": {"id": "x"}} if draw.random() < 0.1 else {}),
                },
            }
        )
    return {
        "plan": {"format_version": "1.2", "resource_changes": changes},
        "freehold": {
            "tenant": "acme",
            "install": "globex",
            "account": "222222222222",
            "component": draw.choice(["web", "db"]),
            "mode": draw.choice(["maintenance", "provision"]),
            "removal": draw.choice([True, False]),
            "maintenance": {"creates": draw.choice([True, False]), "components": draw.choice([[], ["web"]])},
        },
    }
