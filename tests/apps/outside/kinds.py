"""Kinds that the API server of a run lacks: a definition in the place of each, under which any object is valid."""

import json
import re
import time

import clusters

# What the product and Helm say of a kind that the API server does not have: its name and its API version.
LACKING = (
    re.compile(r'no matches for kind "(?P<kind>[^"]+)" in version "(?P<version>[^"]+)"'),
    re.compile(r"has no kind `(?P<kind>[^`]+)` of `(?P<version>[^`]+)`"),
)
SERVED_SECS = 120
# A group of Kubernetes itself, which the API server admits with this note only.
PROTECTED = re.compile(r"(^|\.)(k8s|kubernetes)\.io$")
NOTE = "unapproved, a stand-in of a test"


def lacking(reason):
    """Returns the kinds that a reason names as missing, each with its group and version."""
    return sorted({(found["kind"], found["version"]) for one in LACKING for found in one.finditer(reason)})


def stand_in(programs, kinds):
    """Defines `kinds`; returns those that the API server then has. A group without a dot is its own, and takes none."""
    clusters.apply(programs, [definition(*one) for one in kinds])
    return [one for one in kinds if _is_served(programs, *one)]


def older(programs, kind, version):
    """Returns the newest version of a kind's group in which the API server has the kind, or nothing."""
    done = clusters.kubectl(programs, "get", "--raw", f"/apis/{version.partition('/')[0]}")
    found = json.loads(done.stdout)["versions"] if done.returncode == 0 else []
    versions = sorted((one["groupVersion"] for one in found), key=_age)
    return next((one for one in versions if kind in _kinds_of(programs, one)), None)


def _age(version):
    """Returns a key that orders versions of a group as Kubernetes does: stable ones first, then by number."""
    number, stage, build = re.fullmatch(r".*/v(\d+)(?:(alpha|beta)(\d+))?", version).groups()
    return ["", "beta", "alpha"].index(stage or ""), -int(number), -int(build or 0)


def definition(kind, version):
    group, _, version = version.rpartition("/")
    plural = _plural(kind.lower())
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    notes = {"annotations": {"api-approved.kubernetes.io": NOTE}} if PROTECTED.search(group) else {}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", **notes},
        "spec": {
            "group": group,
            # A name such as `ClusterIssuer` says that its objects are in no namespace; nothing else does.
            "scope": "Cluster" if re.match(r"Cluster[A-Z]", kind) else "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [spec],
        },
    }


def _plural(name):
    if re.search(r"[^aeiou]y$", name):
        return f"{name[:-1]}ies"
    return f"{name}es" if re.search(r"(s|x|z|ch|sh)$", name) else f"{name}s"


def _is_served(programs, kind, version):
    deadline = time.monotonic() + SERVED_SECS
    while time.monotonic() < deadline:
        if kind in _kinds_of(programs, version):
            return True
        time.sleep(0.5)
    return False


def _kinds_of(programs, version):
    done = clusters.kubectl(programs, "get", "--raw", f"/apis/{version}")
    return {one["kind"] for one in json.loads(done.stdout)["resources"]} if done.returncode == 0 else set()
