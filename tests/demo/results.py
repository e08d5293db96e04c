"""Shows what the demo's deploy made and left alone, and fails when that is not as it has to be."""

import json
import subprocess

from botocore.exceptions import ClientError

from programs import BIN, CUSTOMER, INSTALL, TENANT, VENDOR, Failed


def show_resources(programs):
    stacks = programs.client("cloudformation", CUSTOMER).describe_stacks()["Stacks"]
    for stack in sorted(stacks, key=lambda stack: stack["StackName"]):
        print(f"stack   {stack['StackName']}  {stack['StackStatus']}")
    for bucket in programs.client("s3", CUSTOMER).list_buckets()["Buckets"]:
        print(f"bucket  {bucket['Name']}")
    queues = programs.client("sqs", CUSTOMER).list_queues().get("QueueUrls", [])
    for queue in queues:
        print(f"queue   {queue.rsplit('/', 1)[1]}")
    if f"{TENANT}--{INSTALL}--storage" not in [stack["StackName"] for stack in stacks] or not queues:
        raise Failed("the app's stack or its queue is missing")


def show_digests(programs):
    """Shows that each artifact is in both registries."""
    both = _digests(programs, f"fh-{TENANT}", VENDOR) & _digests(programs, f"fh-{TENANT}/{INSTALL}", CUSTOMER)
    for component in _components(programs):
        digest = component["artifact"]
        place = "tenant and install" if digest in both else "NOT in both"
        print(f"{component['component']:<12}{digest}  {place}")
        if digest not in both:
            raise Failed(f"artifact `{digest}` is not in both registries")


def show_lineage(programs):
    """Shows that the lineage of each artifact holds, checked without a network by the key in the customer's stack."""
    [stack] = programs.client("cloudformation", CUSTOMER).describe_stacks(StackName=f"freehold-{TENANT}--{INSTALL}")[
        "Stacks"
    ]
    key = next(output["OutputValue"] for output in stack["Outputs"] if output["OutputKey"] == "TenantKey")
    components, count = _components(programs), 0
    for component in components:
        links = _verified_links(programs, component["component"], key)
        print(f"{component['component']:<12}{component['artifact']}  {len(links)} links are valid")
        count += len(links)
    print(f"{count} links of {len(components)} artifacts, all under root key {key}")


def show_last_job(programs, expected):
    """Shows the log of the action, and that the deploy touched only `expected`, which depends on the changed input."""
    workflow = programs.freehold_json("workflow", "list", INSTALL)[0]["workflow"]
    deploy = programs.freehold_json("workflow", "show", workflow)
    if deploy["state"] != "succeeded":
        raise Failed(f"the deploy ended {deploy['state']}")
    touched = sorted(node["name"] for node in deploy["nodes"])
    if touched != expected:
        raise Failed(f"the deploy touched {touched} instead of {expected}")
    programs.freehold("job", "logs", next(n["job"] for n in deploy["nodes"] if n["name"] == "action:health-check"))


def show_access(programs):
    """Shows that the install's runner reads its orders queue, and that no other principal does."""
    queue = programs.client("sqs", VENDOR).get_queue_url(QueueName=f"fh-{TENANT}--{INSTALL}.fifo")["QueueUrl"]
    stranger = {"aws_access_key_id": "333333333333", "aws_secret_access_key": "x"}
    for name, expected, credentials in (
        (
            f"{CUSTOMER} fh-{TENANT}--{INSTALL}--runner",
            True,
            programs.assume(CUSTOMER, f"fh-{TENANT}--{INSTALL}--runner"),
        ),
        (f"{VENDOR} fh-{TENANT}--build-runner", False, programs.assume(VENDOR, f"fh-{TENANT}--build-runner")),
        (f"{CUSTOMER} another role", False, _another_role(programs)),
        ("333333333333 anybody", False, stranger),
    ):
        allowed = _may_receive(programs.client("sqs", VENDOR, credentials), queue)
        print(f"{name:<38}{'may' if allowed else 'may not'}")
        if allowed != expected:
            raise Failed(f"{name} {'may' if allowed else 'may not'} read the orders queue")


def _components(programs):
    return programs.freehold_json("install", "show", INSTALL)["components"]


def _digests(programs, repository, account):
    pages = programs.client("ecr", account).get_paginator("list_images").paginate(repositoryName=repository)
    return {image["imageDigest"] for page in pages for image in page["imageIds"]}


def _verified_links(programs, component, key):
    bundle = programs.files / f"{component}.lineage.json"
    programs.freehold_quietly("lineage", "--install", INSTALL, "--component", component, "--bundle", bundle)
    done = subprocess.run(
        [str(BIN / "freehold"), "lineage", "verify", str(bundle), "--root-key", key, "--json"],
        env={},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise Failed(f"the lineage of `{component}` failed verification: {done.stderr.strip()}")
    links = json.loads(done.stdout)["checked"]["links"]
    if not links or not all(link["ok"] for link in links):
        raise Failed(f"the lineage of `{component}` has a link that failed verification")
    return links


def _may_receive(sqs, queue):
    try:
        sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=0, VisibilityTimeout=0)
    except ClientError as error:
        if "AccessDenied" not in error.response["Error"]["Code"]:
            raise
        return False
    return True


def _another_role(programs):
    """Returns the credentials of a role in the customer's account that may do everything with queues."""
    iam, name = programs.client("iam", CUSTOMER), "somebody"
    trust = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{CUSTOMER}:root"}, "Action": "sts:AssumeRole"}
    queues = {"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}
    try:
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=_document(trust))
    except ClientError as error:
        if error.response["Error"]["Code"] != "EntityAlreadyExists":
            raise
    iam.put_role_policy(RoleName=name, PolicyName="everything", PolicyDocument=_document(queues))
    return programs.assume(CUSTOMER, name)


def _document(statement):
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})
