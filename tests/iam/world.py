"""Tenants, installs and attackers as the templates make them, and every question about who may do what."""

import copy

import templates
from expectations import permitted
from intrinsics import Evaluator
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

    def queue_policy(self, name, customers=(), **names):
        """Returns the policy of the queue `Orders` or `Reports` under these names.

        The code lists the accounts of all installs, `customers`; the file has the one of its only install.
        """
        template = queue_template(**names)
        if customers:
            [statement] = templates.properties(template, f"{name}Policy")["PolicyDocument"]["Statement"]
            statement["Condition"]["StringEquals"]["aws:PrincipalAccount"] = sorted(customers)
        template = self.change("queues", template)
        vendor = Evaluator(template, "queues", names["tenant_account"], {})
        return vendor.resolve(templates.properties(template, f"{name}Policy")["PolicyDocument"])

    def of(self, asked):
        """Returns a world with what these questions are about, and leaves this one as it is."""
        other = copy.copy(self)
        other.keep(asked)
        return other

    def keep(self, asked):
        """Leaves out whatever these questions are not about."""
        who, what = ({each[at] for each in asked} for at in (0, 1))
        self.principals = {name: self.principals[name] for name in who}
        self.resources = {name: self.resources[name] for name in what}

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


def questions(world, principals=lambda principal: True, resources=lambda resource: True, actions=lambda action: True):
    """Yields every principal, resource, action and request context with the answer that IAM has to give.

    A principal is asked about its own resources and its neighbours': the next tenant's, the next install's of both.
    What `principals`, `resources` or `actions` refuse is left out.
    """
    tenants = 1 + max(resource["t"] for resource in world.resources.values())
    installs = 1 + max(resource["i"] or 0 for resource in world.resources.values())
    chosen = [
        (what, resource, [(action, context) for action, context in resource["actions"] if actions(action)])
        for what, resource in world.resources.items()
        if resources(resource)
    ]
    chosen = [each for each in chosen if each[2]]
    for who, principal in world.principals.items():
        if not principals(principal):
            continue
        t, i = principal.get("t") or 0, principal.get("i") or 0
        near_tenants, near_installs = (t, (t + 1) % tenants), (None, i, (i + 1) % installs)
        for what, resource, asked in chosen:
            near = resource["t"] in near_tenants and resource["i"] in near_installs
            if near and resource.get("by") == principal.get("by"):
                allowed = permitted(principal, resource)
                for action, context in asked:
                    yield who, what, action, context, action in allowed
