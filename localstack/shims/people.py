"""Cognito: a person who signs up, in or out has no credentials of AWS, so the client or the token names the account."""

from ministack.core.responses import set_request_account_id
from ministack.services import cognito

from shims.replace import replace


def apply():
    # MiniStack looks for the client in the account of the caller, and an unsigned request has none.
    replace(cognito, "_pin_unsigned_idp_scope", _in_owners_account)


def _in_owners_account(original):
    def pin_unsigned_idp_scope(data):
        owner = _owner(data)
        if owner:
            set_request_account_id(owner)
        original(data)

    return pin_unsigned_idp_scope


def _owner(data):
    """Returns the account of the pool whose client or whose token a request names."""
    named = {cognito._pool_id_from_token(data.get(field, "")) for field in ("AccessToken", "RefreshToken", "Token")}
    return next(
        (
            account
            for (account, _, pool_id), pool in cognito._user_pools.all_items()
            if pool_id in named or data.get("ClientId") in pool.get("_clients", {})
        ),
        None,
    )
