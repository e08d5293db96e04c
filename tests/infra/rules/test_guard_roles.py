"""Guard rules for roles: wildcards for the roles that may be taken, and boundaries that are missing or weak."""

import json

import guard
import templates
from guard_case import GuardCase, base, runners
from templates import properties

ANY_ROLE = {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/fh-*"}


class RolesAndBoundaries(GuardCase):
    def test_a_wildcard_for_the_roles_that_may_be_taken_is_found(self):
        def takes(action, resource):
            return {"Effect": "Allow", "Action": action, **resource}

        for statement in (
            takes("sts:AssumeRole", {"Resource": ANY_ROLE}),
            takes(["s3:GetObject", "STS:assumerole"], {"Resource": "*"}),
            takes("sts:AssumeRole", {"Resource": ["arn:aws:iam::1:role/a", "arn:aws:iam::1:role/?"]}),
            takes("sts:AssumeRole", {"NotResource": "arn:aws:iam::1:role/a"}),
            takes("sts:AssumeRole", {"Resource": {"Fn::Join": ["", ["*"]]}}),
        ):
            with self.subTest(statement):
                self.worse("no_wildcard_assume_role", "RunnerRole", lambda t: runners(t).append(statement))
                self.worse(
                    "no_wildcard_assume_role",
                    "RunnerRole",
                    lambda t: runners(t).append({"Fn::If": ["DeprovisionEnabled", statement, {"Ref": "AWS::NoValue"}]}),
                )
                self.worse("no_wildcard_assume_role", "Base", lambda t: base(t).append(statement))
        for action in ("*", "sts:*", "s*", "sts:Assume*", "sts:AssumeRol?"):
            with self.subTest(action):
                self.worse(
                    "no_wildcard_assume_role", "Base", lambda t: base(t).append(takes(action, {"Resource": "*"}))
                )

    def test_a_policy_counts_however_it_is_attached(self):
        policy = {
            "Type": "AWS::IAM::ManagedPolicy",
            "Properties": {
                "PolicyDocument": {"Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}]}
            },
        }

        def listed(arn):
            return lambda t: (
                t["Resources"].update(More=policy) or properties(t, "ProvisionRole")["ManagedPolicyArns"].append(arn)
            )

        def chosen(template):
            template["Resources"]["More"] = policy
            boundary = properties(template, "ProvisionRole")["ManagedPolicyArns"][0]["Fn::If"][1]
            properties(template, "ProvisionRole")["ManagedPolicyArns"] = {
                "Fn::If": ["OwnBoundary", [boundary, more], []]
            }

        more, nothing = {"Ref": "More"}, {"Ref": "AWS::NoValue"}
        for arn in (
            more,
            {"Fn::If": ["DeprovisionEnabled", more, nothing]},
            {"Fn::If": ["OwnBoundary", nothing, more]},
        ):
            with self.subTest(arn):
                self.worse("no_wildcard_assume_role", "More", listed(arn))
        self.worse("no_wildcard_assume_role", "More", chosen)
        for key in ("Roles", "Users", "Groups"):
            attached = {**policy, "Properties": {**policy["Properties"], key: ["x"]}}
            with self.subTest(key):
                self.worse("no_wildcard_assume_role", "More", lambda t: t["Resources"].update(More=attached))
        self.worse(
            "no_wildcard_assume_role",
            "Boundary",
            lambda t: properties(t, "Boundary").update(Roles=[{"Ref": "RunnerRole"}]),
        )

    def test_a_boundary_that_is_attached_while_it_allows_is_found(self):
        nothing, boundary = {"Ref": "AWS::NoValue"}, {"Ref": "Boundary"}
        allow = {"Effect": "Allow", "Action": "*", "Resource": "*"}

        def first(template, value):
            properties(template, "ProvisionRole")["ManagedPolicyArns"][0] = value

        for value in (
            boundary,
            {"Fn::If": ["OwnBoundary", nothing, boundary]},
            {"Fn::If": ["Private", boundary, nothing]},
        ):
            with self.subTest(value):
                self.worse("no_wildcard_assume_role", "Boundary", lambda t: first(t, value))
        for value in (
            allow,
            {"Fn::If": ["Private", allow, nothing]},
            {"Fn::If": ["OwnBoundary", allow, nothing]},
            {"Effect": {"Fn::If": ["OwnBoundary", "Allow", "Deny"]}, "Action": "*", "Resource": "*"},
        ):
            with self.subTest(value):
                self.worse(
                    "no_wildcard_assume_role",
                    "Boundary",
                    lambda t: properties(t, "Boundary")["PolicyDocument"]["Statement"].append(value),
                )

    def test_a_mode_may_say_so_only_while_its_boundary_names_roles(self):
        def everything(template):
            properties(template, "ProvisionRole")["Policies"] = [
                {
                    "PolicyName": "all",
                    "PolicyDocument": {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]},
                }
            ]

        def loose(template):
            everything(template)
            denials = properties(template, "Boundary")["PolicyDocument"]["Statement"]
            denials[:] = [s for s in denials if not ("NotResource" in s and "sts:Assume*" in s["Action"])]

        def left_to_the_customers(template):
            """Lets a mode do everything, with the customer's own boundary as its only limit when there is one."""
            everything(template)
            properties(template, "ProvisionRole")["ManagedPolicyArns"] = [
                {"Fn::If": ["OwnBoundary", {"Ref": "Limits"}, {"Ref": "AWS::NoValue"}]}
            ]

        template = templates.install()
        everything(template)
        self.assertEqual(guard.broken_rules(json.dumps(template)), {})
        self.worse("no_wildcard_assume_role", "ProvisionRole", loose)
        template = templates.install()
        left_to_the_customers(template)
        broken = guard.broken_rules(json.dumps(template))
        self.assertEqual(set(broken), {"no_wildcard_assume_role", "boundary"})
        self.assertNotIn("/Resources/MaintenanceRole", str(broken))

    def test_a_role_without_its_boundary_is_found(self):
        template = templates.install()
        del properties(template, "ProvisionRole")["PermissionsBoundary"]

        self.assertIn("/Resources/ProvisionRole/", str(guard.broken_rules(json.dumps(template))["boundary"]))
        for fields in (
            {"Action": "s3:*"},
            {"Action": "iam:GetRole"},
            {"Action": ["sqs:SendMessage", "Iam:passrole"]},
            {"NotAction": "iam:*"},
        ):
            statement = {"Effect": "Allow", "Resource": "arn:x", **fields}
            with self.subTest(fields):
                self.worse("boundary", "RunnerRole", lambda t: runners(t).append(statement))
        self.worse(
            "boundary",
            "RunnerRole",
            lambda t: properties(t, "RunnerRole").update(ManagedPolicyArns=["arn:aws:iam::aws:policy/ReadOnlyAccess"]),
        )

    def test_a_boundary_that_cannot_be_read_or_holds_nothing_is_found(self):
        def denial(template, action):
            [found] = [
                s
                for s in properties(template, "Boundary")["PolicyDocument"]["Statement"]
                if s.get("Effect") == "Deny" and action in templates.as_list(s.get("Action"))
            ]
            return found

        def of(boundary):
            return lambda t: properties(t, "MaintenanceRole").update(PermissionsBoundary=boundary)

        self.worse("boundary", "MaintenanceRole", of("arn:aws:iam::aws:policy/ReadOnlyAccess"))
        self.worse(
            "boundary",
            "MaintenanceRole",
            of({"Fn::If": ["DeprovisionEnabled", {"Ref": "Boundary"}, {"Ref": "AWS::NoValue"}]}),
        )
        self.worse("boundary", "Base", of({"Ref": "Base"}))
        own, parameter, nothing = {"Ref": "Boundary"}, {"Ref": "PermissionsBoundaryArn"}, {"Ref": "AWS::NoValue"}
        for value in (
            {"Fn::If": ["OwnBoundary", nothing, own]},
            {"Fn::If": ["OwnBoundary", "arn:aws:iam::aws:policy/X", own]},
            {"Fn::If": ["OwnBoundary", own, "arn:aws:iam::aws:policy/X"]},
            nothing,
        ):
            with self.subTest(value):
                self.worse("boundary", "MaintenanceRole", of(value))
        self.worse("boundary", "RouteTableIds", of({"Fn::If": ["OwnBoundary", {"Ref": "RouteTableIds"}, own]}))
        self.worse(
            "boundary",
            "ProvisionRole",
            lambda t: properties(t, "ProvisionRole").update(
                ManagedPolicyArns=["arn:aws:iam::aws:policy/ReadOnlyAccess"], PermissionsBoundary=parameter
            ),
        )
        template = templates.install()
        template["Parameters"]["PermissionsBoundaryArn"]["AllowedPattern"] = (
            "^(arn:aws[a-z-]*:iam::999999999999:policy/.+)?$"
        )
        self.assertEqual(self.found(template)[0], "boundary")

        keep = "iam:DeleteRolePermissionsBoundary"
        for change in (
            lambda s: s.update(Action="iam:DeleteUserPermissionsBoundary"),
            lambda s: s.update(Effect="Allow"),
            lambda s: s.update(Resource="arn:aws:iam::1:role/a"),
            lambda s: s.update(Condition={"Bool": {"a": "b"}}),
        ):
            self.loosened(lambda t: change(denial(t, keep)))
        for change in (
            lambda s: s.update(Action="iam:CreateRole"),
            lambda s: s.pop("Condition"),
            lambda s: s.update(Condition={"StringNotEquals": {"aws:RequestedRegion": "x"}}),
            lambda s: s.update(Resource="arn:aws:iam::1:role/a"),
        ):
            self.loosened(lambda t: change(denial(t, "iam:CreateRole")))
