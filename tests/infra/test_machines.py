"""The state machines: their graphs are sound, nothing waits for ever, and roles fit definitions."""

import json
import re
import unittest

import machines
import templates
from intrinsics import statements
from templates import as_list, of_type, properties, resource_text

INVOKE = "arn:aws:states:::lambda:invoke"
WAIT = f"{INVOKE}.waitForTaskToken"
# The heartbeat begins when the customer has launched the install stack, which may take days.
WITHOUT_HEARTBEAT = {"await_runner"}
TRANSIENT = {
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.TooManyRequestsException",
    "Lambda.Unknown",
    "Sandbox.Timedout",
    "Runtime.ExitError",
    "Transient",
}
ENDS = {"Succeed", "Fail"}
PHASES = {
    "register": "RegisterInstall",
    "await_runner": "PlanWorkflow",
    "plan": "PlanWorkflow",
    "run": "PlanWorkflow",
    "finish": "FinishWorkflow",
}


def targets(state):
    """Returns every state that may follow this one."""
    after = [state[key] for key in ("Next", "Default") if key in state]
    return after + [rule["Next"] for key in ("Choices", "Catch") for rule in state.get(key, [])]


def longest(states, start, seen=()):
    """Returns the number of states on the longest path without an error."""
    state = states[start]
    ways = [state[key] for key in ("Next", "Default") if key in state] + [
        rule["Next"] for rule in state.get("Choices", [])
    ]
    return 1 + max((longest(states, way, (*seen, start)) for way in ways if way not in seen), default=0)


