"""Who may do what, written down independently of any policy. Whatever is not listed here has to be denied."""

import endpoints
import shared_account
import templates

READ, WRITE, UPDATE = "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"
REMOVE = "dynamodb:DeleteItem"
SEND, RECEIVE, SET = "sqs:SendMessage", "sqs:ReceiveMessage", "sqs:SetQueueAttributes"
TAKEN = {RECEIVE, "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"}
FIND = "sqs:GetQueueUrl"
MADE = {SET, FIND, "sqs:CreateQueue", "sqs:TagQueue", "sqs:DeleteQueue"}
GET_OBJECT, PUT_OBJECT, DELETE_OBJECT = "s3:GetObject", "s3:PutObject", "s3:DeleteObject"
# An earlier version of an object, such as an approval that is withdrawn.
GET_VERSION = "s3:GetObjectVersion"
LIST, LIST_VERSIONS = "s3:ListBucket", "s3:ListBucketVersions"
# What a replication from another bucket asks for.
REPLICATE = "s3:ReplicateObject"
# A write that locks its object needs this permission too.
LOCK = "s3:PutObjectRetention"
PULL, PUSH = "ecr:BatchGetImage", "ecr:PutImage"
PUSHES = {PUSH, "ecr:InitiateLayerUpload", "ecr:UploadLayerPart", "ecr:CompleteLayerUpload"}
TAKE, TAG = "sts:AssumeRole", "sts:TagSession"
DEAD_LETTERS = ("dead-letters", "orders-dead-letters", "notifications-dead-letters")
TOPIC = {
    "sns:Publish",
    "sns:Subscribe",
    "sns:ListSubscriptionsByTopic",
    "sns:SetTopicAttributes",
    "sns:DeleteTopic",
}
# Publishing to an encrypted topic needs these two actions on the topic's key, and only through SNS.
ENCRYPT = {"kms:GenerateDataKey", "kms:Decrypt"}
TOPIC_KEYS = dict.fromkeys(("topic-key", "topic-key-of-others"), {*ENCRYPT, "kms:CreateGrant"})
SIMULATE, INVOKE = "iam:SimulatePrincipalPolicy", "lambda:InvokeFunction"
MAP = "lambda:CreateEventSourceMapping"

OPEN_QUEUES = dict.fromkeys(("open-orders", "open-reports"), {SEND, RECEIVE, "sqs:PurgeQueue"})
OPEN_ROLES = dict.fromkeys(("app-role-open", "their-role-open"), {TAKE})
# The rows of the console's sessions have a mark of their own, since the console may touch no others.
SESSIONS = {"session-rows": {READ, WRITE, REMOVE}}
ROWS = {"rows": {READ, WRITE}, "app-rows": {WRITE}, **SESSIONS, "session-rows-beside": {READ}}
KEY = dict.fromkeys(("key", "key-by-s3"), {"kms:Decrypt"})
MODE = {
    "stack-role": {SIMULATE},
    "state-list": {LIST},
    **dict.fromkeys(("state", "open-state"), {GET_OBJECT, PUT_OBJECT}),
    "plans": {PUT_OBJECT},
    "repository": {PULL},
    **KEY,
}
INSIDE = {
    "own-by-endpoint": endpoints.ACTIONS,
    "queue-by-endpoint": {SEND, RECEIVE},
    "layers-by-endpoint": {GET_OBJECT},
}
# The bucket of the install and what is in it, under the bucket's own policy.
BUCKET = {
    *("bucket", "lock", "lock-for-ever", "lock-of-a-state", "audit", "record", "record-again", "locked", "policies"),
    *("approvals", "plans", "state", "audit-list", "state-list", "other-list", "logs"),
}
# Resources of the account that Freehold did not make.
ELSEWHERE = {
    "autoscaling:CompleteLifecycleAction",
    "autoscaling:SetDesiredCapacity",
    "cloudformation:DescribeStacks",
    "ec2:TerminateInstances",
    "ecr:BatchDeleteImage",
    "kms:Decrypt",
    "kms:GetPublicKey",
    "kms:Sign",
    "logs:PutLogEvents",
    "secretsmanager:GetSecretValue",
    "states:DescribeExecution",
    "states:StartExecution",
    DELETE_OBJECT,
    GET_OBJECT,
    INVOKE,
    LIST,
    PULL,
    PUSH,
    PUT_OBJECT,
    READ,
    RECEIVE,
    SEND,
    SET,
    WRITE,
}
# What the boundary leaves to a role that may do everything.
CEILING = {
    **OPEN_QUEUES,
    "app-secret": {"secretsmanager:GetSecretValue"},
    "state-list": {LIST, LIST_VERSIONS},
    "audit-list": {LIST, LIST_VERSIONS},
    "other-list": {LIST},
    # An image of the customer's repository may be the code of a function.
    "elsewhere": ELSEWHERE - {PUSH},
    "their-role": {SIMULATE},
    "open-mode-role": {TAG},
    "own-role": {"iam:CreateRole", "iam:PassRole"},
    "stack": {"cloudformation:DescribeStacks"},
    "leftovers": {"tag:GetResources", "tag:TagResources"},
    **shared_account.CEILING,
}

