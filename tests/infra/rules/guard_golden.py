"""The golden install stacks with marks in place of what names a tenant, an install, or what an app adds."""

import re

import templates
from guard_text import (
    ACCOUNT,
    APP,
    BREAK_GLASS,
    BREAK_GLASS_KEY,
    CONTRACT,
    CUSTOM,
    CUSTOM_KEY,
    INPUT,
    INPUT_NAME,
    INSTALL,
    PARTITION,
    REGION,
    SECRET,
    SECRET_NAME,
    SECRET_NAMES,
    SHARD,
    TENANT,
    VENDOR,
    VERSION,
    WORDS,
)


def marked(template):
    """Returns a golden stack with marks in place of what names the tenant and the install."""
    names = template["Metadata"]["Freehold"]
    [(region, accounts)] = template["Mappings"]["BoundTo"].items()
    [account] = accounts
    marks = {
        template["Parameters"]["AcceptedContract"]["Default"]: CONTRACT,
        names["Version"]: VERSION,
        names["Install"]: INSTALL,
        names["Tenant"]: TENANT,
        names["App"]: APP,
        account: ACCOUNT,
        templates.TENANT_ACCOUNT: VENDOR,
        region: REGION,
    }
    words = re.compile(
        "|".join(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])" for name in sorted(marks, key=len, reverse=True))
    )

    def change(text):
        text = words.sub(lambda found: marks[found[0]], text)
        queue = text.removeprefix("arn:aws:sqs:")
        if queue == text:
            return text
        return f"arn:{PARTITION}:sqs:{queue}{SHARD if queue.endswith('--reports') else ''}"

    return _mapped(template, change)


def of_app(template):
    """Returns a stack with marks in place of the names of the app's roles and inputs."""
    inputs = sorted((name for name in template["Parameters"] if name.startswith("Input")), key=len, reverse=True)
    resources = (name.removeprefix("Secret") for name in template["Resources"])
    names = template["Outputs"]["AppSecrets"]["Value"]
    secrets = sorted((name for name in resources if name.startswith("AppSecret")), key=len, reverse=True)
    words = [
        (r"CustomSupport", CUSTOM),
        (r"custom-support", CUSTOM_KEY),
        (r"BreakGlass(?=Enabled|Role|NeedsItsEnd|IsOff|$)|(?<=Enable)BreakGlass(?!Until)", BREAK_GLASS),
        (r"(?<![a-z-])break-glass(?! ends| is| roles|-)|(?<=-)break-glass", BREAK_GLASS_KEY),
        ("|".join(map(re.escape, inputs)), INPUT),
        (r"(?<=/input/)[A-Za-z0-9_-]+?(?=(-\?{6})?$)", INPUT_NAME),
        (r"^Answer to .*$", f"Answer to {WORDS}"),
        ("|".join(map(re.escape, secrets)), SECRET),
        (r"(?<=--secret/)[A-Za-z0-9_-]+$", SECRET_NAME),
        (f"^{re.escape(names)}$", SECRET_NAMES),
        (r"^Secret of the app: .*$", f"Secret of the app: {WORDS}"),
    ]

    def change(text):
        for word, mark in words:
            text = re.sub(word, mark, text)
        return text

    return _mapped(template, change)


def _mapped(node, change):
    if isinstance(node, dict):
        return {change(name): _mapped(value, change) for name, value in node.items()}
    if isinstance(node, list):
        return [_mapped(value, change) for value in node]
    return change(node) if isinstance(node, str) else node
