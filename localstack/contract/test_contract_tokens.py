"""The contract of JWT authorizers: which tokens reach the function, and what it learns. Run by `cloud test`."""

import hashlib
import hmac
import json
import sys
import time
import unittest
from urllib.parse import parse_qsl, urlencode, urlsplit

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from contract_cloud import Contract, allow, needs, shared
from contract_issuer import Issuer, text

PASSWORD = "Correct horse battery 7!"
CALLBACK = "http://localhost:8976/callback"
# A function that counts its calls, and answers what API Gateway sends it about the caller, the path and the cookies.
COUNTS = f"""#!{sys.executable}
import json, os, urllib.request
api = "http://%s/2018-06-01/runtime/invocation/" % os.environ["AWS_LAMBDA_RUNTIME_API"]
calls = 0
while True:
    with urllib.request.urlopen(api + "next") as next:
        request, event = next.headers["Lambda-Runtime-Aws-Request-Id"], json.load(next)
    calls += 1
    seen = {{"calls": calls, "path": event["rawPath"], "authorizer": event["requestContext"].get("authorizer")}}
    seen.update({{"cookies": event.get("cookies"), "header": event["headers"].get("cookie")}})
    answer = {{"statusCode": 200, "body": json.dumps(seen)}}
    urllib.request.urlopen(api + request + "/response", json.dumps(answer).encode()).close()
"""


def of(kind, **properties):
    return {"Type": f"AWS::ApiGatewayV2::{kind}", "Properties": {"ApiId": {"Ref": "Api"}, **properties}}


def authorizer(name, issuer, audience):
    jwt = {"Issuer": issuer, "Audience": [audience]}
    source = ["$request.header.Authorization"]
    return of("Authorizer", Name=name, AuthorizerType="JWT", IdentitySource=source, JwtConfiguration=jwt)


def route(key, kind, **more):
    target = {"Fn::Join": ["/", ["integrations", {"Ref": "Function"}]]}
    return of("Route", RouteKey=key, AuthorizationType=kind, Target=target, **more)


