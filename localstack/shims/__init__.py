"""The shims: they correct MiniStack where it differs from AWS and Freehold depends on it. One file per service."""

from shims import (
    content_types,
    events,
    functions,
    http_api,
    identity,
    kubernetes,
    kubernetes_templates,
    logs,
    network,
    people,
    queues,
    registry,
    states,
    templates,
    topics,
)

SHIMS = (
    states,
    identity,
    queues,
    registry,
    http_api,
    people,
    events,
    templates,
    topics,
    functions,
    content_types,
    network,
    logs,
    kubernetes,
    kubernetes_templates,
)


def apply():
    """Applies every shim; ends the process when a name that a shim replaces does not exist."""
    for shim in SHIMS:
        shim.apply()