FUNCTIONS = {
    "api": {
        **ROWS,
        "versions": {GET_OBJECT},
        # It presigns uploads of sources, and looks whether one is there.
        "sources": {GET_OBJECT},
        "vendor-bucket": {LIST},
        **dict.fromkeys(("machine", "step-machine"), {"states:StartExecution"}),
        # It keeps the subscriptions, and sends tests.
        "notifications": {"sns:Publish", "sns:Subscribe", "sns:ListSubscriptionsByTopic"},
        "topic-key": ENCRYPT,
    },
    "register-install": {
        **ROWS,
        **dict.fromkeys(("orders", "orders-alike"), MADE - {"sqs:DeleteQueue"}),
        "reports": {SET},
        "later-reports": MADE - {"sqs:DeleteQueue"},
        # It has a new queue of reports read, by the one function that reads reports, and never changes this again.
        "new-mapping-of-reports": {MAP},
    },
    "plan-workflow": {**ROWS, "dispatch-queue": {SEND}, "versions": {GET_OBJECT}},
    "dispatch-job": {
        **ROWS,
        "dispatch-queue": TAKEN,
        "dead-letters": {SEND},
        # Their queue is named like an install's.
        "orders-dead-letters": {SEND},
        **dict.fromkeys(("orders", "orders-alike", "open-orders"), {SEND}),
        "build-queue": {SEND},
        "build-group": {"autoscaling:SetDesiredCapacity"},
        "root-key": {"kms:Sign"},
        "versions": {GET_OBJECT},
    },
    "accept-report": {
        **ROWS,
        "tokens": {READ},
        "tokens-given-back": {WRITE, UPDATE},
        "reports": TAKEN,
        "later-reports": {*TAKEN, FIND},
        "open-reports": {RECEIVE},
        "dead-letters": {SEND},
        "dispatch-queue": {SEND},
        "grants-queue": {SEND},
    },
    "grant-artifact": {
        "rows": {READ},
        "grant-rows": {READ, WRITE},
        "grants-queue": TAKEN,
        "dead-letters": {SEND},
        "orders-dead-letters": {SEND},
        **dict.fromkeys(("orders", "orders-alike", "open-orders"), {SEND}),
        "build-queue": {SEND},
        "registry": {PULL},
        # It presigns the download of a runner's program.
        "sources": {GET_OBJECT},
        "root-key": {"kms:Sign"},
    },
    "finish-workflow": {
        **ROWS,
        "dispatch-queue": {SEND},
        # It starts the next step of a runbook.
        "step-machine": {"states:StartExecution"},
        "versions": {GET_OBJECT},
    },
    "sweep": {
        **ROWS,
        "tokens": {READ},
        "tokens-given-back": {WRITE, UPDATE},
        # It removes what is kept about a forgotten install: its grants, its queue and its permission to report.
        # It closes the queue of a runner that has lost its access.
        **dict.fromkeys(("grant-rows", "grant-rows-beside"), {REMOVE}),
        **dict.fromkeys(("orders", "orders-alike"), {"sqs:DeleteQueue", SET, FIND}),
        "dispatch-queue": {SEND},
        "grants-queue": {SEND},
        "build-group": {"autoscaling:SetDesiredCapacity"},
        # It puts back messages that SQS has moved to the dead letters.
        **dict.fromkeys(("dead-letters", "orders-dead-letters"), {RECEIVE, "sqs:DeleteMessage"}),
        "reports": {SEND, SET},
        "later-reports": {SEND, SET, FIND},
        "open-reports": {SEND},
        **dict.fromkeys(("machine", "step-machine"), {"states:StartExecution"}),
        "versions": {GET_OBJECT},
        "notifications": {"sns:Publish"},
        "topic-key": ENCRYPT,
    },
    "console": SESSIONS,
    "prune-artifacts": {
        **dict.fromkeys(("rows", "session-rows", "session-rows-beside"), {READ}),
        "app-rows": {WRITE},
        "registry": {"ecr:BatchDeleteImage"},
        "versions": {GET_OBJECT},
    },
}

