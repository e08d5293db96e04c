"""What else is in a customer's account: what the app made, what the customer has, and neighbours with similar names."""

import policies

# What is asked about code and machines, by the kind of resource in its ARN.
CODE = {
    "lambda": ("function:{}", ["UpdateFunctionCode", "UpdateFunctionConfiguration", "AddPermission"]),
    "codebuild": ("project/{}", ["StartBuild", "RetryBuild", "StartSandbox", "UpdateProject"]),
    "ecs": ("task-definition/{}:1", ["RunTask", "StartTask"]),
    "glue": ("job/{}", ["StartJobRun", "UpdateJob", "UpdateJobFromSourceControl"]),
    "states": ("stateMachine:{}", ["UpdateStateMachine"]),
    "eks": (
        "cluster/{}",
        ["CreateAccessEntry", "CreateAddon", "CreateNodegroup", "AssociateIdentityProviderConfig"],
    ),
    "elasticmapreduce": ("cluster/{}", ["AddJobFlowSteps"]),
    "sagemaker": ("notebook-instance/{}", ["CreatePresignedNotebookInstanceUrl", "UpdateNotebookInstance"]),
    "apprunner": ("service/{0}/{0}", ["UpdateService"]),
    "kinesisanalytics": ("application/{}", ["UpdateApplication"]),
    "airflow": ("environment/{}", ["CreateCliToken", "UpdateEnvironment"]),
    "transfer": ("user/s-1/{}", ["ImportSshPublicKey"]),
    "amplify": ("apps/{}", ["UpdateApp"]),
    "ecr": ("repository/{}", ["PutImage"]),
    "emr-containers": ("/virtualclusters/{}", ["StartJobRun"]),
}
MORE_CODE = (
    ("ecs", "task/{0}/{0}", ["ExecuteCommand"]),
    ("ecs", "service/{0}/{0}", ["UpdateService", "UpdateExpressGatewayService"]),
    # The agent of a machine that is a cluster's gets the credentials of its tasks.
    ("ecs", "cluster/{}", ["RegisterContainerInstance"]),
    ("glue", "session/{}", ["RunStatement"]),
    ("glue", "devEndpoint/{}", ["UpdateDevEndpoint"]),
    ("eks", "access-entry/{0}/role/1/{0}/1", ["UpdateAccessEntry", "AssociateAccessPolicy"]),
    ("batch", "job-queue/{}", ["SubmitJob"]),
    ("batch", "compute-environment/{}", ["UpdateComputeEnvironment"]),
    ("sagemaker", "pipeline/{}", ["UpdatePipeline"]),
    ("ec2", "launch-template/lt-{}", ["CreateLaunchTemplateVersion", "ModifyLaunchTemplate"]),
)
# A product of Service Catalog is made with the role that its launch constraint names.
PRODUCT = [
    "servicecatalog:ProvisionProduct",
    "servicecatalog:CreateProvisioningArtifact",
    # It also gives a product tags, and among them the owner's.
    "servicecatalog:UpdateProduct",
]
MACHINE = [
    "ssm:SendCommand",
    "ssm:StartSession",
    "ec2-instance-connect:SendSSHPublicKey",
    "ec2:ModifyInstanceAttribute",
    "ec2:AssociateIamInstanceProfile",
    "ec2:ReplaceIamInstanceProfileAssociation",
    "ec2:CreateReplaceRootVolumeTask",
]
# What no mode may ask of Systems Manager: commands to every machine that matches, now and later.
STANDING = {
    "association/1": ["CreateAssociation", "StartAssociationsOnce", "UpdateAssociation"],
    "maintenancewindow/1": [
        "RegisterTargetWithMaintenanceWindow",
        "RegisterTaskWithMaintenanceWindow",
        "UpdateMaintenanceWindowTask",
    ],
    "*": ["CreateActivation"],
}
# A session of somebody else, which no tag makes the install's.
SESSION = ["ssm:ResumeSession"]
# What lends a role, or membership of those who have one, where no tag says whose resource it is.
LENT = {
    "cloud9": ("environment:1", ["CreateEnvironmentMembership"]),
    "codecommit": ("theirs", ["GitPush", "CreateCommit"]),
    "deadline": ("farm/farm-1/queue/queue-1", ["AssumeQueueRoleForUser"]),
    "fis": ("experiment-template/EXT1", ["UpdateExperimentTemplate"]),
    "imagebuilder": ("image/theirs/1.0.0/1", ["CreateImage"]),
    # A certificate that has a policy takes the role of an alias.
    "iot": ("cert/1", ["AttachPolicy", "AttachPrincipalPolicy", "AttachThingPrincipal"]),
}
LENT_ELSEWHERE = {
    "arn:aws:identitystore:::group/1": ["identitystore:CreateGroupMembership"],
    "*": ["iot:RegisterThing"],
}
CLAIM = "iot:CreateProvisioningClaim"
# A second name of a bucket, which no statement about the bucket knows.
ACCESS_POINT = ["s3:CreateAccessPoint", "s3:CreateAccessPointForObjectLambda", "s3:CreateMultiRegionAccessPoint"]
# What lets the certificates of an authority take roles.
TRUST_ANCHORS = {"*": "rolesanywhere:CreateTrustAnchor", "trust-anchor/1": "rolesanywhere:UpdateTrustAnchor"}
# A sandbox of CodeBuild has the role of its project and no tags, so no mode sends a command to one.
SANDBOX = ["codebuild:StartCommandExecution", "codebuild:StartSandboxConnection"]
# What has IAM Identity Center make roles in an account, by a role of its own service.
PERMISSION_SET = ["sso:CreateAccountAssignment", "sso:ProvisionPermissionSet"]
# The ways in which a role can come to be: by its maker, or by a service that works with its maker's rights.
VIA = ({}, *({"aws:CalledVia": [f"{service}.amazonaws.com"]} for service in ("cloudformation", "cloudcontrolapi")))
STACK = [
    "CancelUpdateStack",
    "CreateChangeSet",
    "CreateStack",
    "DeleteChangeSet",
    "DeleteStack",
    "ExecuteChangeSet",
    "RollbackStack",
    "SetStackPolicy",
    "TagResource",
    "UntagResource",
    "UpdateStack",
    "UpdateTerminationProtection",
]
STACK = [f"cloudformation:{action}" for action in STACK]
# What no mode may ask of CloudFormation anywhere: extensions run code under roles of their own.
EXTENSIONS = [
    f"cloudformation:{action}" for action in ("ActivateType", "DeactivateType", "DeregisterType", "PublishType")
]
STACK_SETS = ["cloudformation:ImportStacksToStackSet", "cloudformation:UpdateStackSet"]
PLAIN_ROLE = ["iam:DeleteRole", "iam:TagRole", "iam:UpdateAssumeRolePolicy", "iam:PassRole"]
BOUND_ROLE = ["iam:AttachRolePolicy", "iam:CreateRole", "iam:PutRolePermissionsBoundary", "iam:PutRolePolicy"]
OPEN_ROLE = ["sts:AssumeRole"]
POLICY = ["iam:CreatePolicy", "iam:SetDefaultPolicyVersion"]
PROFILE = ["iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile"]
PROVIDER = [
    "iam:AddClientIDToOpenIDConnectProvider",
    "iam:CreateOpenIDConnectProvider",
    "iam:DeleteOpenIDConnectProvider",
    "iam:RemoveClientIDFromOpenIDConnectProvider",
    "iam:UpdateOpenIDConnectProviderThumbprint",
]
# Reads are permitted whoever has the provider: a module may read the one of a cluster of the customer's.
PROVIDER_READS = ["iam:GetOpenIDConnectProvider", "iam:ListOpenIDConnectProviderTags"]
USER = [
    "iam:AttachUserPolicy",
    "iam:CreateAccessKey",
    "iam:CreateLoginProfile",
    "iam:CreateUser",
    "iam:EnableMFADevice",
    "iam:PutUserPolicy",
]
TAGGING = ["ec2:CreateTags", "ecs:TagResource", "lambda:TagResource", "sagemaker:AddTags"]
# Services that ask for these when something is made, too.
FENCED = {
    "batch": ("job-queue/{}", ["TagResource", "UntagResource"]),
    "eks": ("cluster/{}", ["TagResource", "UntagResource"]),
    "elasticmapreduce": ("cluster/{}", ["AddTags", "RemoveTags"]),
    "glue": ("job/{}", ["TagResource", "UntagResource"]),
    "states": ("stateMachine:{}", ["TagResource", "UntagResource"]),
    "airflow": ("environment/{}", ["TagResource", "UntagResource"]),
    "amplify": ("apps/{}", ["TagResource", "UntagResource"]),
    "apprunner": ("service/{0}/{0}", ["TagResource", "UntagResource"]),
    "ecr": ("repository/{}", ["TagResource", "UntagResource"]),
    "emr-containers": ("/virtualclusters/{}", ["TagResource", "UntagResource"]),
    "kinesisanalytics": ("application/{}", ["TagResource", "UntagResource"]),
    "transfer": ("user/s-1/{}", ["TagResource", "UntagResource"]),
    "iam": ("oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/{}", ["TagOpenIDConnectProvider"]),
}
FENCED_TAGGING = {f"{service}:{action}" for service, (_, actions) in FENCED.items() for action in actions}
OUTSIDE = ["ssm:SendCommand", "ssm:StartSession", "ssm:AddTagsToResource"]
ALL_CODE = [
    *(f"{service}:{action}" for service, (_, actions) in CODE.items() for action in actions),
    *(f"{service}:{action}" for service, _, actions in MORE_CODE for action in actions),
    *MACHINE,
    *PRODUCT,
]
# Whatever somebody who may do everything in the account may do with these.
EVERYTHING = {
    **dict.fromkeys(("app-code", "their-code"), set(ALL_CODE)),
    **dict.fromkeys(("app-stack", "their-stacks"), {*STACK, "cloudformation:GetTemplate"}),
    "extensions": set(EXTENSIONS),
    "stack-sets": set(STACK_SETS),
    **dict.fromkeys(("app-role", "their-admin-role"), {*PLAIN_ROLE, *BOUND_ROLE}),
    **dict.fromkeys(("app-role-open", "their-role-open"), set(OPEN_ROLE)),
    **dict.fromkeys(("app-policy", "their-policy"), set(POLICY)),
    **dict.fromkeys(("app-profile", "their-profile"), set(PROFILE)),
    **dict.fromkeys(("cluster-provider", "cluster-provider-of-theirs", "their-provider"), {*PROVIDER, *PROVIDER_READS}),
    **dict.fromkeys(("untagged", "tagged-by-others", "tagged-by-app"), FENCED_TAGGING),
    "outside": set(OUTSIDE),
    "their-user": set(USER),
    **dict.fromkeys(("tag-of-ours", "tag-of-theirs", "tag-at-birth", "app-tag"), set(TAGGING)),
    "their-document": {"ssm:SendCommand"},
    "access-point": set(ACCESS_POINT),
    "permission-set": set(PERMISSION_SET),
    "trust-anchor": set(TRUST_ANCHORS.values()),
    "sandbox": set(SANDBOX),
    "standing": {f"ssm:{action}" for actions in STANDING.values() for action in actions},
    "session": set(SESSION),
    "lent": {
        *(f"{service}:{action}" for service, (_, actions) in LENT.items() for action in actions),
        *(action for actions in LENT_ELSEWHERE.values() for action in actions),
        CLAIM,
    },
}
# What of it is left to a mode and to a role of the app: what the install made, and reads.
CEILING = {
    "app-code": EVERYTHING["app-code"],
    "app-stack": EVERYTHING["app-stack"],
    "their-stacks": {"cloudformation:GetTemplate"},
    "app-role": EVERYTHING["app-role"],
    "app-role-open": set(OPEN_ROLE),
    "app-policy": set(POLICY),
    "app-profile": set(PROFILE),
    "cluster-provider": {*PROVIDER, *PROVIDER_READS},
    "their-provider": set(PROVIDER_READS),
    "tag-of-theirs": set(TAGGING),
    "tag-at-birth": {"ec2:CreateTags", "ecs:TagResource", "sagemaker:AddTags"},
    **dict.fromkeys(("untagged", "tagged-by-app"), FENCED_TAGGING),
    "cluster-provider-of-theirs": {"iam:CreateOpenIDConnectProvider", *PROVIDER_READS},
    "app-tag": set(TAGGING),
    "their-document": {"ssm:SendCommand"},
}


