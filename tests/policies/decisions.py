"""Compares what policies say here with what they say in OPA.

Draws policies and plans, adds the policies of every install, and asks each policy about each plan twice: in the process
in which a runner evaluates policies, and in OPA. Prints the figures of docs/figures.md as JSON lines.

OPA as a library stops at a function that fails, where `opa eval` and a runner continue without a value. Such
decisions are not compared, and the program says how many there were. A policy whose comprehension defines a variable
again is not read here; `policies.read` counts such policies.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import skips

import plans
import rules

# What is said here of a policy whose comprehension defines a variable again, which OPA permits.
SHADOWED = "used before definition below"
ROOT = Path(__file__).resolve().parents[2]
ASKER = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "debug/policy-asker"
BUILT_IN = ROOT / "crates/policy/src/built_in"


def main():
    args = _arguments()
    try:
        from opa_bindings.engine import OpaEngine
    except (ImportError, OSError) as error:
        skips.skip("policies.decisions", f"OPA cannot be had on this machine: {error}")
        return skips.ALL_SKIPPED
    draw = random.Random(args.seed)
    texts = [path.read_text() for path in sorted(BUILT_IN.glob("*.rego"))]
    texts += [rules.policy(draw) for _ in range(args.policies)]
    documents = [plans.plan(draw) for _ in range(args.plans)]
    attempted = passed = refused = stopped = unread = 0
    for text in texts:
        theirs = _opa(OpaEngine, text, documents)
        ours = _here(text, documents) if theirs is not None else None
        if theirs is None:
            # OPA's compiler proves mistakes that an interpreter finds only when it gets there.
            refused += 1
            continue
        if all(SHADOWED in here.get("failed", "") for here in ours):
            unread += 1
            continue
        for document, there, here in zip(documents, theirs, ours, strict=True):
            if there is None:
                stopped += 1
                continue
            attempted += 1
            passed += there == here
            if there != here:
                print(f"OPA: {there}\nhere: {here}\n{text}\n{json.dumps(document)}\n", file=sys.stderr)
    print(f"policies: OPA's compiler refused {refused} of {len(texts)}; it stopped {stopped} times", file=sys.stderr)
    known = len(texts) - refused
    rows = {"policies.read": (known, known - unread), "policies.decisions": (attempted, passed)}
    for name, (of, equal) in rows.items():
        figure = {"name": name, "value": equal, "attempted": of, "passed": equal, "seed": args.seed}
        print(json.dumps(figure), flush=True)
    return 0 if attempted and passed == attempted else 1


def _opa(engine_of, text, documents):
    """Returns what OPA says about each document, and nothing for a policy that it refuses."""
    engine = engine_of()
    package = text.split("package ", 1)[1].split()[0]
    results = []
    try:
        engine.add_policy("policy.rego", text)
        engine.eval_query("x := 1", {})
        for document in documents:
            results.append(_result(engine, package, document))
        return results
    except Exception as error:
        if any(word in str(error) for word in ("rego_type_error", "rego_compile_error", "rego_unsafe_var_error")):
            return None
        raise
    finally:
        engine.close()


def _result(engine, package, document):
    try:
        found = engine.eval_query(f"x := data.{package}", document)
    except Exception as error:
        if "eval_" in str(error):
            return None
        raise
    found = found[0]["x"] if found else {}
    return {rule: sorted(found.get(rule, [])) for rule in ("deny", "warn")}


def _here(text, documents):
    """Returns what the process of a runner says about each document."""
    answers = []
    for document in documents:
        question = {"policies": [{"file": "policy.rego", "text": text}], "inputs": [document], "memory_mib": 1024}
        ran = subprocess.run([ASKER, "policy-asker"], input=json.dumps(question).encode(), capture_output=True)
        answer = json.loads(ran.stdout) if ran.stdout else {"failed": f"exit code {ran.returncode}"}
        answers.append(answer.get("says", answer))
    return answers


def _arguments():
    parser = argparse.ArgumentParser(prog="tests/policies/run", description=__doc__)
    parser.add_argument("--policies", type=int, metavar="N", default=200, help="how many policies are drawn (200)")
    parser.add_argument("--plans", type=int, metavar="N", default=50, help="how many plans are drawn (50)")
    parser.add_argument("--seed", type=int, metavar="N", default=1, help="the seed of everything that is drawn (1)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
