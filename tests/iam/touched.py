"""Which questions a change of one statement can touch, so that no other has to be asked again.

The simulator decides a question from what the world has about its principal and its resource, its action and its
context, and from nothing else. So a question whose principal and resource are the same in both worlds has the same
answer in both. Where a policy differs, a question is touched only if a statement that differs is about its action and
can name its resource; where only the actions or only the resources of a statement differ, only if one of these that
differ does so. Conditions, principals and variables count as if they held, and so does `NotResource`: some questions
are asked in vain.
"""

import json
import re
from collections import defaultdict
from functools import cache

import templates


class Change:
    """What differs between two worlds that have the same principals and resources, with other policies."""

    def __init__(self, before, after):
        if (list(before.principals), list(before.resources)) != (list(after.principals), list(after.resources)):
            raise ValueError("the worlds have different principals or resources, and not only different policies")
        self.resources = after.resources
        # The statements that differ: of a principal, of a principal at an endpoint, and of a resource.
        self.identity, self.endpoints, self.policy = {}, {}, {}
        for who, principal in before.principals.items():
            other = after.principals[who]
            if principal != other:
                self._add_principal(who, principal, other)
        for what, resource in before.resources.items():
            other = after.resources[what]
            _same_but(resource, other, {"policy"}, what)
            if resource["policy"] != other["policy"]:
                self.policy[what] = _differing(_text(resource["policy"]), _text(other["policy"]))

    def _add_principal(self, who, principal, other):
        _same_but(principal, other, {"identity", "boundary", "endpoints"}, who)
        pairs = []
        for kind in ("identity", "boundary"):
            pairs += zip(principal.get(kind, []), other.get(kind, []), strict=True)
        found = [each for one, two in pairs if one != two for each in _differing(_text(one), _text(two))]
        if found:
            self.identity[who] = found
        endpoints = principal.get("endpoints", {})
        _same_but(dict.fromkeys(endpoints), dict.fromkeys(other.get("endpoints", {})), set(), who)
        for name, policy in endpoints.items():
            if policy != other["endpoints"][name]:
                self.endpoints[who, name] = _differing(_text(policy), _text(other["endpoints"][name]))

    def split(self, questions):
        """Returns the places of the questions that the change touches, and of those that it only seems to touch: these
        are about a principal or a resource that has another policy.
        """
        touched, near = set(), set()
        for who in {*self.identity, *(who for who, _ in self.endpoints)}:
            for action, places in questions.by_who[who].items():
                near.update(places)
                own = [each for each in self.identity.get(who, ()) if is_about(each, action)]
                if own or self.endpoints:
                    touched.update(at for at in places if self._names(own, who, questions.every[at]))
        for what, statements in self.policy.items():
            for action, places in questions.by_what[what].items():
                near.update(places)
                own = [each for each in statements if is_about(each, action)]
                touched.update(places if any(can_name(each, self.resources[what]["arn"]) for each in own) else ())
        return sorted(touched), sorted(near - touched)

    def _names(self, statements, who, question):
        resource = self.resources[question[1]]
        at_endpoint = self.endpoints.get((who, resource.get("through")), ())
        statements = [*statements, *(each for each in at_endpoint if is_about(each, question[2]))]
        return any(can_name(each, resource["arn"]) for each in statements)


class Questions:
    """Questions, and their places by principal and action, and by resource and action."""

    def __init__(self, every):
        self.every = list(every)
        self.by_who, self.by_what = defaultdict(lambda: defaultdict(list)), defaultdict(lambda: defaultdict(list))
        for at, (who, what, action, _, _) in enumerate(self.every):
            self.by_who[who][action].append(at)
            self.by_what[what][action].append(at)


def is_about(statement, action):
    """Returns whether a statement's actions match an action."""
    if "NotAction" in statement:
        return not any(_matches(pattern, action) for pattern in templates.as_list(statement["NotAction"]))
    return any(_matches(pattern, action) for pattern in templates.as_list(statement["Action"]))


def can_name(statement, arn):
    """Returns whether a statement can be about a resource; a wildcard covers colons here, and so does a variable."""
    if "Resource" not in statement or "*" in arn:
        return True
    return any(
        _matches(re.sub(r"\$\{[^}]*\}", "*", pattern), arn) for pattern in templates.as_list(statement["Resource"])
    )


@cache
def _matches(pattern, name):
    return _compiled(pattern).fullmatch(name) is not None


@cache
def _compiled(pattern):
    return re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.IGNORECASE | re.DOTALL)


def _text(policy):
    return json.dumps(policy, sort_keys=True)


@cache
def _differing(before, after):
    """Returns the statements of two policies that differ; of a pair with other actions or resources, only these."""
    one, two = (templates.as_list(json.loads(text)["Statement"]) for text in (before, after))
    removed, added = [each for each in one if each not in two], [each for each in two if each not in one]
    if len(removed) == len(added) == 1:
        [before], [after] = removed, added
        differ = [key for key in {*before, *after} if before.get(key) != after.get(key)]
        if len(differ) == 1 and differ[0].removeprefix("Not") in ("Action", "Resource"):
            [key] = differ
            if key in before and key in after:
                values, others = templates.as_list(before[key]), templates.as_list(after[key])
                only = [value for value in values + others if (value in values) != (value in others)]
                shared = {name: value for name, value in before.items() if name != key}
                return [{**shared, key.removeprefix("Not"): only}]
    return removed + added


def _same_but(one, two, keys, name):
    """Fails when the two differ in more than the values of these keys."""
    if {key: one[key] for key in one.keys() - keys} != {key: two[key] for key in two.keys() - keys}:
        raise ValueError(f"{name} differs in more than its policies, so every question about it would be touched")
