"""The accounts of people on the local cloud: another issuer takes over and leaves again, and no account is lost."""

import unittest

from cloud import BUCKET, Cloud, settled, until
from templates import REGION, TENANT, TENANT_ACCOUNT

STACK = f"freehold-{TENANT}"
TEMPLATE = f"https://s3.{REGION}.amazonaws.com/{BUCKET}/templates/tenant.yaml"
EMAIL = "ana@example.com"


class People(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cloud = Cloud()
        cls.addClassCleanup(cls.cloud.stop)
        cls.parameters = {
            "TenantName": TENANT,
            "DeployBucket": BUCKET,
            "Architecture": "x86_64",
            **cls.cloud.upload(),
        }
        _, cls.outputs = cls.cloud.stack(STACK, cls.parameters, TENANT_ACCOUNT, TemplateURL=TEMPLATE)

    def update(self, **more):
        """Updates the stack; returns its status and outputs."""
        cloudformation = self.cloud.client("cloudformation")
        pairs = [{"ParameterKey": key, "ParameterValue": value} for key, value in {**self.parameters, **more}.items()]
        cloudformation.update_stack(
            StackName=STACK, TemplateURL=TEMPLATE, Parameters=pairs, Capabilities=["CAPABILITY_NAMED_IAM"]
        )
        stack = until(lambda: settled(cloudformation, STACK), "the stack is updated")
        return stack["StackStatus"], {one["OutputKey"]: one["OutputValue"] for one in stack["Outputs"]}

    def routes(self):
        """Returns how each route of the tenant's API is authorized."""
        client = self.cloud.client("apigatewayv2")
        [api] = [one["ApiId"] for one in client.get_apis()["Items"] if one["Name"] == f"fh-{TENANT}"]
        return {one["RouteKey"]: one["AuthorizationType"] for one in client.get_routes(ApiId=api)["Items"]}

    def test_another_issuer_takes_over_and_leaves_again_and_the_account_is_still_there(self):
        cognito = self.cloud.client("cognito-idp")
        pool = self.outputs["PeopleIssuer"].rpartition("/")[2]
        account = {"ClientId": self.outputs["PeopleClientId"], "Username": EMAIL}
        attributes = [{"Name": "email", "Value": EMAIL}]
        cognito.sign_up(**account, Password="Correct horse battery 7!", UserAttributes=attributes)
        other = {"PeopleIssuer": "https://login.example", "PeopleClientId": "freehold"}

        status, outputs = self.update(**other)
        closed = cognito.describe_user_pool(UserPoolId=pool)["UserPool"]["AdminCreateUserConfig"]
        clients = cognito.list_user_pool_clients(UserPoolId=pool)["UserPoolClients"]
        back, again = self.update()

        self.assertEqual((status, back), ("UPDATE_COMPLETE", "UPDATE_COMPLETE"))
        self.assertEqual({name: outputs.get(name) for name in [*other, "SignInUrl"]}, {**other, "SignInUrl": None})
        self.assertEqual((closed["AllowAdminCreateUserOnly"], clients), (True, []))
        self.assertEqual(again["PeopleIssuer"], self.outputs["PeopleIssuer"])
        [user] = cognito.list_users(UserPoolId=pool)["Users"]
        self.assertIn({"Name": "email", "Value": EMAIL}, user["Attributes"])

    def test_pipelines_and_the_console_come_and_go_with_their_parameters(self):
        pipelines = {"PipelineIssuer": "https://token.ci.example", "PipelineAudience": "freehold-acme"}
        path = "ANY /pipelines/{proxy+}"

        _, outputs = self.update(**pipelines, ConsoleAddress="off")
        with_pipelines = self.routes()
        _, again = self.update()

        self.assertEqual((with_pipelines[path], self.routes()[path]), ("JWT", "AWS_IAM"))
        self.assertEqual(("ConsoleUrl" in outputs, "ConsoleUrl" in again), (False, True))


if __name__ == "__main__":
    unittest.main()
