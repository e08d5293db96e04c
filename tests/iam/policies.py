"""Policies that the simulation adds to those of the templates and of the code."""


def document(*statements):
    return {"Version": "2012-10-17", "Statement": list(statements)}


def allow(action, **more):
    return {"Effect": "Allow", "Action": action, **more}


EVERYTHING = document(allow("*", Resource="*"))


def everything_of(service):
    """Returns an identity policy for all of a service, so that only the policy of the resource stands in the way."""
    return document(allow(f"{service}:*", Resource="*"))


def open_to_account(account, action, **more):
    """Returns a resource's policy that leaves the decision to the identities of an account."""
    return document(allow(action, Principal={"AWS": f"arn:aws:iam::{account}:root"}, **more))
