"""Decides every question with the IAM simulator, and shows that some decision notices each widened statement."""

import argparse
import json
import sys

import templates
from customer import set_policies
from simulator import Simulator
from statement_mutants import mutants
from world import World, questions


def main():
    args = _arguments()
    simulator = Simulator()
    if wrong := simulator.wrong_canaries():
        sys.exit("the simulator does not answer as AWS documents:\n" + "\n".join(wrong))
    wrong = _decide(simulator, args.tenants, args.installs)
    if args.mutants:
        _widen(simulator)
    simulator.end()
    return 1 if wrong else 0


def _decide(simulator, tenants, installs):
    world = World(tenants, installs)
    asked = list(questions(world))
    wrong = simulator.wrong_decisions(world, asked)
    print("".join(f"wrong: {each}\n" for each in wrong[:50]), end="")
    _print_figure("iam.decisions", len(asked), len(asked), len(asked) - len(wrong))
    _print_figure("iam.wrong", len(wrong), len(asked), len(asked) - len(wrong))
    return wrong


def _widen(simulator):
    """Prints the widened statements that no decision notices."""
    install = templates.install()
    # The vendor's own policies may be as wide as the vendor likes.
    set_policies(install, [])
    killed, alive = 0, []
    for name, template in (("tenant", templates.tenant()), ("install", install)):
        for mutant in mutants(name, template):
            if mutant.lets_everybody_in(template) or _notices(simulator, mutant):
                killed += 1
            else:
                alive.append(f"alive: {mutant}")
    print("".join(f"{each}\n" for each in alive), end="")
    _print_figure("iam.mutants_killed", killed, killed + len(alive), killed)


def _notices(simulator, mutant):
    world = World(2, 2 if mutant.template_name == "install" else 1, mutant.apply)
    return simulator.wrong_decisions(world, [each for each in questions(world) if mutant.concerns(world, *each[:2])])


def _print_figure(name, value, attempted, passed):
    row = {"name": name, "value": value, "attempted": attempted, "passed": passed, "seed": 0}
    print(json.dumps(row), flush=True)


def _arguments():
    parser = argparse.ArgumentParser(prog="tests/iam/run", description=__doc__)
    parser.add_argument("--tenants", type=int, default=2)
    parser.add_argument("--installs", type=int, default=2, help="of each tenant")
    parser.add_argument(
        "--mutants", action="store_true", help="widen every statement in turn; print those that nothing noticed"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
