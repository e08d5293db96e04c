"""Step Functions: heartbeats and failures of waiting tasks, and idempotent starts."""

import contextvars
import json
import threading
import time
from datetime import datetime

from ministack.core.responses import get_account_id, get_region, json_response
from ministack.services import stepfunctions as sfn

from shims.replace import replace

POLL_SECS = 0.1


def apply():
    # MiniStack ignores HeartbeatSeconds, so a workflow whose runner is lost would wait for ever.
    replace(sfn, "_invoke_with_callback", _with_heartbeat)
    # On AWS, a function that fails also fails its waiting task; MiniStack waits for a callback that never comes.
    replace(sfn, "_call_lambda", _failing_the_wait)
    # AWS answers 200 to a repeated start with the same name and input while the execution is running.
    replace(sfn, "_start_execution", _repeatable)


def _with_heartbeat(original):
    def invoke_with_callback(resource, input_data, token, state):
        limit = state.get("HeartbeatSeconds")
        if limit:
            # MiniStack stores tokens by account and region, which a thread finds only in its context.
            context = contextvars.copy_context()
            args = (token, float(limit), time.time())
            threading.Thread(target=context.run, args=(_watch, *args), daemon=True).start()
        return original(resource, input_data, token, state)

    return invoke_with_callback


def _failing_the_wait(original):
    def call_lambda(function, event):
        try:
            return original(function, event)
        except sfn._ExecutionError as error:
            for task in filter(None, map(_waiting, _texts(event))):
                task["error"] = {"Error": error.error, "Cause": error.cause}
                task["event"].set()
            raise

    return call_lambda


def _texts(event):
    return [value for value in event.values() if isinstance(value, str)] if isinstance(event, dict) else []


def _waiting(token):
    return sfn._task_tokens.get(token)


def _watch(token, limit, started):
    task = _registered(token)
    while task is not None and not task["event"].is_set():
        if time.time() - _last_beat(task, started) > limit:
            task["error"] = {"Error": "States.HeartbeatTimeout", "Cause": "Task heartbeat timed out"}
            task["event"].set()
            return
        time.sleep(POLL_SECS)
        task = sfn._task_tokens.get(token)


def _registered(token):
    # This thread may run before the call that registers the token.
    for _ in range(50):
        task = sfn._task_tokens.get(token)
        if task is not None:
            return task
        time.sleep(POLL_SECS / 10)
    return None


def _last_beat(task, started):
    beat = task.get("heartbeat")
    return datetime.fromisoformat(beat.replace("Z", "+00:00")).timestamp() if beat else started


def _repeatable(original):
    def start_execution(data):
        running = _running(data)
        if running and _same_input(running["input"], data.get("input", "{}")):
            return json_response({"executionArn": running["executionArn"], "startDate": running["startDate"]})
        return original(data)

    return start_execution


def _running(data):
    machine = sfn._resolve_state_machine_arn(data.get("stateMachineArn", "").split("#")[0])
    if machine is None or not data.get("name"):
        return None
    name = sfn._state_machines[machine]["name"]
    arn = f"arn:aws:states:{get_region()}:{get_account_id()}:execution:{name}:{data['name']}"
    execution = sfn._executions.get(arn)
    return execution if execution and execution["status"] == "RUNNING" else None


def _same_input(one, other):
    try:
        return json.loads(one) == json.loads(other)
    except ValueError:
        return one == other
