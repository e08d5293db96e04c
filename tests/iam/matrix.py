"""Decides every question with the IAM simulator, and shows which changes of statements some decision notices."""

import argparse
import json
import os
import random
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import repeat

import templates
from customer import set_policies
from simulator import Simulator
from statement_mutants import mutants
from world import World, questions, queue_template

# Each process has a simulator of its own; more than the cores only take turns.
WORKERS = min(2, os.cpu_count() or 1)


def main():
    args = _arguments()
    with Simulator() as simulator:
        if wrong := simulator.wrong_canaries():
            sys.exit("the simulator does not answer as AWS documents:\n" + "\n".join(wrong))
    with ProcessPoolExecutor(WORKERS) as pool:
        if args.mutants:
            _mutate(pool)
            return 0
        return 1 if _decide(pool, args.tenants, args.installs) else 0


def _decide(pool, tenants, installs):
    """Asks about one tenant's principals after another; a world has the tenant and its neighbour."""
    asked = possible = 0
    wrong = []
    for count, all_of_them, found in pool.map(_decide_tenant, range(tenants), repeat(tenants), repeat(installs)):
        asked, possible, wrong = asked + count, all_of_them, wrong + found
    print("".join(f"wrong: {each}\n" for each in wrong[:50]), end="")
    right = asked - len(wrong)
    _print_figure("iam.decisions", asked, asked, right, possible=possible)
    _print_figure("iam.wrong", len(wrong), asked, right)
    return wrong


def _decide_tenant(t, tenants, installs):
    """Returns how many questions there are of a tenant's principals, how many there could be, and what is wrong."""
    world = World(tenants, installs)
    asked = [each for each in questions(world) if (world.principals[each[0]].get("t") or 0) == t]
    with Simulator() as simulator:
        return len(asked), world.possible(), simulator.wrong_decisions(world, asked)


def _mutate(pool):
    """Prints the statements that no decision notices when they permit more; the static look may notice some of them."""
    every = _mutants()
    alive = []
    chunk = range(WORKERS)
    for at, found in enumerate(pool.map(_not_noticed, chunk, repeat(WORKERS)), 1):
        alive += found
        print(
            f"iam: part {at} of {WORKERS} of {len(every)} mutants, {len(alive)} not noticed",
            file=sys.stderr,
            flush=True,
        )
    looked = [every[at][0].lets_everybody_in(every[at][1]) for at in sorted(alive)]
    for at, is_seen in zip(sorted(alive), looked, strict=True):
        print(f"{'seen by the static look only' if is_seen else 'alive'}: {every[at][0]}")
    killed = len(every) - len(alive)
    _print_figure("iam.mutants_killed", killed, len(every), killed)
    _print_figure("iam.mutants_seen", sum(looked), len(alive), sum(looked))


def _mutants():
    install = templates.install_with_roles()
    # The vendor's own policies may be as wide as the vendor likes.
    set_policies(install, [])
    originals = {"tenant": templates.tenant(), "install": install, "queues": queue_template()}
    return [(mutant, template) for name, template in originals.items() for mutant in mutants(name, template)]


def _not_noticed(first, step):
    """Returns the places of the mutants that no decision notices, of every `step`-th mutant."""
    with Simulator() as simulator:
        every = list(enumerate(_mutants()))[first::step]
        return [at for at, (mutant, template) in every if not _notices(simulator, mutant, template)]


def _notices(simulator, mutant, template):
    """Returns whether a decision changes. A mutant permits more, so that only what has to be denied is asked again, and
    only about actions that the statement is about, before or after.
    """
    world = World(2, 2 if mutant.template_name != "tenant" else 1, mutant.apply)
    is_about = cache(mutant.actions(template))
    concerned = questions(world, mutant.concerns_principal, mutant.concerns_resource, is_about)
    asked = [each for each in concerned if not each[-1]]
    # Some question of a few of all kinds answers sooner than all of the first principal.
    random.Random(0).shuffle(asked)
    world.keep(asked)
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
        help="decide nothing about the templates as they are, but make each statement permit more in turn; print those "
        "that nothing noticed",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
