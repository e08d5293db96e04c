"""ECR: registry logins, who may push and pull on `/v2`, and layer URLs that expire.

MiniStack's `/v2` checks no login, its layer URLs point at AWS, and it reports every layer as missing.
"""

import base64
import hashlib
import hmac
import json
import os
import time
from dataclasses import dataclass

from ministack import app
from ministack.core import iam_evaluator, router
from ministack.core.responses import (
    error_response_json,
    get_account_id,
    get_region,
    json_response,
    set_request_account_id,
    set_request_region,
)
from ministack.services import ecr

from shims.replace import replace

TOKEN_SECS = int(os.environ.get("FREEHOLD_REGISTRY_TOKEN_SECS", 12 * 3600))
LAYER_URL_SECS = int(os.environ.get("FREEHOLD_LAYER_URL_SECS", 3600))
# Where clients reach the registries: this cloud, or a proxy in front of it.
PORT = os.environ.get("FREEHOLD_REGISTRY_PORT") or os.environ.get("GATEWAY_PORT", "4566")
SECRET = os.urandom(32)

# (kind of path, method) -> actions, one of which must be permitted, as ECR's service authorization page lists them.
ACTIONS = {
    ("catalog", "GET"): ("DescribeRepositories",),
    ("tags_list", "GET"): ("ListImages",),
    ("manifest", "GET"): ("BatchGetImage",),
    ("manifest", "HEAD"): ("BatchGetImage",),
    ("manifest", "PUT"): ("PutImage",),
    ("manifest", "DELETE"): ("BatchDeleteImage",),
    ("blob", "GET"): ("GetDownloadUrlForLayer",),
    ("blob", "HEAD"): ("BatchCheckLayerAvailability", "GetDownloadUrlForLayer"),
    ("blob", "DELETE"): ("BatchDeleteImage",),
    ("blob_uploads", "POST"): ("InitiateLayerUpload",),
    ("blob_upload_session", "PATCH"): ("UploadLayerPart",),
    ("blob_upload_session", "PUT"): ("CompleteLayerUpload",),
    ("blob_upload_session", "GET"): ("UploadLayerPart",),
    ("blob_upload_session", "DELETE"): ("UploadLayerPart",),
}


def apply():
    replace(ecr, "handle_request", _api)
    replace(ecr, "handle_registry_request", _data_plane)


# The ECR API


def _api(original):
    async def handle_request(method, path, headers, body, query_params):
        action = headers.get("x-amz-target", "").rpartition(".")[2]
        if action == "GetAuthorizationToken":
            return _get_authorization_token(router.extract_access_key_id(headers, query_params))
        answer = LAYER_ACTIONS.get(action)
        data = _json(body) if answer else None
        # MiniStack answers invalid requests.
        if isinstance(data, dict) and data.get("repositoryName") in ecr._repositories:
            return answer(data)
        name = (_json(body) or {}).get("repositoryName") if action == "BatchDeleteImage" else None
        before = _image_digests(name)
        answered = await original(method, path, headers, body, query_params)
        _forget(name, before - _image_digests(name))
        return answered

    return handle_request


def _image_digests(name):
    return {image["imageDigest"] for image in ecr._images.get(name, [])}


def _forget(name, deleted):
    """Removes the manifests of deleted images and their layers from `/v2`, which MiniStack continues to serve there."""
    manifests, layers = ecr._manifest_blobs.get(name, {}), ecr._layer_blobs.get(name, {})
    for digest in deleted & set(manifests):
        del manifests[digest]
    if not deleted:
        return
    named = set().union(*(_digests(_json(manifest)) for manifest in manifests.values()))
    for digest in set(layers) - named:
        del layers[digest]


def _digests(manifest):
    """Returns the digests of a manifest's config and layers; an index has none."""
    parts = [*manifest.get("layers", []), manifest.get("config")] if isinstance(manifest, dict) else []
    return {part["digest"] for part in parts if part}


def _json(body):
    try:
        return json.loads(body or b"{}")
    except ValueError:
        return None


def _registry_host():
    return f"{get_account_id()}.dkr.ecr.{get_region()}.localhost:{PORT}"


def _get_authorization_token(access_key):
    expires = int(time.time()) + TOKEN_SECS
    password = Login(access_key, get_account_id(), get_region(), expires).password()
    return json_response(
        {
            "authorizationData": [
                {
                    "authorizationToken": base64.b64encode(f"AWS:{password}".encode()).decode(),
                    "expiresAt": expires,
                    "proxyEndpoint": f"http://{_registry_host()}",
                }
            ]
        }
    )


def _get_download_url_for_layer(data):
    name, digest = data["repositoryName"], data.get("layerDigest", "")
    if _layer(name, digest) is None:
        return error_response_json(
            "LayersNotFoundException", f"The layer with digest '{digest}' was not found in '{name}'", 400
        )
    expires = int(time.time()) + LAYER_URL_SECS
    signature = _sign("layer", get_account_id(), get_region(), name, digest, expires)
    query = f"fh-expires={expires}&fh-signature={signature}"
    return json_response(
        {"downloadUrl": f"http://{_registry_host()}/v2/{name}/blobs/{digest}?{query}", "layerDigest": digest}
    )


def _batch_check_layer_availability(data):
    layers, failures = [], []
    for digest in data.get("layerDigests", []):
        blob = _layer(data["repositoryName"], digest)
        if blob is None:
            failures.append(
                {
                    "layerDigest": digest,
                    "failureCode": "MissingLayerDigest",
                    "failureReason": "Requested layer digest was not found",
                }
            )
        else:
            layers.append({"layerDigest": digest, "layerAvailability": "AVAILABLE", "layerSize": len(blob)})
    return json_response({"layers": layers, "failures": failures})


