"""The contract of HTTP APIs: who may call one, and what its function learns about the caller. Run by `cloud test`."""

import json
import unittest

from contract_cloud import Contract, allow, needs, shared


@needs("http api")
class Api(Contract):
    def setUp(self):
        super().setUp()
        arn = self.account.function("f")
        integration = {
            "Type": "AWS::ApiGatewayV2::Integration",
            "Properties": {
                "ApiId": {"Ref": "Api"},
                "IntegrationType": "AWS_PROXY",
                "IntegrationUri": arn,
                "PayloadFormatVersion": "2.0",
            },
        }
        stack = self.account.stack(
            "s",
            Api={"Type": "AWS::ApiGatewayV2::Api", "Properties": {"Name": "a", "ProtocolType": "HTTP"}},
            Function=integration,
            Route={
                "Type": "AWS::ApiGatewayV2::Route",
                "Properties": {
                    "ApiId": {"Ref": "Api"},
                    "RouteKey": "GET /v1/{any+}",
                    "AuthorizationType": "AWS_IAM",
                    "Target": {"Fn::Join": ["/", ["integrations", {"Ref": "Function"}]]},
                },
            },
            Stage={
                "Type": "AWS::ApiGatewayV2::Stage",
                "Properties": {"ApiId": {"Ref": "Api"}, "StageName": "$default", "AutoDeploy": True},
            },
        )
        self.endpoint = stack["Outputs"][0]["OutputValue"]

    def test_endpoint_is_a_localhost_name_with_the_port(self):
        api = self.endpoint.removeprefix("http://").partition(".")[0]

        self.assertEqual(f"http://{api}.execute-api.localhost:{shared().port}", self.endpoint)
        get = self.account.client("apigatewayv2").get_api(ApiId=api)
        self.assertEqual(self.endpoint, get["ApiEndpoint"])

    def test_signed_request_of_a_permitted_role_arrives_with_its_identity(self):
        role = self.account.role("operator", allow("execute-api:Invoke"))

        answer = role.signed("GET", f"{self.endpoint}/v1/apps?name=a%20b")

        self.assertEqual(200, answer.status, answer)
        self.assertIn("assumed-role/operator/contract", json.loads(answer.body)["iam"]["userArn"])

    def test_unsigned_and_unpermitted_requests_are_forbidden(self):
        nobody = self.account.role("nobody")

        self.assertEqual(403, shared().http("GET", f"{self.endpoint}/v1/apps").status)
        self.assertEqual(403, nobody.signed("GET", f"{self.endpoint}/v1/apps").status)

    def test_role_of_another_account_is_forbidden(self):
        foreign = shared().account().role("operator", allow("execute-api:Invoke"))

        self.assertEqual(403, foreign.signed("GET", f"{self.endpoint}/v1/apps").status)

    def test_deviation_the_path_health_is_the_emulators_own(self):
        self.assertIn(b"services", shared().http("GET", f"{self.endpoint}/health").body)


if __name__ == "__main__":
    unittest.main()