class Machines(unittest.TestCase):
    def setUp(self):
        self.machines = templates.machines()

    def states(self, *kinds):
        for name, machine in self.machines.items():
            for label, state in machine["States"].items():
                if not kinds or state["Type"] in kinds:
                    with self.subTest(machine=name, state=label):
                        yield label, state

    def test_there_is_one_for_each_machine_of_the_stack(self):
        stack = of_type(templates.tenant(), "AWS::StepFunctions::StateMachine")

        self.assertEqual({f"{logical}Machine" for logical in templates.DEFINITIONS.values()}, set(stack))
        self.assertEqual(
            {file["DefinitionS3Location"]["Key"]["Ref"] for file in (have["Properties"] for have in stack.values())},
            set(templates.DEFINITION_FILES),
        )
        self.assertEqual(
            {f"{name}.asl.json" for name in templates.DEFINITION_FILES.values()}, set(machines.definitions())
        )

    def test_each_definition_is_what_the_source_says(self):
        self.assertEqual(machines.stale(), [], f"run {machines.COMMAND}")

    def test_every_target_exists_and_every_state_is_reached(self):
        for name, machine in self.machines.items():
            reached, todo = set(), [machine["StartAt"]]
            while todo:
                label = todo.pop()
                self.assertIn(label, machine["States"], name)
                if label not in reached:
                    reached.add(label)
                    todo += targets(machine["States"][label])
            self.assertEqual(reached, set(machine["States"]), name)

    def test_only_an_end_has_nothing_after_it(self):
        for _, state in self.states():
            self.assertEqual(not targets(state), state["Type"] in ENDS)
            self.assertNotIn("End", state)

    def test_every_task_has_a_time_limit_longer_than_its_functions(self):
        template = templates.tenant()
        for _, state in self.states("Task"):
            function = state["Parameters"]["FunctionName"].strip("${}")
            self.assertGreater(state["TimeoutSeconds"], properties(template, function)["Timeout"])

    def test_every_waiting_task_has_a_heartbeat_and_a_token(self):
        for _, state in self.states("Task"):
            payload = state["Parameters"]["Payload"]
            self.assertIn(state["Resource"], (INVOKE, WAIT))
            self.assertEqual(payload.get("token.$"), "$$.Task.Token" if state["Resource"] == WAIT else None)
            if state["Resource"] == WAIT and payload["phase"] not in WITHOUT_HEARTBEAT:
                self.assertLess(state["HeartbeatSeconds"], state["TimeoutSeconds"])

    def test_every_task_retries_what_passes_by_itself_with_jitter(self):
        for _, state in self.states("Task"):
            [retry] = state["Retry"]
            self.assertEqual(set(retry["ErrorEquals"]), TRANSIENT)
            self.assertEqual(retry["JitterStrategy"], "FULL")
            self.assertLessEqual(retry["MaxAttempts"], 20)

    def test_the_sweep_gives_a_workflow_up_after_the_last_try_to_plan_it(self):
        plan = self.machines["run-action"]["States"]["Plan"]
        [retry] = plan["Retry"]
        tries = retry["MaxAttempts"] + 1
        waits = [retry["IntervalSeconds"] * retry["BackoffRate"] ** turn for turn in range(retry["MaxAttempts"])]
        longest = tries * plan["TimeoutSeconds"] + sum(min(wait, retry["MaxDelaySeconds"]) for wait in waits)
        sweep = (templates.ROOT / "crates/app/src/sweep/mod.rs").read_text()
        minutes = int(re.search(r"const UNPLANNED_SECS: u64 = (\d+) \* 60;", sweep).group(1))
        self.assertLess(longest, minutes * 60)

    def test_every_task_retries_alike(self):
        for _, state in self.states("Task"):
            self.assertEqual(state["Retry"], self.machines["run-action"]["States"]["Plan"]["Retry"])

    def test_every_task_catches_everything(self):
        for label, state in self.states("Task"):
            [catch] = state["Catch"]
            self.assertEqual(catch["ErrorEquals"], ["States.ALL"])
            self.assertEqual(catch["Next"], "Unfinished" if label == "FinishFailed" else "FinishFailed")

    def test_payloads_are_a_phase_and_ids(self):
        for label, state in self.states("Task"):
            payload = state["Parameters"]["Payload"]
            self.assertEqual(state["Parameters"]["FunctionName"], f"${{{PHASES[payload['phase']]}}}")
            self.assertEqual(payload["workflow.$"], "$.workflow")
            self.assertLessEqual(set(payload), {"phase", "workflow.$", "attempt.$", "token.$", "error.$"})
            self.assertEqual("error.$" in payload, label == "FinishFailed")

    def test_results_are_one_word_beside_the_ids(self):
        for _, state in self.states("Task"):
            self.assertNotEqual(state["ResultPath"], "$")
            if state["Resource"] == INVOKE and state["ResultPath"] is not None:
                self.assertIn(state["ResultSelector"], ({"next.$": "$.Payload.next"}, {"state.$": "$.Payload.state"}))

    def test_a_deploy_takes_at_most_twelve_transitions(self):
        for name, machine in self.machines.items():
            self.assertLessEqual(longest(machine["States"], machine["StartAt"]), 12, name)

    def test_an_execution_succeeds_only_when_its_workflow_did(self):
        for name, machine in self.machines.items():
            states = machine["States"]
            into_success = {label for label, state in states.items() if "Succeeded" in targets(state)}
            self.assertEqual(into_success, {"EndedHow"}, name)
            self.assertEqual(
                states["EndedHow"]["Choices"],
                [{"Variable": "$.finish.state", "StringEquals": "succeeded", "Next": "Succeeded"}],
                name,
            )
            self.assertEqual(states["Failed"]["ErrorPath"], "$.finish.state", name)

    def test_each_machines_role_invokes_exactly_what_its_definition_names(self):
        template = templates.tenant()
        for name, machine in self.machines.items():
            logical = templates.DEFINITIONS[name]
            named = set(re.findall(r"\$\{(\w+)\}", json.dumps(machine)))
            substituted = properties(template, f"{logical}Machine")["DefinitionSubstitutions"]
            invoked = {
                resource_text(resource)
                for s in statements(template["Resources"][f"{logical}MachineRole"])
                if "lambda:InvokeFunction" in as_list(s["Action"])
                for resource in as_list(s["Resource"])
            }

            self.assertEqual({f"{function}.Arn" for function in named}, invoked, name)
            self.assertEqual(
                {key: resource_text(value) for key, value in substituted.items()},
                {function: f"{function}.Arn" for function in named},
                name,
            )

    def test_every_machine_logs_its_errors_without_data(self):
        for name, machine in of_type(templates.tenant(), "AWS::StepFunctions::StateMachine").items():
            have = machine["Properties"]
            self.assertEqual(
                (have["StateMachineType"], have["LoggingConfiguration"]["Level"]), ("STANDARD", "ERROR"), name
            )
            self.assertFalse(have["LoggingConfiguration"]["IncludeExecutionData"], name)
