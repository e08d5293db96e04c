"""How people, pipelines and browsers reach the tenant: the routes of both APIs, the user pool and other issuers."""

import unittest

import templates
from intrinsics import Evaluator
from templates import of_type, properties


class People(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.template = templates.tenant()

    def routes(self, api):
        """Returns the routes of an API by their keys."""
        routes = of_type(self.template, "AWS::ApiGatewayV2::Route").values()
        own = [one["Properties"] for one in routes if one["Properties"]["ApiId"] == {"Ref": api}]
        return {route["RouteKey"]: route for route in own}

    def test_every_route_is_signed_or_has_a_verified_token_but_that_of_webhooks_which_is_off_and_bounded(self):
        path = "POST /v1/webhooks/{webhook}/calls"

        self.assertEqual(
            {key: route["AuthorizationType"] for key, route in self.routes("HttpApi").items()},
            {
                "$default": "AWS_IAM",
                path: {"Fn::If": ["TakesWebhooks", "NONE", "AWS_IAM"]},
                "ANY /people/{proxy+}": "JWT",
                "ANY /pipelines/{proxy+}": {"Fn::If": ["TakesPipelines", "JWT", "AWS_IAM"]},
            },
        )
        self.assertEqual(self.template["Parameters"]["Webhooks"]["Default"], "off")
        self.assertLessEqual(properties(self.template, "HttpApiStage")["RouteSettings"][path]["ThrottlingRateLimit"], 5)
        self.assertEqual(properties(self.template, "HttpApiIntegration")["PayloadFormatVersion"], "2.0")

    def test_every_route_of_strangers_exists_before_its_limit_and_stays_with_it(self):
        stage = self.template["Resources"]["HttpApiStage"]
        routes = of_type(self.template, "AWS::ApiGatewayV2::Route")
        limited = {
            name for name, r in routes.items() if r["Properties"]["RouteKey"] in stage["Properties"]["RouteSettings"]
        }
        own = {name for name, one in routes.items() if one["Properties"]["ApiId"] == {"Ref": "HttpApi"}}

        self.assertEqual(limited, own - {"HttpApiRoute"})
        self.assertEqual(set(stage["DependsOn"]), limited)
        self.assertEqual([name for name in limited if "Condition" in routes[name]], [])

    def test_api_gateway_and_both_functions_take_the_same_issuer_from_the_pool_or_from_the_parameter(self):
        other = {"PeopleIssuer": "https://login.acme.example", "PeopleClientId": "freehold"}
        for given, client, scopes in (({}, "PeopleClient-freehold-acme", ["openid"]), (other, "freehold", None)):
            stack = Evaluator(self.template, "freehold-acme", templates.TENANT_ACCOUNT, {"TenantName": "acme", **given})
            jwt = stack.resolve(properties(self.template, "PeopleAuthorizer"))["JwtConfiguration"]
            env = {
                name: stack.resolve(properties(self.template, name)["Environment"]["Variables"])
                for name in ("Api", "Console")
            }
            outputs = {name: stack.resolve(one["Value"]) for name, one in self.template["Outputs"].items()}

            with self.subTest(client):
                self.assertTrue(jwt["Issuer"].startswith("https://"))
                self.assertEqual(jwt["Issuer"], given.get("PeopleIssuer", jwt["Issuer"]))
                self.assertEqual(jwt["Audience"], [client])
                self.assertEqual({one["FREEHOLD_PEOPLE_ISSUER"] for one in env.values()}, {jwt["Issuer"]})
                self.assertEqual(env["Console"]["FREEHOLD_PEOPLE_CLIENT_ID"], client)
                self.assertEqual((outputs["PeopleIssuer"], outputs["PeopleClientId"]), (jwt["Issuer"], client))
                route = stack.resolve(self.routes("HttpApi")["ANY /people/{proxy+}"])
                self.assertEqual(route.get("AuthorizationScopes"), scopes)

    def test_pipelines_are_off_until_an_issuer_and_an_audience_are_given(self):
        given = {"PipelineIssuer": "https://token.ci.example", "PipelineAudience": "freehold-acme"}
        for parameters, kind in (({}, "AWS_IAM"), (given, "JWT")):
            stack = Evaluator(self.template, "s", templates.TENANT_ACCOUNT, {"TenantName": "acme", **parameters})
            route = stack.resolve(self.routes("HttpApi")["ANY /pipelines/{proxy+}"])
            env = stack.resolve(properties(self.template, "Api")["Environment"]["Variables"])

            self.assertEqual((route["AuthorizationType"], "AuthorizerId" in route), (kind, kind == "JWT"))
            self.assertEqual(env["FREEHOLD_PIPELINE_ISSUER"], parameters.get("PipelineIssuer", ""))
        jwt = stack.resolve(properties(self.template, "PipelinesAuthorizer")["JwtConfiguration"])
        self.assertEqual(jwt, {"Issuer": given["PipelineIssuer"], "Audience": [given["PipelineAudience"]]})
        for rule, parameter in (
            ("IssuerOfPeopleHasClient", "PeopleClientId"),
            ("IssuerOfPipelinesHasAudience", "PipelineAudience"),
        ):
            [assertion] = self.template["Rules"][rule]["Assertions"]
            self.assertEqual(assertion["Assert"], {"Fn::Not": [{"Fn::Equals": [{"Ref": parameter}, ""]}]})

    def test_accounts_of_people_survive_each_update_and_nobody_signs_up_while_another_issuer_has_them(self):
        pool = self.template["Resources"]["People"]

        self.assertNotIn("Condition", pool)
        self.assertEqual((pool["DeletionPolicy"], pool["UpdateReplacePolicy"]), ("Delete", "Retain"))
        self.assertEqual(
            pool["Properties"]["AdminCreateUserConfig"],
            {"AllowAdminCreateUserOnly": {"Fn::If": ["UsesPool", False, True]}},
        )
        for name in ("PeopleClient", "PeopleDomain"):
            self.assertEqual(self.template["Resources"][name]["Condition"], "UsesPool")

    def test_a_second_factor_is_required_or_off(self):
        for asked, expected in (("off", ("OFF", None)), ("on", ("ON", ["SOFTWARE_TOKEN_MFA"]))):
            stack = Evaluator(self.template, "s", templates.TENANT_ACCOUNT, {"PeopleSecondFactor": asked})
            pool = stack.resolve(properties(self.template, "People"))

            self.assertEqual((pool["MfaConfiguration"], pool.get("EnabledMfas")), expected)
        self.assertEqual(self.template["Parameters"]["PeopleSecondFactor"]["Default"], "off")

    def test_people_type_passwords_into_the_sign_in_page_alone_and_their_client_has_no_secret(self):
        client = properties(self.template, "PeopleClient")

        self.assertIs(client["GenerateSecret"], False)
        self.assertEqual(client["ExplicitAuthFlows"], ["ALLOW_REFRESH_TOKEN_AUTH"])
        self.assertEqual(client["AllowedOAuthFlows"], ["code"])
        self.assertIs(client["EnableTokenRevocation"], True)
        self.assertEqual(client["PreventUserExistenceErrors"], "ENABLED")
        units = client["TokenValidityUnits"]
        self.assertEqual((client["AccessTokenValidity"], units["AccessToken"]), (1, "hours"))
        self.assertEqual((client["RefreshTokenValidity"], units["RefreshToken"]), (30, "days"))
        plain = [url for url in client["CallbackURLs"] if isinstance(url, str)]
        self.assertEqual(plain, [f"http://localhost:{port}/callback" for port in (8976, 8977, 8978)])

    def test_the_console_has_an_address_of_its_own_which_can_be_left_out_and_is_bounded(self):
        of_console = {
            name
            for name, one in self.template["Resources"].items()
            if name.startswith("ConsoleApi") and one["Type"] != "AWS::Logs::LogGroup"
        }

        self.assertEqual(
            {key: r["AuthorizationType"] for key, r in self.routes("ConsoleApi").items()}, {"$default": "NONE"}
        )
        for name in of_console:
            self.assertEqual(self.template["Resources"][name]["Condition"], "HasConsole", name)
        limit = properties(self.template, "ConsoleApiStage")["DefaultRouteSettings"]["ThrottlingRateLimit"]
        self.assertLessEqual(limit, 50)
