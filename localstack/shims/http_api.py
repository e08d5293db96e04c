"""HTTP API: finds the API that a request names, in whatever account it is."""

from ministack import app
from ministack.core import router
from ministack.core.responses import get_account_id, set_request_account_id
from ministack.services import apigateway

from shims.replace import replace


def apply():
    # MiniStack looks for the API in the caller's account only, so an unsigned request would get 404 instead of 403.
    replace(app, "_handle_execute_api_request", _in_owners_account)


def _in_owners_account(original):
    async def handle_execute_api_request(host, path, method, headers, body, query_params, **more):
        parsed = app._parse_execute_api_url(host, path)
        owner = _owner(parsed[0]) if parsed else None
        if owner and owner != get_account_id():
            if router.extract_access_key_id(headers, query_params):
                # An HTTP API has no resource policy: AWS_IAM admits only principals of the account that owns the API.
                return 403, {"Content-Type": "application/json"}, b'{"message":"Forbidden"}'
            set_request_account_id(owner)
        return await original(host, path, method, headers, body, query_params, **more)

    return handle_execute_api_request


def _owner(api_id):
    return next((account for (account, _, stored), _ in apigateway._apis.all_items() if stored == api_id), None)
