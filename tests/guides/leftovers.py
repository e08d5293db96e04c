"""What is left in both accounts after the guides: nothing, except keys that wait for their deletion."""

from programs import CUSTOMER, VENDOR, Failed, Programs

# Service, operation, the list in its answer, and the name of a thing in it.
KINDS = [
    ("cloudformation", "describe_stacks", "Stacks", "StackName"),
    ("s3", "list_buckets", "Buckets", "Name"),
    ("ecr", "describe_repositories", "repositories", "repositoryName"),
    ("secretsmanager", "list_secrets", "SecretList", "Name"),
    ("iam", "list_roles", "Roles", "RoleName"),
    ("sqs", "list_queues", "QueueUrls", None),
    ("dynamodb", "list_tables", "TableNames", None),
    ("lambda", "list_functions", "Functions", "FunctionName"),
    ("logs", "describe_log_groups", "logGroups", "logGroupName"),
    ("stepfunctions", "list_state_machines", "stateMachines", "name"),
    ("apigatewayv2", "get_apis", "Items", "Name"),
    ("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
    ("sns", "list_topics", "Topics", "TopicArn"),
    ("events", "list_rules", "Rules", "Name"),
]


def check(endpoint):
    """Fails with the names of what is left."""
    programs = Programs()
    programs.endpoint = endpoint
    left = []
    for account in (VENDOR, CUSTOMER):
        for service, operation, field, name in KINDS:
            found = getattr(programs.client(service, account), operation)().get(field, [])
            left += [f"{account} {service} {thing[name] if name else thing}" for thing in found]
        kms = programs.client("kms", account)
        for key in kms.list_keys()["Keys"]:
            state = kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"]["KeyState"]
            if state != "PendingDeletion":
                left.append(f"{account} key {key['KeyId']} {state}")
    if left:
        raise Failed("the guides promise that nothing is left; these are: " + ", ".join(left))
