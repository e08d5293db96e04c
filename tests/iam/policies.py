"""Policies that no template holds: those that a function writes, and those that the simulation adds."""


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


def orders_queue(arn, install, account):
    """Returns what `register-install` writes (`crates/aws/src/queue.rs`); change both together."""
    runner = f"arn:aws:iam::{account}:role/fh-{install}-runner"
    return document(
        allow(
            ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"],
            Sid="RunnerTakesOrders",
            Principal={"AWS": f"arn:aws:iam::{account}:root"},
            Resource=arn,
            Condition={"ArnEquals": {"aws:PrincipalArn": runner}},
        )
    )


def reports_queue(arn, accounts):
    """Returns what `register-install` writes (`crates/aws/src/queue.rs`); change both together."""
    return document(
        allow(
            "sqs:SendMessage",
            Sid="RunnersSendReports",
            Principal="*",
            Resource=arn,
            Condition={
                "StringEquals": {"aws:PrincipalAccount": accounts},
                "ArnLike": {"aws:PrincipalArn": "arn:aws:iam::*:role/fh-*-runner"},
            },
        )
    )
