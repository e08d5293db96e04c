"""HTTP API: finds the API that a request names, in whatever account it is, lets no token in where IAM decides,
and passes cookies to the function as format 2.0 does."""

from ministack import app
from ministack.core import router
from ministack.core.responses import get_account_id, set_request_account_id
from ministack.services import apigateway, lambda_svc

from shims.replace import replace

FORBIDDEN = 403, {"Content-Type": "application/json"}, b'{"message":"Forbidden"}'


def apply():
    # MiniStack looks for the API in the caller's account only, so an unsigned request would get 404 instead of 403.
    replace(app, "_handle_execute_api_request", _in_owners_account)
    # MiniStack takes every request with an Authorization header for a signed one, also one with a bearer token.
    replace(apigateway, "_handle_execute_in_scope", _signed_for_iam)
    # MiniStack passes the header `cookie`. API Gateway passes a list of the cookies instead of this header.
    replace(lambda_svc, "_execute_function_with_config_scope", _with_cookies)


def _in_owners_account(original):
    async def handle_execute_api_request(host, path, method, headers, body, query_params, **more):
        parsed = app._parse_execute_api_url(host, path)
        owner = _owner(parsed[0]) if parsed else None
        if owner and owner != get_account_id():
            if router.extract_access_key_id(headers, query_params):
                # An HTTP API has no resource policy: AWS_IAM admits only principals of the account that owns the API.
                return FORBIDDEN
            set_request_account_id(owner)
        return await original(host, path, method, headers, body, query_params, **more)

    return handle_execute_api_request


def _signed_for_iam(original):
    async def handle_execute_in_scope(api_id, stage, path, method, headers, body, query_params, *more):
        route = apigateway._match_route(api_id, method, "/" + path.lstrip("/"))
        is_signed = router.extract_access_key_id({name.lower(): value for name, value in headers.items()}, query_params)
        if route and route.get("authorizationType") == "AWS_IAM" and not is_signed:
            return FORBIDDEN
        return await original(api_id, stage, path, method, headers, body, query_params, *more)

    return handle_execute_in_scope


def _with_cookies(original):
    def execute_function_with_config_scope(record, event, *more, **named):
        if isinstance(event, dict) and event.get("version") == "2.0" and "cookie" in event.get("headers", {}):
            headers = dict(event["headers"])
            event = {**event, "headers": headers, "cookies": headers.pop("cookie").split("; ")}
        return original(record, event, *more, **named)

    return execute_function_with_config_scope


def _owner(api_id):
    return next((account for (account, _, stored), _ in apigateway._apis.all_items() if stored == api_id), None)
