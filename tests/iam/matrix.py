"""Decides every (principal, action, resource) of a world, and shows that each widened statement would be noticed."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import world
from world import templates

HERE = Path(__file__).resolve().parent
PLACE = templates.ROOT / "target" / "iam"


class Simulator:
    """One process of the simulator."""

    def __init__(self):
        self.process = subprocess.Popen(["node", "decide.mjs"], cwd=PLACE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def decide(self, made, questions):
        """Returns for each question whether it is allowed."""
        write = self.process.stdin.write
        write(json.dumps({"principals": made.principals, "resources": made.resources}) + "\n")
        for who, what, action, context, _ in questions:
            write(json.dumps({"who": who, "what": what, "action": action, "context": context}) + "\n")
        write('{"end": true}\n')
        self.process.stdin.flush()
        answers = self.process.stdout.readline().strip()
        if len(answers) != len(questions):
            sys.exit("the simulator ended; the lines above say why")
        return [answer == "1" for answer in answers]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def wrong(made, simulator, questions):
    """Returns what is decided otherwise than it has to be."""
    answers = simulator.decide(made, questions)
    return [f"{who} {'may' if answer else 'may not'} {action} on {what}"
            for (who, what, action, _, expected), answer in zip(questions, answers) if answer != expected]


def canary(simulator):
    """Returns which known answers the simulator gets wrong: what it says of the rest is worth nothing then."""
    found = []
    for case in json.loads((HERE / "canary.json").read_text()):
        made = argparse.Namespace(
            principals={"p": {"kind": "role", "account": "111111111111", "role": "p", "identity": case.get("identity", []),
                              "boundary": case.get("boundary", [])}},
            resources={"r": {"arn": case["resource"], "account": case.get("account", "111111111111"), "policy": case.get("policy")}})
        if case.get("anonymous"):
            made.principals["p"] = {"kind": "anonymous"}
        [allowed] = simulator.decide(made, [("p", "r", case["action"], case.get("context", {}), None)])
        if allowed != case["allowed"]:
            found.append(case["what"])
    return found


def figure(name, value, attempted, passed):
    print(json.dumps({"name": name, "value": value, "attempted": attempted, "passed": passed, "seed": 0}), flush=True)


# ---- widened statements ----------------------------------------------------------------------------------------------


def holders(template):
    """Returns the path of every list of statements, with the resource that has it."""
    for name, resource in template["Resources"].items():
        properties = resource["Properties"]
        if resource["Type"] == "AWS::IAM::Role":
            yield name, "trust", properties["AssumeRolePolicyDocument"]["Statement"]
            for policy in properties.get("Policies", []) if isinstance(properties.get("Policies"), list) else []:
                if isinstance(policy.get("PolicyDocument"), dict):
                    yield name, "identity", policy["PolicyDocument"]["Statement"]
        for key in ("PolicyDocument", "KeyPolicy", "RepositoryPolicyText"):
            if key in properties and resource["Type"] != "AWS::IAM::Role":
                yield name, key, properties[key]["Statement"]


KINDS = ("dropped", "action", "resource", "condition", "principal")


def widened(statement, kind):
    """Returns the statement when it lets more through in this way: `[]` when it is gone; nothing when it cannot be."""
    if "Fn::If" in statement:
        condition, *sides = statement["Fn::If"]
        at = next(at for at, side in enumerate(sides) if "Ref" not in side)
        changed = widened(sides[at], kind)
        if changed:
            sides[at] = changed[0]
        return changed and [{"Fn::If": [condition, *sides]}]
    if statement["Effect"] == "Deny":
        return [] if kind == "dropped" else None
    action = templates.as_list(statement["Action"])[0]
    without = {key: value for key, value in statement.items() if key != "Condition"}
    changed = {
        "action": statement["Action"] != "*" and {**statement, "Action": f"{action.split(':')[0]}:*"},
        "resource": statement.get("Resource", "*") != "*" and {**statement, "Resource": "*"},
        "condition": "Condition" in statement and without,
        "principal": statement.get("Principal", "*") != "*" and {**statement, "Principal": {"AWS": "*"}},
    }.get(kind)
    return [changed] if changed else None


def mutants(template):
    """Returns each statement that can be widened: who has it, where, its number and how."""
    for name, key, statements in holders(template):
        for at, statement in enumerate(statements):
            for kind in KINDS:
                if widened(statement, kind) is not None:
                    bare = next(side for side in statement["Fn::If"][1:] if "Ref" not in side) if "Fn::If" in statement else statement
                    yield name, key, at, kind, bare.get("Sid", "")


def changing(of, name, key, at, kind):
    """Returns what widens that one statement wherever the template is used."""
    def change(which, template):
        if which == of:
            [statements] = [found for n, k, found in holders(template) if (n, k) == (name, key)]
            statements[at:at + 1] = widened(statements[at], kind)
        return template

    return change


MODES = {"provision", "maintenance", "deprovision", "bare-mode"}
# Whose decisions a statement can change: kinds of principals by who has the policy, kinds of resources by whose policy it is.
HOLDERS = {**{f"{logical}Role": {kind} for kind, logical in world.ROLES.items()}, "RunnerRole": {"runner"}, "Base": MODES, "Limits": MODES, "Boundary": MODES}
OWNERS = {"BuildQueuePolicy": {"build-queue"}, "Repository": {"registry"}, "SigningKey": {"root-key"}, "Key": {"key"}}


def concerned(made, name, key, who, what):
    """Returns whether a statement of `name` can have to do with a question; of two tenants alike one is asked about."""
    principal, resource = made.principals[who], made.resources[what]
    if principal.get("t", 0) != 0:
        return False
    if key == "trust":
        return resource["kind"] in ("runner-role", "mode-role", "function-role")
    if name in OWNERS:
        return resource["kind"] in OWNERS[name]
    return principal["kind"] in HOLDERS.get(name, {principal["kind"]})


def main():
    parser = argparse.ArgumentParser(prog="tests/iam/run", description=__doc__)
    parser.add_argument("--tenants", type=int, default=2)
    parser.add_argument("--installs", type=int, default=2, help="of each tenant")
    parser.add_argument("--mutants", action="store_true", help="widen every statement in turn; prints those that nothing noticed")
    args = parser.parse_args()
    simulator = Simulator()
    known = canary(simulator)
    if known:
        sys.exit("the simulator does not answer as AWS documents:\n" + "\n".join(known))
    made = world.World(args.tenants, args.installs)
    questions = list(world.questions(made))
    found = wrong(made, simulator, questions)
    print("".join(f"wrong: {one}\n" for one in found[:50]), end="")
    figure("iam.decisions", len(questions), len(questions), len(questions) - len(found))
    figure("iam.wrong", len(found), len(questions), len(questions) - len(found))
    if args.mutants:
        killed, alive = 0, []
        for of, template in (("tenant", templates.tenant()), ("install", templates.parse(templates.install_text(PROVISION_POLICIES="[]")))):
            for name, key, at, kind, sid in mutants(template):
                made = world.World(2, 1, changing(of, name, key, at, kind))
                if wrong(made, simulator, [one for one in world.questions(made) if concerned(made, name, key, *one[:2])]):
                    killed += 1
                else:
                    alive.append(f"alive: {of} {name} {key} {at} {sid}: {kind}")
        print("".join(f"{one}\n" for one in alive), end="")
        figure("iam.mutants_killed", killed, killed + len(alive), killed)
    simulator.end()
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
