"""SQS and event sources: who sent a message, and one mapping for each queue and function."""

import json

from ministack.core import iam_actions, iam_evaluator, responses
from ministack.services import iam, lambda_svc, sqs

from shims.replace import replace


def apply():
    # On AWS, the sender is the unique id of the role and the name of the session; in MiniStack, the account.
    replace(sqs, "_build_send_sys_attrs", _with_role)
    # The same for a function that gets the message.
    replace(lambda_svc, "_run_sqs_batch", _with_senders)
    # AWS refuses a second mapping of a queue to a function; MiniStack makes it.
    replace(lambda_svc, "_create_esm", _once)
    # On AWS this key is the function of the mapping (Lambda API, condition keys); MiniStack does not know it.
    replace(iam_actions, "request_tag_context", _with_function)


def _with_role(original):
    def build_send_sys_attrs(now, sys_attrs_input):
        attributes = original(now, sys_attrs_input)
        sender = role_session_id(iam_evaluator.caller_arn())
        return {**attributes, "SenderId": sender} if sender else attributes

    return build_send_sys_attrs


def _with_senders(original):
    def run_sqs_batch(esm, function, event, batch, *rest):
        senders = {message["id"]: (message.get("sys") or {}).get("SenderId") for message in batch}
        for record in event["Records"]:
            record["attributes"]["SenderId"] = senders.get(record["messageId"]) or record["attributes"]["SenderId"]
        return original(esm, function, event, batch, *rest)

    return run_sqs_batch


def role_session_id(arn):
    """Returns the id of a session of a role, such as `AROAEXAMPLE:i-1`; `None` for another principal."""
    if ":assumed-role/" not in arn:
        return None
    account = arn.split(":")[4]
    name, _, session = arn.split(":assumed-role/", 1)[1].partition("/")
    role = iam._roles.get_scoped(account, None, name) or {}
    return f"{role['RoleId']}:{session}" if role.get("RoleId") else None


def _once(original):
    def create_esm(data):
        queue, function = data.get("EventSourceArn"), _name(data.get("FunctionName"))
        for known in lambda_svc._esms.values():
            if known["EventSourceArn"] == queue and known["FunctionName"] == function:
                reason = (
                    f'An event source mapping with SQS arn (" {queue} ") and function (" {function} ") already exists.'
                )
                return responses.error_response_json("ResourceConflictException", reason, 409)
        return original(data)

    return create_esm


def _with_function(original):
    def request_tag_context(service, iam_action, body, params):
        context = original(service, iam_action, body, params)
        if service == "lambda" and iam_action.rpartition(":")[2] == "CreateEventSourceMapping":
            name = _name(json.loads(body or b"{}").get("FunctionName"))
            place = f"{responses.get_region()}:{responses.get_account_id()}"
            context["lambda:functionarn"] = f"arn:aws:lambda:{place}:function:{name}"
        return context

    return request_tag_context


def _name(function):
    return str(function or "").rpartition(":function:")[2].partition(":")[0]