VENDOR = {
    **{name: {**own, f"log-of-{name}": {"logs:PutLogEvents"}} for name, own in FUNCTIONS.items()},
    **{
        f"{name}-machine": {"function-plan-workflow": {INVOKE}, "function-finish-workflow": {INVOKE}}
        for name in templates.DEFINITIONS
    },
    "provision-install-machine": {
        "function-register-install": {INVOKE},
        "function-plan-workflow": {INVOKE},
        "function-finish-workflow": {INVOKE},
    },
    "build-runner": {
        "build-queue": TAKEN,
        "build-group": {"autoscaling:SetDesiredCapacity"},
        "source-credential": {"secretsmanager:GetSecretValue"},
        "reports": {SEND},
        "open-reports": {SEND},
        "registry": {*PUSHES, PULL},
        "sources": {GET_OBJECT},
        "source-role": {TAKE},
    },
    "service-lambda": {"function-role": {TAKE}},
    "service-ec2": {"build-role": {TAKE}, "runner-role": {TAKE}},
    "service-states": {"machine-role": {TAKE}},
    "service-states-for-others": {},
    # The topic of notifications keeps what an endpoint did not take; no other topic may.
    "service-sns": {"notifications-dead-letters": {SEND}},
    "service-sns-for-others": {},
    "service-events-for-the-topic": {},
    "builder-host": {
        "build-role": {TAKE},
        "vendor-role": {TAKE},
        "source-role": {TAKE, TAG},
        "other-source": {TAKE},
    },
    "builder-host-of-others": {},
    "mighty-dispatch-job": {
        "root-key": {"kms:Sign", "kms:ScheduleKeyDeletion"},
        **TOPIC_KEYS,
        "vendor-elsewhere": {"kms:Decrypt", "kms:Sign", "kms:GetPublicKey"},
    },
    **dict.fromkeys(("bare-dispatch-job", "vendor-stranger"), {}),
    # The policies of some resources deny an administrator too: signing, pushing images, orders, roles, credentials.
    "vendor-admin": {
        "rows": {READ, WRITE, "dynamodb:DeleteTable"},
        "app-rows": {WRITE},
        **SESSIONS,
        "session-rows-beside": {READ},
        "tokens": {READ},
        "tokens-given-back": {WRITE, UPDATE},
        **dict.fromkeys(("grant-rows", "grant-rows-beside"), {READ, WRITE, REMOVE}),
        **dict.fromkeys(
            ("reports", "later-reports", "next-queue", "orders-alike", "dispatch-queue", "grants-queue", *DEAD_LETTERS),
            {SEND, "sqs:PurgeQueue", *TAKEN, *MADE},
        ),
        **dict.fromkeys(("notifications", "alarms"), TOPIC),
        **TOPIC_KEYS,
        **dict.fromkeys(("build-queue", "orders"), {"sqs:PurgeQueue", *MADE}),
        **OPEN_QUEUES,
        "source-role": {TAKE, TAG},
        "other-source": {TAKE},
        "registry": {PULL, "ecr:BatchDeleteImage", "ecr:DeleteRepository"},
        "root-key": {"kms:ScheduleKeyDeletion"},
        "versions": {GET_OBJECT, DELETE_OBJECT},
        "sources": {GET_OBJECT, DELETE_OBJECT},
        "vendor-objects": {GET_OBJECT, DELETE_OBJECT},
        "vendor-secret": {"secretsmanager:GetSecretValue"},
        **dict.fromkeys(("machine", "step-machine"), {"states:StartExecution", "states:DeleteStateMachine"}),
        "execution": {"states:DescribeExecution", "states:StopExecution"},
        **{f"log-of-{name}": {"logs:PutLogEvents", "logs:DeleteLogStream"} for name in FUNCTIONS},
        **{f"function-{name}": {INVOKE, "lambda:UpdateFunctionCode"} for name in FUNCTIONS},
        **dict.fromkeys(("new-mapping-of-reports", "new-mapping-of-others"), {MAP}),
        "mapping-of-reports": {"lambda:UpdateEventSourceMapping", "lambda:DeleteEventSourceMapping"},
        "build-group": {"autoscaling:SetDesiredCapacity", "autoscaling:UpdateAutoScalingGroup"},
        "source-credential": {"secretsmanager:PutSecretValue"},
        "vendor-bucket": {LIST, "s3:DeleteBucket"},
        "vendor-elsewhere": ELSEWHERE,
        "vendor-role": {TAKE, "iam:PassRole", "iam:PutRolePolicy", SIMULATE},
    },
}