@needs("http api")
class Tokens(Contract):
    def setUp(self):
        super().setUp()
        self.issuer = Issuer()
        self.addCleanup(self.issuer.close)
        self.make_pool()
        people = {"AuthorizerId": {"Ref": "People"}, "AuthorizationScopes": ["openid"]}
        pipelines = {"AuthorizerId": {"Ref": "Pipelines"}}
        integration = {"IntegrationType": "AWS_PROXY", "PayloadFormatVersion": "2.0"}
        stack = self.account.stack(
            "s",
            Api={"Type": "AWS::ApiGatewayV2::Api", "Properties": {"Name": "a", "ProtocolType": "HTTP"}},
            Function=of("Integration", IntegrationUri=self.account.function("f", script=COUNTS), **integration),
            People=authorizer("People", self.pool_issuer, self.client_id),
            Pipelines=authorizer("Pipelines", self.issuer.url, "freehold-acme"),
            Default=route("$default", "AWS_IAM"),
            PeopleRoute=route("ANY /people/{proxy+}", "JWT", **people),
            PipelineRoute=route("ANY /pipelines/{proxy+}", "JWT", **pipelines),
            ScopedRoute=route("ANY /scoped/{proxy+}", "JWT", AuthorizationScopes=["openid"], **pipelines),
            Stage=of("Stage", StageName="$default", AutoDeploy=True),
        )
        self.endpoint = stack["Outputs"][0]["OutputValue"]

    def make_pool(self):
        cognito = self.account.client("cognito-idp")
        pool = cognito.create_user_pool(PoolName="p", UsernameAttributes=["email"], AutoVerifiedAttributes=["email"])
        pool_id = pool["UserPool"]["Id"]
        self.pool_issuer = f"https://cognito-idp.eu-west-1.amazonaws.com/{pool_id}"
        client = cognito.create_user_pool_client(
            UserPoolId=pool_id,
            ClientName="c",
            ExplicitAuthFlows=["ALLOW_REFRESH_TOKEN_AUTH"],
            SupportedIdentityProviders=["COGNITO"],
            AllowedOAuthFlowsUserPoolClient=True,
            AllowedOAuthFlows=["code"],
            AllowedOAuthScopes=["openid", "email"],
            CallbackURLs=[CALLBACK],
        )
        self.client_id = client["UserPoolClient"]["ClientId"]

    def pool_tokens(self):
        """Signs a person up and in, without credentials of AWS."""
        for action, more in (
            ("SignUp", {"Password": PASSWORD, "UserAttributes": [{"Name": "email", "Value": "ana@example.com"}]}),
            ("ConfirmSignUp", {"ConfirmationCode": "123456"}),
        ):
            answer = self.cognito(action, ClientId=self.client_id, Username="ana@example.com", **more)
            self.assertEqual(answer.status, 200, answer)
        verifier = "v" * 43
        asked = {
            "client_id": self.client_id,
            "redirect_uri": CALLBACK,
            "response_type": "code",
            "scope": "openid email",
            "state": "s",
            "code_challenge": text(hashlib.sha256(verifier.encode()).digest()),
            "code_challenge_method": "S256",
        }
        page = shared().http("GET", f"{shared().endpoint}/oauth2/authorize?{urlencode(asked)}")
        self.assertIn(b'action="/login"', page.body)
        sent = self.form("/login", {**asked, "username": "ana@example.com", "password": PASSWORD})
        back = urlsplit(sent.headers["Location"])
        self.assertEqual((sent.status, back._replace(query="").geturl()), (302, CALLBACK))
        code = dict(parse_qsl(back.query))["code"]
        exchange = {"grant_type": "authorization_code", "client_id": self.client_id, "redirect_uri": CALLBACK}
        return json.loads(self.form("/oauth2/token", {**exchange, "code": code, "code_verifier": verifier}).body)

    def form(self, path, fields):
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return shared().http("POST", f"{shared().endpoint}{path}", headers, urlencode(fields))

    def cognito(self, action, **request):
        """Asks Cognito for what needs no credentials of AWS."""
        headers = {
            "Content-Type": "application/x-amz-json-1.1",
            "X-Amz-Target": f"AWSCognitoIdentityProviderService.{action}",
        }
        return shared().http("POST", f"{shared().endpoint}/", headers, json.dumps(request))

    def ask(self, path, token=None, **headers):
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return shared().http("GET", f"{self.endpoint}{path}", headers)

    def seen(self, path, token, **headers):
        answer = self.ask(path, token, **headers)
        self.assertEqual(answer.status, 200, answer)
        return json.loads(answer.body)

    def test_access_token_of_the_pool_arrives_with_its_claims(self):
        tokens = self.pool_tokens()

        seen = self.seen("/people/v1/apps", tokens["access_token"])

        self.assertEqual(set(seen["authorizer"]), {"jwt"})
        claims = seen["authorizer"]["jwt"]["claims"]
        self.assertEqual((claims["iss"], claims["client_id"]), (self.pool_issuer, self.client_id))
        self.assertRegex(claims["sub"], "^[0-9a-f-]{36}$")
        self.assertEqual(seen["path"], "/people/v1/apps")

    def test_wrong_tokens_are_refused_before_the_function_is_called(self):
        now, other = int(time.time()), rsa.generate_private_key(public_exponent=65537, key_size=2048)
        public = self.issuer.key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        unsigned = self.issuer.token({"alg": "HS256"}, signature=b"").rpartition(".")[0]
        symmetric = hmac.new(public, unsigned.encode(), hashlib.sha256).digest()
        right = self.issuer.token()
        head, claims, signature = right.split(".")
        wrong = {
            "no token": None,
            "two parts": f"{head}.{claims}",
            "alg none": self.issuer.token({"alg": "none"}, signature=b""),
            "the public key as a secret": self.issuer.token({"alg": "HS256"}, signature=symmetric),
            "another issuer": self.issuer.token(iss="https://login.example"),
            "no issuer": self.issuer.token(iss=None),
            "another audience": self.issuer.token(aud="freehold-other"),
            "no audience": self.issuer.token(aud=None),
            "expired": self.issuer.token(exp=now - 1),
            "not yet valid": self.issuer.token(nbf=now + 600),
            "issued in the future": self.issuer.token(iat=now + 600),
            "wrong key": self.issuer.token(key=other),
            "unknown key": self.issuer.token({"kid": "two"}),
            "other claims under the same signature": f"{head}.{self.issuer.token(sub='ben').split('.')[1]}.{signature}",
        }
        before = self.seen("/pipelines/v1/apps", right)["calls"]

        answers = {name: self.ask("/pipelines/v1/apps", token).status for name, token in wrong.items()}

        self.assertEqual(answers, dict.fromkeys(wrong, 401))
        self.assertEqual(self.seen("/pipelines/v1/apps", right)["calls"], before + 1)

    def test_id_token_of_the_pool_lacks_the_scope_of_the_route(self):
        tokens = self.pool_tokens()

        self.assertEqual(self.ask("/people/v1/apps", tokens["id_token"]).status, 403)

    def test_password_is_taken_by_the_sign_in_page_alone(self):
        self.pool_tokens()
        given = {"USERNAME": "ana@example.com", "PASSWORD": PASSWORD}

        answer = self.cognito(
            "InitiateAuth", ClientId=self.client_id, AuthFlow="USER_PASSWORD_AUTH", AuthParameters=given
        )

        self.assertEqual((answer.status, b"USER_PASSWORD_AUTH" in answer.body), (400, True), answer)

    def test_token_of_one_prefix_is_refused_at_the_other(self):
        person, pipeline = self.pool_tokens()["access_token"], self.issuer.token()

        self.assertEqual(self.ask("/pipelines/v1/apps", person).status, 401)
        self.assertEqual(self.ask("/people/v1/apps", pipeline).status, 401)
        self.assertEqual(self.ask("/people/v1/apps", person).status, 200)
        self.assertEqual(self.ask("/pipelines/v1/apps", pipeline).status, 200)

    def test_token_without_the_scope_of_a_route_is_forbidden_there(self):
        for scope, status in ((None, 403), ("email", 403), ("email openid", 200)):
            self.assertEqual(self.ask("/scoped/v1/apps", self.issuer.token(scope=scope)).status, status, scope)
        self.assertEqual(self.ask("/scoped/v1/apps", self.issuer.token(scp=["openid"])).status, 200)

    def test_signed_request_without_a_token_is_refused_below_a_prefix(self):
        role = self.account.role("operator", allow("execute-api:Invoke"))

        for path in ("/people/v1/apps", "/pipelines/v1/apps"):
            self.assertEqual(role.signed("GET", f"{self.endpoint}{path}").status, 401, path)
        self.assertEqual(set(json.loads(role.signed("GET", f"{self.endpoint}/v1/apps").body)["authorizer"]), {"iam"})

    def test_token_outside_of_the_prefixes_is_refused(self):
        token = self.issuer.token()

        for path in ("/v1/apps", "/people", "/pipelines", "/People/v1/apps", "/v1/people/v1/apps"):
            self.assertEqual(self.ask(path, token).status, 403, path)

    def test_path_arrives_with_its_prefix(self):
        token = self.issuer.token()

        for path in ("/pipelines/v1/apps", "/pipelines/v1/apps/", "/pipelines//v1/apps", "/pipelines/pipelines/v1"):
            self.assertEqual(self.seen(path, token)["path"], path)

    def test_cookies_arrive_as_a_list_and_not_as_a_header(self):
        token = self.issuer.token()

        seen = self.seen("/pipelines/v1/apps", token, Cookie="a=1; b=x=y")

        self.assertEqual((seen["cookies"], seen["header"]), (["a=1", "b=x=y"], None))
        self.assertIsNone(self.seen("/pipelines/v1/apps", token)["cookies"])

    def test_more_slashes_at_the_beginning_of_a_path_choose_the_same_route(self):
        seen = self.seen("//pipelines/v1/apps", self.issuer.token())

        self.assertEqual((seen["path"].lstrip("/"), set(seen["authorizer"])), ("pipelines/v1/apps", {"jwt"}))

    def test_claims_arrive_as_texts(self):
        token = self.issuer.token(groups=["a", "b"], admin=True, age=7)

        claims = self.seen("/pipelines/v1/apps", token)["authorizer"]["jwt"]["claims"]

        self.assertEqual((claims["groups"], claims["admin"], claims["age"]), ("[a b]", "true", "7"))
        self.assertEqual({type(value) for value in claims.values()}, {str})

    def test_deviation_token_that_never_expires_is_accepted(self):
        self.assertEqual(self.ask("/pipelines/v1/apps", self.issuer.token(exp=None)).status, 200)

    def test_deviation_issuer_that_nobody_serves_is_accepted_until_a_token_comes(self):
        cognito = authorizer("Absent", "http://127.0.0.1:1", "freehold-acme")
        api = {"Type": "AWS::ApiGatewayV2::Api", "Properties": {"Name": "b", "ProtocolType": "HTTP"}}

        stack = self.account.stack("t", Api=api, Absent=cognito)

        self.assertEqual(stack["StackStatus"], "CREATE_COMPLETE")


if __name__ == "__main__":
    unittest.main()
