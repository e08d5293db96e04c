"""What the policies of the VPC endpoints let through: the account to itself, and a few objects of AWS."""

import policies
from templates import REGION, properties

# An account that is neither the vendor's nor the customer's: its credentials may be carried into the network.
STRANGER = "888888888888"
DOWNLOADS = "https://downloads.s3.eu-west-1.amazonaws.com/freehold-runner"
# By endpoint: an action, and what follows the region and the account in the ARN of something that it is about.
ENDPOINTS = {
    "SqsEndpoint": ("sqs:SendMessage", "queue"),
    "StsEndpoint": ("sts:AssumeRole", "role/inside"),
    "EcrApiEndpoint": ("ecr:DescribeImages", "repository/inside"),
    "EcrDockerEndpoint": ("ecr:BatchGetImage", "repository/inside"),
    "KmsEndpoint": ("kms:Decrypt", "key/inside"),
    "LogsEndpoint": ("logs:PutLogEvents", "log-group:inside:log-stream:x"),
    "SecretsEndpoint": ("secretsmanager:GetSecretValue", "secret:inside-AbCdEf"),
    "CloudFormationEndpoint": ("cloudformation:DescribeStacks", "stack/inside/1"),
    "AutoScalingEndpoint": ("autoscaling:SetDesiredCapacity", "autoScalingGroup:1:autoScalingGroupName/inside"),
    "IamEndpoint": ("iam:GetRole", "role/inside"),
    "S3Endpoint": ("s3:GetObject", "bucket-{}/x"),
}
ACTIONS = {action for action, _ in ENDPOINTS.values()}
QUEUES = ["sqs:SendMessage", "sqs:ReceiveMessage", "sqs:PurgeQueue"]
PUBLIC = ["s3:GetObject", "s3:PutObject"]
# Image layers of ECR, the runner's program, and packages.
OBJECTS = {
    f"prod-{REGION}-starport-layer-bucket/x": "layers",
    "downloads/freehold-runner": "program",
    f"al2023-repos-{REGION}-de612dc2/x": "packages",
}


def add_endpoints(account, template, evaluator, queues):
    """Adds who asks through the endpoints of an install, and what they ask about."""
    everything = [policies.EVERYTHING]
    for kind, number, parameters in (
        ("inside", account.number, {"RunnerUrl": DOWNLOADS}),
        ("inside-closed", account.number, {"RunnerUrl": "", "InstallPackages": "false"}),
        ("carried", STRANGER, {"RunnerUrl": DOWNLOADS}),
    ):
        on = evaluator("true", **parameters)
        account.add_principal(kind, kind, kind, everything, account=number)
        account.world.principals[f"{account.name}/{kind}"] |= {
            "by": "endpoint",
            # A stranger is equally far from every install.
            "anywhere": kind == "carried",
            "endpoints": {name: on.resolve(properties(template, name)["PolicyDocument"]) for name in ENDPOINTS},
        }
    for name, (action, path) in ENDPOINTS.items():
        for kind, number in (("own-by-endpoint", account.number), ("theirs-by-endpoint", STRANGER)):
            _add(account, f"{kind}-{name}", kind, name, _arn(action, number, path), [action], number)
    for kind, arn in queues.items():
        _add(account, f"{kind}-by-endpoint", "queue-by-endpoint", "SqsEndpoint", arn, QUEUES, arn.split(":")[4])
    # Whose account an access point belongs to; nobody says here whose the bucket is to which it leads.
    for number in (account.number, STRANGER):
        asked = [(action, {"s3:DataAccessPointAccount": number}) for action in PUBLIC]
        point = f"arn:aws:s3:{REGION}:{number}:accesspoint/inside/object/x"
        _add(account, f"access-point-{number}", "access-point-by-endpoint", "S3Endpoint", point, asked, number)
    for path, kind in OBJECTS.items():
        arn = f"arn:aws:s3:::{path}"
        _add(account, f"{kind}-by-endpoint", f"{kind}-by-endpoint", "S3Endpoint", arn, PUBLIC, STRANGER)


def _add(account, name, kind, endpoint, arn, actions, number):
    """Adds a resource that lets in the customer's account and the stranger's: only the endpoint's policy decides."""
    roots = [f"arn:aws:iam::{one}:root" for one in (account.number, STRANGER)]
    policy = policies.document(policies.allow("*", Principal={"AWS": roots}, Resource="*"))
    account.add_resource(name, kind, arn, actions, policy, account=number)
    account.world.resources[f"{account.name}/{name}"] |= {"by": "endpoint", "through": endpoint}


def _arn(action, number, path):
    service = action.split(":")[0]
    if service == "s3":
        return f"arn:aws:s3:::{path.format(number)}"
    if service in ("sts", "iam"):
        return f"arn:aws:iam::{number}:{path}"
    return f"arn:aws:{service}:{REGION}:{number}:{path}"