RUNNER = {
    "orders": TAKEN,
    "open-orders": {RECEIVE},
    "reports": {SEND},
    "open-reports": {SEND},
    "mode-role": {TAKE},
    "open-mode-role": {TAKE},
    "stack": {"cloudformation:DescribeStacks"},
    "runner-group": {"autoscaling:CompleteLifecycleAction"},
    **dict.fromkeys(("audit", "logs"), {GET_OBJECT, PUT_OBJECT}),
    "record": {PUT_OBJECT},
    "locked": {GET_OBJECT, PUT_OBJECT, DELETE_OBJECT},
    # The customer's policies and approvals are read as they are, and written by nobody of the install.
    "policies": {GET_OBJECT},
    "approvals": {GET_OBJECT},
    "audit-list": {LIST},
    "plans": {PUT_OBJECT},
    "repository": {PUSH, PULL},
    **KEY,
    "secret": {"secretsmanager:GetSecretValue"},
    "app-secret": {"secretsmanager:GetSecretValue"},
}
CUSTOMER = {
    "runner": {**RUNNER, "lock": {LOCK}},
    # Its stack has `AuditLock=none`.
    "lockless-runner": RUNNER,
    # While EnableRunner is false: the last reports and audit records, for which it reads the records before them, its
    # stack, and the release of its machine.
    "killed-runner": {
        "reports": {SEND},
        "open-reports": {SEND},
        "stack": {"cloudformation:DescribeStacks"},
        "runner-group": {"autoscaling:CompleteLifecycleAction"},
        "audit": {GET_OBJECT, PUT_OBJECT},
        "audit-list": {LIST},
        "key-by-s3": {"kms:Decrypt"},
        **dict.fromkeys(("locked", "logs", "plans", "record"), {PUT_OBJECT}),
        "lock": {LOCK},
    },
    "killed-wide-runner": {
        **dict.fromkeys(("reports", "open-orders", "open-reports"), {SEND}),
        "stack": {"cloudformation:DescribeStacks"},
        "runner-group": {"autoscaling:CompleteLifecycleAction"},
        "audit": {GET_OBJECT, PUT_OBJECT},
        "audit-list": {LIST},
        "key-by-s3": {"kms:Decrypt"},
        **dict.fromkeys(("locked", "logs", "plans", "record", "open-record", "state", "open-state"), {PUT_OBJECT}),
        **dict.fromkeys(("lock", "lock-of-a-state"), {LOCK}),
        "elsewhere": {SEND, PUT_OBJECT, "autoscaling:CompleteLifecycleAction", "cloudformation:DescribeStacks"},
    },
    "bare-mode": MODE,
    # What a teardown left behind is found by its tags.
    "bare-deprovision": {**MODE, "leftovers": {"tag:GetResources"}},
    "base-alone": MODE,
    "off-mode": {},
    "old-session": {},
    "bare-runner": {},
    "mighty-runner": {
        "open-mode-role": {TAKE, TAG},
        "mode-role": {TAKE},
        "their-role": {TAKE},
        **OPEN_ROLES,
        "orders": TAKEN,
        "reports": {SEND},
        **OPEN_QUEUES,
        "elsewhere": {SEND, RECEIVE, SET},
    },
    "host": {"open-mode-role": {TAKE, TAG}, "runner-role-elsewhere": {TAKE}, "their-role": {TAKE}, **OPEN_ROLES},
    "host-of-nothing": {"open-mode-role": {TAKE, TAG}, "their-role": {TAKE}, **OPEN_ROLES},
    # The vendor's policies allow a mode everything; the boundary leaves this.
    **dict.fromkeys(
        ("provision", "maintenance", "deprovision", "break-glass", "custom-support"),
        {
            **MODE,
            **CEILING,
            "plans": {PUT_OBJECT, DELETE_OBJECT},
        },
    ),
    # A mode beside a boundary of the company's makes no role, until somebody has read that this boundary has ours.
    "beside-company": {
        **MODE,
        **CEILING,
        "plans": {PUT_OBJECT, DELETE_OBJECT},
        "own-role": {"iam:PassRole"},
        "app-role": set(shared_account.PLAIN_ROLE),
    },
    # Then roles carry that boundary, and no other.
    "beside-company-that-has-ours": {
        **MODE,
        **CEILING,
        "plans": {PUT_OBJECT, DELETE_OBJECT},
        "own-role": {"iam:PassRole"},
        "own-role-of-company": set(shared_account.BOUND_ROLE),
        "app-role": set(shared_account.PLAIN_ROLE),
    },
    # A role that the app made has the same ceiling, and nothing of the bucket: no object even without its policy.
    "app-session": {
        **{kind: actions for kind, actions in CEILING.items() if kind not in BUCKET},
        "stack-role": {SIMULATE},
        "repository": {PULL},
        **KEY,
    },
    # The policies of the endpoints let the account reach itself, the vendor's two queues, and a few public objects.
    "inside": {
        **INSIDE,
        "program-by-endpoint": {GET_OBJECT},
        "packages-by-endpoint": {GET_OBJECT},
    },
    "inside-closed": INSIDE,
    "carried": dict.fromkeys(("layers-by-endpoint", "program-by-endpoint", "packages-by-endpoint"), {GET_OBJECT}),
    # The customer may do everything in the own account, except take the roles of the runner and of its modes.
    **dict.fromkeys(
        ("admin", "other", "former-runner"),
        {
            **OPEN_QUEUES,
            "audit-list": {LIST, LIST_VERSIONS},
            "other-list": {LIST},
            "state-list": {LIST, LIST_VERSIONS},
            "open-mode-role": {TAKE, TAG},
            **dict.fromkeys(("audit", "logs"), {GET_OBJECT, PUT_OBJECT, DELETE_OBJECT}),
            # Nobody writes a record again: the bucket's own policy says so.
            **dict.fromkeys(("record", "open-record"), {PUT_OBJECT}),
            **dict.fromkeys(("lock", "lock-of-a-state"), {LOCK}),
            "locked": {GET_OBJECT, PUT_OBJECT, DELETE_OBJECT, "s3:PutObjectTagging"},
            "leftovers": {"tag:GetResources", "tag:TagResources"},
            "state": {GET_OBJECT, PUT_OBJECT, "s3:PutObjectTagging"},
            "open-state": {GET_OBJECT, PUT_OBJECT},
            "bucket": {"s3:PutBucketPolicy", "s3:PutBucketObjectLockConfiguration"},
            "plans": {PUT_OBJECT, DELETE_OBJECT},
            "policies": {GET_OBJECT, GET_VERSION, PUT_OBJECT, DELETE_OBJECT, REPLICATE},
            "approvals": {GET_OBJECT, GET_VERSION, PUT_OBJECT, DELETE_OBJECT, REPLICATE, "s3:PutObjectTagging"},
            "repository": {PUSH, PULL, "ecr:DeleteRepository"},
            "key": {"kms:Decrypt", "kms:PutKeyPolicy"},
            "key-by-s3": {"kms:Decrypt"},
            "secret": {"secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"},
            "app-secret": {"secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"},
            "elsewhere": ELSEWHERE,
            "their-role": {TAKE, "iam:PassRole", "iam:PutRolePolicy", SIMULATE},
            "stack-role": {"iam:PassRole", "iam:PutRolePolicy", SIMULATE},
            "own-role": {"iam:CreateRole", "iam:PassRole"},
            "own-role-of-company": set(shared_account.BOUND_ROLE),
            "unbound-role": {"iam:DeleteRolePermissionsBoundary", *shared_account.BOUND_ROLE},
            **shared_account.EVERYTHING,
            "runner-machine": {"ec2:TerminateInstances", "ec2:ModifyInstanceAttribute"},
            "runner-group": {"autoscaling:UpdateAutoScalingGroup", "autoscaling:CompleteLifecycleAction"},
            "stack": {
                "cloudformation:UpdateStack",
                "cloudformation:DetectStackDrift",
                "cloudformation:DescribeStacks",
            },
        },
    ),
}
# Its role has the name of the install's runner, whom the bucket's own policy keeps from approvals and policies.
CUSTOMER["former-runner"] = {
    **CUSTOMER["former-runner"],
    **dict.fromkeys(("approvals", "policies"), {GET_OBJECT, GET_VERSION}),
}
# Roles that the app made beside a boundary of the company's which lacks ours: only the bucket's own policy limits them.
# So no mode makes any before somebody has read that boundary.
CUSTOMER["app-session-beside-company"] = {
    kind: actions for kind, actions in CUSTOMER["admin"].items() if kind not in BUCKET
}

# By kind of principal and kind of resource: the actions on resources of the same tenant, and of the same install where
# both have one.
PERMITTED = {**VENDOR, **CUSTOMER, "anonymous": {}}


def permitted(principal, resource):
    """Returns the actions on a resource that a principal has to be allowed."""
    same_tenant = principal.get("t") == resource["t"]
    same_install = principal.get("i") is None or resource["i"] is None or principal["i"] == resource["i"]
    near = principal.get("anywhere") or (same_tenant and same_install)
    return PERMITTED[principal["kind"]].get(resource["kind"], ()) if near else ()