class SharedAccount:
    """The account of `owner`, an install's `<tenant>--<install>`, whose boundary has the ARN `boundary`."""

    def __init__(self, account, owner, boundary):
        self.account, self.owner = account, owner
        self.bound = {"iam:PermissionsBoundary": boundary}
        self.tag = "aws:ResourceTag/freehold:owner"
        # Names that begin alike, of another install of the same tenant and of another tenant.
        self.neighbours = (f"{owner}-eu", f"{owner.replace('--', '-x--')}")

    def add(self):
        self.add_code()
        self.add_lent_roles()
        self.add_second_names()
        self.add_stacks()
        self.add_roles()
        self.add_other_iam()
        self.add_tags()

    def asked(self, actions, context):
        return [(action, context) for action in actions]

    def add_code(self):
        owners = [("app", "app-code", {self.tag: self.owner}), ("their", "their-code", {})]
        owners += [(f"next{at}", "their-code", {self.tag: name}) for at, name in enumerate(self.neighbours)]
        every = [(service, resource, actions) for service, (resource, actions) in CODE.items()] + list(MORE_CODE)
        for whose, kind, tags in owners:
            for service, resource, actions in every:
                arn = self.account.arn(service, resource.format(whose))
                name = f"{whose}-{service}-{actions[0]}"
                self.account.add_resource(name, kind, arn, self.asked([f"{service}:{a}" for a in actions], tags))
            machine = self.account.arn("ec2", f"instance/i-{whose}")
            self.account.add_resource(f"{whose}-shell", kind, machine, self.asked(MACHINE, tags))
            product = self.account.arn("catalog", f"product/prod-{whose}")
            self.account.add_resource(f"{whose}-product", kind, product, self.asked(PRODUCT, tags))
        # A document has no tag of the install's; the machine decides.
        document = self.account.arn("ssm", "document/run")
        self.account.add_resource("document", "their-document", document, ["ssm:SendCommand"])
        for resource, actions in STANDING.items():
            arn = resource if resource == "*" else self.account.arn("ssm", resource)
            self.account.add_resource(f"standing-{resource}", "standing", arn, [f"ssm:{action}" for action in actions])
        self.account.add_resource("session", "session", self.account.arn("ssm", "session/theirs-1"), SESSION)

    def add_lent_roles(self):
        """Adds what gives the roles of others away, also when its request has the install's tag."""
        own = {self.tag: self.owner}
        for service, (resource, actions) in LENT.items():
            asked = [(f"{service}:{action}", tags) for action in actions for tags in ({}, own)]
            self.account.add_resource(f"lent-{service}", "lent", self.account.arn(service, resource), asked)
        for resource, actions in LENT_ELSEWHERE.items():
            self.account.add_resource(f"lent-{actions[0]}", "lent", resource, actions)
        template = self.account.arn("iot", "provisioningtemplate/theirs")
        self.account.add_resource("lent-claim", "lent", template, [CLAIM])

    def add_second_names(self):
        """Adds access points, and what gives people roles in the account."""
        arns = [self.account.arn(service, "accesspoint/x") for service in ("s3", "s3-object-lambda")]
        arns.append(f"arn:aws:s3::{self.account.number}:accesspoint/x.mrap")
        for at, (arn, action) in enumerate(zip(arns, ACCESS_POINT, strict=True)):
            self.account.add_resource(f"access-point-{at}", "access-point", arn, [action])
        instance = "ssoins-0123456789abcdef"
        permission_set = f"arn:aws:sso:::permissionSet/{instance}/ps-0123456789abcdef"
        self.account.add_resource("permission-set", "permission-set", permission_set, PERMISSION_SET)
        for resource, action in TRUST_ANCHORS.items():
            arn = resource if resource == "*" else self.account.arn("rolesanywhere", resource)
            self.account.add_resource(action, "trust-anchor", arn, [action])
        sandbox = self.account.arn("codebuild", "sandbox/x:1")
        self.account.add_resource("sandbox", "sandbox", sandbox, SANDBOX)

    def add_stacks(self):
        reads = ["cloudformation:GetTemplate"]
        stacks = ["CDKToolkit", "StackSet-prod-1", "globex-prod-storage", *(f"{n}--storage" for n in self.neighbours)]
        for kind, name in [("app-stack", f"{self.owner}--storage"), *(("their-stacks", name) for name in stacks)]:
            arn = self.account.arn("cloudformation", f"stack/{name}/1")
            self.account.add_resource(f"stack-{name}", kind, arn, STACK + reads)
        self.account.add_resource("extensions", "extensions", "*", EXTENSIONS)
        self.account.add_resource("sets", "stack-sets", self.account.arn("cloudformation", "stackset/x:1"), STACK_SETS)

    def add_roles(self):
        ours = [f"freehold/{self.owner}/api", f"{self.owner}--api"]
        theirs = [
            "cdk-hnb659fds-cfn-exec-role",
            "stacksets-exec-1",
            "prod-eu-deploy",
            # A wildcard of a pattern also matches a colon in a path.
            f"freehold/x:role/freehold/{self.owner}/api",
            f"x:role/{self.owner}--api",
            f"freehold/{self.owner}/x:role/{self.owner}--api",
            *(f"freehold/{name}/api" for name in self.neighbours),
            *(f"{name}--api" for name in self.neighbours),
        ]
        trust = policies.open_to_account(self.account.number, "sts:*")
        roles = [("app-role", name) for name in ours] + [("their-admin-role", name) for name in theirs]
        for kind, name in roles:
            arn = self.account.role_arn(name)
            actions = PLAIN_ROLE + self.asked(BOUND_ROLE, self.bound)
            self.account.add_resource(f"role-{name}", kind, arn, actions)
            other = {"iam:PermissionsBoundary": "arn:aws:iam::aws:policy/AdministratorAccess"}
            contexts = [{**boundary, **via} for via in VIA for boundary in ({}, other)]
            unbound = [asked for context in contexts for asked in self.asked(BOUND_ROLE, context)]
            self.account.add_resource(f"role-{name}-unbound", "unbound-role", arn, unbound)
            is_open = kind.replace("their-admin-role", "their-role") + "-open"
            self.account.add_resource(f"role-{name}-open", is_open, arn, OPEN_ROLE, trust)

        # The roles of an install whose name begins like this one's.
        changes = ["iam:PassRole", "iam:PutRolePolicy", "iam:SimulatePrincipalPolicy"]
        next_role = self.account.role_arn(f"fh-{self.neighbours[0]}--provision")
        self.account.add_resource("next-role-to-change", "their-role", next_role, changes)

    def add_other_iam(self):
        def arn(resource):
            return f"arn:aws:iam::{self.account.number}:{resource}"

        for resource, name, actions in (("policy", "policy", POLICY), ("instance-profile", "profile", PROFILE)):
            for at, path in enumerate((f"freehold/{self.owner}/x", f"{self.owner}--x")):
                self.account.add_resource(f"app-{name}-{at}", f"app-{name}", arn(f"{resource}/{path}"), actions)
            paths = ["x", *(f"freehold/{n}/x" for n in self.neighbours), *(f"{n}--x" for n in self.neighbours)]
            for at, path in enumerate(paths):
                self.account.add_resource(f"their-{name}-{at}", f"their-{name}", arn(f"{resource}/{path}"), actions)
        cluster = arn("oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/A1")
        own = {"aws:ResourceTag/freehold:install": self.account.name}
        calls = PROVIDER + PROVIDER_READS
        self.account.add_resource("cluster-provider", "cluster-provider", cluster, self.asked(calls, own))
        theirs, name = arn("oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/B2"), "cluster-provider-of-theirs"
        self.account.add_resource(name, name, theirs, calls)
        of_next = {"aws:ResourceTag/freehold:install": f"{self.account.name}-eu"}
        self.account.add_resource(f"{name}-next-door", name, theirs, self.asked(calls, of_next))
        # An install of another vendor may have the same name; its owner is another. A new provider has no tags yet.
        own_with_owner, of_namesake = ({**own, self.tag: owner} for owner in (self.owner, self.neighbours[1]))
        with_owner = self.asked(calls, own_with_owner)
        self.account.add_resource("cluster-provider-with-owner", "cluster-provider", cluster, with_owner)
        existing = [call for call in calls if not call.startswith("iam:Create")]
        self.account.add_resource(f"{name}-namesake", name, theirs, self.asked(existing, of_namesake))
        for at, issuer in enumerate(
            (
                "token.actions.githubusercontent.com",
                "oidc.eks.evil.example",
                "oidc.eks.us-east-1.amazonaws.com/id/A1",
                "oidc.eks.eu-west-1.amazonaws.com.evil.example/id/A1",
            )
        ):
            provider = arn(f"oidc-provider/{issuer}")
            self.account.add_resource(f"their-provider-{at}", "their-provider", provider, self.asked(calls, own))
        # A path of IAM may have colons, and a wildcard of a pattern also matches them.
        number = self.account.number
        paths = ("x:role/", f"x:iam::{number}:role/", f"x:iam::{number}:role/freehold/{self.owner}/", "x:policy/")
        names = ["x", *(f"{path}{self.owner}--y" for path in paths)]
        for at, name in enumerate(names):
            self.account.add_resource(f"their-user-{at}", "their-user", arn(f"user/{name}"), USER)

    def add_tags(self):
        """Adds what would make something the install's, or change something that is."""
        mark, plain = {"aws:TagKeys": ["freehold:owner"]}, {"aws:TagKeys": ["Name"]}
        ours = {self.tag: self.owner}
        for name, kind, context in (
            ("ours", "tag-of-ours", mark),
            ("neighbours", "tag-of-ours", {**mark, self.tag: self.neighbours[0]}),
            ("theirs", "tag-of-theirs", plain),
            ("beside", "tag-of-ours", {"aws:TagKeys": ["Name", "freehold:owner"]}),
            ("own", "app-tag", {**mark, **ours}),
        ):
            machine, function = self.account.arn("ec2", "instance/i-9"), self.account.arn("lambda", "function:nine")
            service = self.account.arn("ecs", "service/nine/nine")
            self.account.add_resource(f"tag-{name}-ec2", kind, machine, [("ec2:CreateTags", context)])
            self.account.add_resource(f"tag-{name}-ecs", kind, service, [("ecs:TagResource", context)])
            self.account.add_resource(f"tag-{name}-lambda", kind, function, [("lambda:TagResource", context)])
            notebook = self.account.arn("sagemaker", "notebook-instance/nine")
            self.account.add_resource(f"tag-{name}-sagemaker", kind, notebook, [("sagemaker:AddTags", context)])
        for service, resource, action, made_by in (
            ("ec2", "instance/i-10", "CreateTags", "RunInstances"),
            ("ecs", "service/ten/ten", "TagResource", "CreateService"),
            ("sagemaker", "notebook-instance/ten", "AddTags", "CreateNotebookInstance"),
        ):
            key = "TaggingAction" if service == "sagemaker" else "CreateAction"
            birth, arn = {**mark, f"{service}:{key}": made_by}, self.account.arn(service, resource)
            self.account.add_resource(f"tag-at-birth-{service}", "tag-at-birth", arn, [(f"{service}:{action}", birth)])
        owners = [("untagged", {}), ("tagged-by-others", {self.tag: "customer"})]
        owners += [("tagged-by-others", {self.tag: name}) for name in self.neighbours]
        owners += [("tagged-by-app", ours)]
        for at, (kind, tags) in enumerate(owners):
            for service, (resource, actions) in FENCED.items():
                arn = self.account.arn(service, resource.format(at))
                arn = f"arn:aws:iam::{self.account.number}:{resource.format(at)}" if service == "iam" else arn
                names = [f"{service}:{action}" for action in actions]
                asked = [one for keys in (mark, plain) for one in self.asked(names, {**keys, **tags})]
                self.account.add_resource(f"fenced-{at}-{service}", kind, arn, asked)
        outside = self.account.arn("ssm", "managed-instance/mi-1")
        self.account.add_resource("outside", "outside", outside, self.asked(OUTSIDE, ours))
