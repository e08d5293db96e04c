"""Decides every question with the IAM simulator, and shows which changes of statements some decision notices."""

import argparse
import json
import sys

import templates
from customer import set_policies
from simulator import Simulator
from statement_mutants import mutants
from world import World, questions, queue_template


def main():
    args = _arguments()
    simulator = Simulator()
    if wrong := simulator.wrong_canaries():
        sys.exit("the simulator does not answer as AWS documents:\n" + "\n".join(wrong))
    wrong = _decide(simulator, args.tenants, args.installs)
    if args.mutants:
        _mutate(simulator)
    simulator.end()
    return 1 if wrong else 0


def _decide(simulator, tenants, installs):
    world = World(tenants, installs)
    asked = list(questions(world))
    wrong = simulator.wrong_decisions(world, asked)
    print("".join(f"wrong: {each}\n" for each in wrong[:50]), end="")
    right = len(asked) - len(wrong)
    _print_figure("iam.decisions", len(asked), len(asked), right, possible=world.possible())
    _print_figure("iam.wrong", len(wrong), len(asked), right)
    return wrong


def _mutate(simulator):
    """Prints the statements that no decision notices when they permit more; the static look may notice some of them."""
    install = templates.install_with_roles()
    # The vendor's own policies may be as wide as the vendor likes.
    set_policies(install, [])
    originals = {"tenant": templates.tenant(), "install": install, "queues": queue_template()}
    every = [(mutant, template) for name, template in originals.items() for mutant in mutants(name, template)]
    alive = []
    for at, (mutant, template) in enumerate(every, 1):
        if not _notices(simulator, mutant):
            alive.append((mutant, template))
        if at % 50 == 0 or at == len(every):
            print(f"iam: {at} of {len(every)} mutants, {len(alive)} not noticed", file=sys.stderr, flush=True)
    looked = [mutant.lets_everybody_in(template) for mutant, template in alive]
    for (mutant, _), is_seen in zip(alive, looked, strict=True):
        print(f"{'seen by the static look only' if is_seen else 'alive'}: {mutant}")
    killed = len(every) - len(alive)
    _print_figure("iam.mutants_killed", killed, len(every), killed)
    _print_figure("iam.mutants_seen", sum(looked), len(alive), sum(looked))


def _notices(simulator, mutant):
    """Returns whether a decision changes. A mutant permits more, so that only what has to be denied is asked again."""
    world = World(2, 2 if mutant.template_name != "tenant" else 1, mutant.apply)
    asked = [each for each in questions(world) if not each[-1] and mutant.concerns(world, *each[:2])]
    size = 64
    while asked:
        if simulator.wrong_decisions(world, asked[:size]):
            return True
        asked, size = asked[size:], 4 * size
    return False


def _print_figure(name, value, attempted, passed, **more):
    row = {"name": name, "value": value, "attempted": attempted, "passed": passed, "seed": 0, **more}
    print(json.dumps(row), flush=True)


def _arguments():
    parser = argparse.ArgumentParser(prog="tests/iam/run", description=__doc__)
    parser.add_argument("--tenants", type=int, default=2)
    parser.add_argument("--installs", type=int, default=2, help="of each tenant")
    parser.add_argument(
        "--mutants",
        action="store_true",
        help="make each statement permit more in turn; print those that nothing noticed",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
