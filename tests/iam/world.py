"""Tenants, installs and attackers as the templates make them, and every question about who may do what."""

import templates
from expectations import is_permitted
from vendor import add_tenant


class World:
    """Principals and resources of `tenants` tenants with `installs` installs each, every install in its own account.

    `change` gets each template with its name (`tenant`, `install` or `queues`), and returns what is used instead.
    """

    def __init__(self, tenants, installs, change=lambda name, template: template):
        self.principals, self.resources, self.change = {}, {}, change
        self.tenant_template = change("tenant", templates.tenant())
        for t in range(tenants):
            add_tenant(self, t, [f"{2000 + 100 * t + i:04d}".ljust(12, "2") for i in range(installs)])
        self.principals["anonymous"] = {"kind": "anonymous"}

    def queue_policy(self, name, **names):
        """Returns the policy of the queue `Orders` or `Reports` under these names."""
        template = self.change("queues", queue_template(**names))
        return templates.properties(template, f"{name}Policy")["PolicyDocument"]

    def possible(self):
        """Returns how many questions there are of every principal about every resource."""
        return len(self.principals) * sum(len(resource["actions"]) for resource in self.resources.values())


def queue_template(**names):
    """Returns the policies of the queues that the code makes, as if a template made them."""
    policies = templates.queue_policies(**names)
    return {
        "Resources": {
            f"{name.title()}Policy": {"Type": "AWS::SQS::QueuePolicy", "Properties": {"PolicyDocument": policy}}
            for name, policy in policies.items()
        }
    }


def questions(world):
    """Yields every principal, resource, action and request context with the answer that IAM has to give.

    A principal is asked about its own resources and its neighbours': the next tenant's, the next install's of both.
    """
    tenants = 1 + max(resource["t"] for resource in world.resources.values())
    installs = 1 + max(resource["i"] or 0 for resource in world.resources.values())
    for who, principal in world.principals.items():
        t, i = principal.get("t") or 0, principal.get("i") or 0
        for what, resource in world.resources.items():
            near = resource["t"] in (t, (t + 1) % tenants) and resource["i"] in (None, i, (i + 1) % installs)
            for action, context in resource["actions"] if near else []:
                yield who, what, action, context, is_permitted(principal, resource, action)
