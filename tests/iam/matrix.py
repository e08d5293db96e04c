"""Decides every question with the IAM simulator, and shows which changes of statements some decision notices."""

import argparse
import json
import os
import random
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from typing import NamedTuple

import templates
from customer import set_policies
from simulator import Simulator
from statement_mutants import left_out, mutants
from touched import Change, Questions
from world import World, questions, queue_template

# Each process has a simulator of its own; more than the cores only take turns.
WORKERS = min(2, os.cpu_count() or 1)
# Of each mutant, how many questions are asked that it should not be able to touch.
SPARED = 32
# What a process keeps from one mutant to the next.
SHARED = {}


def main():
    args = _arguments()
    with Simulator() as simulator:
        if wrong := simulator.wrong_canaries():
            sys.exit("the simulator does not answer as AWS documents:\n" + "\n".join(wrong))
    if args.mutants:
        with ProcessPoolExecutor(WORKERS, initializer=_prepare) as pool:
            return 1 if _mutate(pool, args) else 0
    with ProcessPoolExecutor(WORKERS) as pool:
        return 1 if _decide(pool, args.tenants, args.installs) else 0


def _decide(pool, tenants, installs):
    """Asks about one tenant's principals after another; a world has the tenant and its neighbour."""
    asked = possible = 0
    wrong = []
    for t, (count, all_of_them, found) in enumerate(
        pool.map(_decide_tenant, range(tenants), repeat(tenants), repeat(installs)), 1
    ):
        asked, possible, wrong = asked + count, all_of_them, wrong + found
        _say(f"{t} of {tenants} tenants, {asked:,} questions, {len(wrong)} wrong")
    print("".join(f"wrong: {each}\n" for each in wrong[:50]), end="")
    right = asked - len(wrong)
    _print_figure("iam.decisions", asked, asked, right, possible=possible)
    _print_figure("iam.wrong", len(wrong), asked, right)
    return wrong


def _decide_tenant(t, tenants, installs):
    """Returns how many questions there are of a tenant's principals, how many there could be, and what is wrong."""
    world = World(tenants, installs)
    possible = world.possible()
    asked = [each for each in questions(world) if (world.principals[each[0]].get("t") or 0) == t]
    world.keep(asked)
    with Simulator() as simulator:
        return len(asked), possible, simulator.wrong_decisions(world, asked)


def choose(places, count, seed):
    """Returns as many of the places as are asked for, drawn by the seed and in order; all of them without a count."""
    return places if count is None else sorted(random.Random(seed).sample(places, min(count, len(places))))


def _mutate(pool, args):
    """Prints the statements that no decision notices when they permit more; the static look may notice some of them.

    Returns what is wrong: a mutant that nothing noticed, or an answer that should not have changed.
    """
    every = _mutants()
    named = [at for at, (mutant, _, _) in enumerate(every) if args.named in str(mutant)]
    chosen = choose(named, args.drawn, args.seed)
    asked, spared, unforeseen, alive, equal = 0, 0, [], [], 0
    for count, (at, answer) in enumerate(zip(chosen, pool.map(_try_mutant, chosen), strict=True), 1):
        mutant, _, is_equal = every[at]
        asked, spared, unforeseen = asked + answer.asked, spared + answer.spared, unforeseen + answer.unforeseen
        equal += is_equal
        if is_equal and answer.is_noticed:
            unforeseen.append(f"{mutant}: `permits_no_more` says that it is not a mutant")
        elif not is_equal and not answer.is_noticed:
            alive.append(at)
            _say(f"not noticed by {answer.asked:,} questions: {mutant}")
        if count % 20 == 0 or count == len(chosen):
            _say(f"{count} of {len(chosen)} mutants, {asked:,} questions, {len(alive)} not noticed")
    looked = [every[at][0].lets_everybody_in(every[at][1]) for at in alive]
    for at, is_seen in zip(alive, looked, strict=True):
        print(f"{'seen by the static look only' if is_seen else 'alive'}: {every[at][0]}")
    print("".join(f"left out, and yet noticed: {each}\n" for each in unforeseen[:50]), end="")
    made = len(chosen) - equal
    _print_figure("iam.mutants_killed", made - len(alive), made, made - len(alive), seed=args.seed)
    _print_figure("iam.mutants_seen", sum(looked), len(alive), sum(looked), seed=args.seed)
    _print_figure("iam.left_out", len(unforeseen), spared + equal, spared + equal - len(unforeseen), seed=args.seed)
    return unforeseen or not all(looked)


def originals():
    """Returns the templates whose statements are changed, by their names."""
    install = templates.install_with_roles()
    # The vendor's own policies may be as wide as the vendor likes.
    set_policies(install, [])
    return {"tenant": templates.tenant(), "install": install, "queues": queue_template()}


def _mutants():
    """Returns every mutant with its template, and whether it is one that is left out."""
    return [
        (mutant, template, is_equal)
        for name, template in originals().items()
        for is_equal, found in ((False, mutants(name, template)), (True, left_out(name, template)))
        for mutant in found
    ]


class Tried(NamedTuple):
    """Whether a decision noticed a mutant, and how many questions it took; spared are those that it cannot touch."""

    is_noticed: bool
    asked: int
    spared: int
    unforeseen: list


def _prepare():
    """Gives a process its own simulator, the mutants, the world as it is, and the questions that IAM has to deny."""
    world = World(2, 2)
    denied = Questions(each for each in questions(world) if not each[-1])
    SHARED.update(simulator=Simulator(), mutants=_mutants(), world=world, denied=denied)


def _try_mutant(at):
    """Asks what the mutant can touch. It permits more, so that only what has to be denied is asked again.

    A few questions that it should not be able to touch are asked too, to show that nothing is left out wrongly. The
    question that notices it is asked without it, too: there its answer has to be right.
    """
    simulator, (mutant, _, _) = SHARED["simulator"], SHARED["mutants"][at]
    world = World(2, 2, mutant.apply)
    change = Change(SHARED["world"], world)
    denied, draw = SHARED["denied"], random.Random(at)
    asked, others = change.split(denied)
    # Some question of a few of all kinds answers sooner than all of the first principal.
    draw.shuffle(asked)
    others = draw.sample(others, min(SPARED, len(others)))
    asked, others = ([denied.every[each] for each in places] for places in (asked, others))
    world.keep(asked + others)
    unforeseen = [f"{mutant}: {each}" for each in simulator.wrong_decisions(world, others)]
    done, size = 0, 64
    while done < len(asked):
        part = asked[done : done + size]
        done, size = done + len(part), 4 * size
        if wrong := simulator.wrong(world, part):
            before = SHARED["world"].of(wrong[:1])
            unforeseen += [f"without {mutant}: {each}" for each in simulator.wrong_decisions(before, wrong[:1])]
            return Tried(True, done, len(others), unforeseen)
    return Tried(False, done, len(others), unforeseen)


def _say(what):
    print(f"iam: {what}", file=sys.stderr, flush=True)


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
    parser.add_argument("--named", default="", metavar="TEXT", help="only mutants with this in their name")
    parser.add_argument("--drawn", type=int, metavar="N", help="only as many mutants, drawn by the seed")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the mutants that are drawn (0)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
