"""What a part lacks on this machine, by what it says: programs, hosts, nodes, and what only a stand-in would make."""

import re

from config import READ

# What an action may say of the machine that it runs on, and what it lacks then.
OF_ACTIONS = (
    (re.compile(r"([\w.+-]+): (?:command )?not found"), "needs `{}`, which is not here"),
    (re.compile(r"env: .?([\w.+-]+?).?: No such file"), "needs `{}`, which is not here"),
    (re.compile(r"set: Illegal option (-o pipefail)"), "asks `sh` for `{}`, which the one of this machine lacks"),
    (re.compile(r'namespaces "([^"]+)" not found'), "looks into the namespace `{}`, which nothing of the app makes"),
    (re.compile(r"pod (\S+) does not have a host assigned"), "looks into pod `{}`, and the cluster here has no nodes"),
    (re.compile(r"The connection to the server (localhost:8080) was refused"), "has no kubeconfig: it asks `{}`"),
    (re.compile(r"Could not resolve host: (\S+)"), "needs the host `{}`, which is not there"),
    (re.compile(r'getaddrinfo for host "([^"]+)"'), "needs the host `{}`, which is not there"),
    (re.compile(r"refused a connection to ([^\s:]+)"), "reaches `{}`, which is not among the hosts of the contract"),
)
# What an action looks for in the cluster in vain.
NOT_FOUND = re.compile(r'\(NotFound\): [\w.]+ "([^"]+)" not found')
# What `kubectl` says of the first of a list that is empty.
NONE_FOUND = re.compile(r"array index out of bounds: index 0, length 0")
# What the API server says of a field that came after it.
FIELD = re.compile(r"(\.[\w.\[\]-]+): field not declared in schema")
# What the API server says of a definition of a kind with a default that is an empty text.
EMPTY_DEFAULT = re.compile(r'openAPIV3Schema\S*\.default: Invalid value: "null"')
# What the runner says of a template that reads what the install stack does not hand out.
NO_OUTPUT = re.compile(r"no install stack has an output `([^`]+)`")
# What the runner says of a template that reads the outputs of an action that has not succeeded yet.
NO_ACTION_OUTPUT = re.compile(r"`\.nuon\.actions\.workflows\.([^`.]+)`? has no value")
# What a component may ask for that is not there: kinds of a newer API server or an operator, values of the stack.
OF_PARTS = (
    (
        re.compile(r'no matches for kind "([^"]+)" in version "([^"]+)"'),
        "needs `{}` of `{}`, which the cluster here lacks",
    ),
    (re.compile(r"has no kind `([^`]+)` of `([^`]+)`"), "needs `{}` of `{}`, which the cluster here lacks"),
    (FIELD, "sets `{}`, which the API server here is too old for"),
    (re.compile(r"policy `([^`]+)` \(of the vendor\) denies this"), "is what policy `{}` of the app denies"),
    (
        re.compile(r'failed calling webhook "([^"]+)"'),
        "needs the webhook `{}`, which a program in the cluster serves, and none runs here",
    ),
    (NO_OUTPUT, "reads `{}` of the install stack, which has no such output"),
)


def of(log, patterns=OF_ACTIONS):
    """Returns what an action, or another part, lacks here by what it said, or nothing."""
    matches = ((pattern.search(log), what) for pattern, what in patterns)
    return next((what.format(*match.groups()) for match, what in matches if match), None)


def removed(config, log):
    """Returns which part that was left out would have made what an action looks for in the cluster, or nothing."""
    components = [name for kind, name in config.removed if kind == "component"]
    if components and NONE_FOUND.search(log):
        return f"finds an empty list in the cluster; left out are {_quoted(components)}"
    for thing in NOT_FOUND.findall(log):
        for (kind, name), text in config.removed.items():
            if thing in text:
                return f"needs `{thing}`, which {kind} `{name}` would make, and that is left out"
    return None


def unmade(config, log, stand_ins, kinds):
    """Returns why nobody made what an action looks for in the cluster, or nothing: no program runs there, and a
    stand-in makes one object only."""
    if NONE_FOUND.search(log) and kinds:
        return f"finds an empty list in the cluster, where no operator of {_quoted(kinds)} runs"
    text = config.text("components")
    for thing in NOT_FOUND.findall(log):
        if thing not in text:
            by = f" or a stand-in ({_quoted(stand_ins)})" if stand_ins else ""
            return f"looks for `{thing}`, which a program in the cluster{by} would make, and none runs here"
    return None


def read_stand_ins(text, stand_ins):
    """Returns the stand-ins whose outputs the text of an action reads, or to whose deploys it belongs."""
    read = {found[0] or found[1] for found in READ.findall(text)}
    named = {name for name in stand_ins if re.search(rf'"{re.escape(name)}"', text)}
    return sorted((read | named) & set(stand_ins))


def _quoted(names):
    return ", ".join(f"`{name}`" for name in names)