LAYER_ACTIONS = {
    "GetDownloadUrlForLayer": _get_download_url_for_layer,
    "BatchCheckLayerAvailability": _batch_check_layer_availability,
}


def _layer(name, digest):
    return ecr._layer_blobs.get(name, {}).get(digest)


# The data plane


def _data_plane(original):
    async def handle_registry_request(method, path, headers, body, query_params):
        headers = {name.lower(): value for name, value in headers.items()}
        parsed = ecr._parse_v2_path(path)
        if parsed is not None:
            kind, name, ref = parsed
            signed = kind == "blob" and "fh-signature" in query_params
            refused = (
                _refuse_layer_url(method, name, ref, headers, query_params)
                if signed
                else _refuse_login(method, kind, name, headers, query_params)
                if app.AUTH
                else None
            )
            if refused:
                return refused
        return await original(method, path, headers, body, query_params)

    return handle_registry_request


def _refuse_layer_url(method, name, digest, headers, query_params):
    ecr._select_registry_request_scope(name, headers, query_params)
    expires = ecr._query_first(query_params, "fh-expires") or ""
    given = ecr._query_first(query_params, "fh-signature") or ""
    signature = _sign("layer", get_account_id(), get_region(), name, digest, expires)
    if method not in ("GET", "HEAD") or not hmac.compare_digest(given.encode(), signature.encode()):
        return _storage_error("SignatureDoesNotMatch", "The request signature we calculated does not match")
    if time.time() >= int(expires):
        return _storage_error("AccessDenied", "Request has expired")
    return None


def _storage_error(code, message):
    # On AWS a layer URL points to S3, so a refusal is XML, as S3 answers it.
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return 403, {"Content-Type": "application/xml"}, body.encode()


def _refuse_login(method, kind, name, headers, query_params):
    authorization = headers.get("authorization", "")
    if not authorization:
        return _challenge(headers)
    login = Login.parse(authorization)
    if login is None:
        return ecr._registry_error(403, "DENIED", "Your Authorization Token is invalid.")
    if time.time() >= login.expires:
        return ecr._registry_error(403, "DENIED", "Your authorization token has expired. Reauthenticate and try again.")
    # A host name without an account (127.0.0.1) stands for the registry that issued the login.
    set_request_account_id(login.account)
    set_request_region(login.region)
    principal = iam_evaluator.resolve_principal(login.access_key, login.account)
    if isinstance(principal, iam_evaluator.AuthError):
        return ecr._registry_error(403, "DENIED", principal.message)
    ecr._select_registry_request_scope(name, headers, query_params)
    return _refuse_action(principal, ACTIONS.get((kind, method), ()), name)


def _challenge(headers):
    status, out, body = ecr._registry_error(401, "UNAUTHORIZED", "Not Authorized")
    realm = f"http://{headers.get('host', _registry_host())}/"
    return status, {**out, "WWW-Authenticate": f'Basic realm="{realm}",service="ecr.amazonaws.com"'}, body


def _refuse_action(principal, actions, name):
    arn = ecr._repo_arn(name) if name else "*"
    if not actions or any(_allowed(principal, f"ecr:{action}", arn) for action in actions):
        return None
    return ecr._registry_error(
        403, "DENIED", f"User: {principal.arn} is not authorized to perform: ecr:{actions[0]} on resource: {arn}"
    )


def _allowed(principal, action, arn):
    ctx = iam_evaluator.EvalContext(
        principal_arn=principal.arn,
        principal_type=principal.type,
        principal_account=principal.account,
        action=action,
        resource_arn=arn,
        region=get_region(),
        principal_keys=principal.keys,
    )
    if principal.policies is None:
        identity = iam_evaluator.EvalResult("Allow", principal.arn)
    else:
        identity = iam_evaluator.evaluate(ctx, principal.policies, *principal.limits)
    policy = iam_evaluator._resource_policy("ecr", arn) or (None, get_account_id())
    if principal.policies is None and policy[1] == principal.account:
        return True  # the root of an account may do everything in it, as everywhere in MiniStack
    return iam_evaluator.combine_resource_policy(identity, ctx, *policy, limits=principal.limits).decision == "Allow"


# Signatures


@dataclass(frozen=True)
class Login:
    """The contents of a registry password; `expires` is in seconds since 1970."""

    access_key: str
    account: str
    region: str
    expires: int

    def password(self):
        claim = base64.urlsafe_b64encode(json.dumps(list(self.__dict__.values())).encode()).decode()
        return f"{claim}.{_sign('login', claim)}"

    @classmethod
    def parse(cls, authorization):
        """Returns the login of a Basic header, or None when this process did not issue the password."""
        scheme, _, encoded = authorization.partition(" ")
        try:
            user, _, password = base64.b64decode(encoded).decode().partition(":")
            claim, _, signature = password.partition(".")
            genuine = hmac.compare_digest(signature.encode(), _sign("login", claim).encode())
            if scheme.lower() != "basic" or user != "AWS" or not genuine:
                return None
            return cls(*json.loads(base64.urlsafe_b64decode(claim)))
        except (ValueError, TypeError):
            return None


def _sign(*parts):
    return hmac.new(SECRET, "\n".join(map(str, parts)).encode(), hashlib.sha256).hexdigest()
