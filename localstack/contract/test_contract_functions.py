"""Contract tests of functions: their logs, and code that is unpacked before a function is called."""

import base64
import hashlib
import json
import tempfile
from pathlib import Path

import bootstrap
from contract_cloud import BOOTSTRAP, Contract, Instance, needs


@needs("lambda")
class Logs(Contract):
    def test_log_that_a_function_writes_before_its_answer_comes_with_the_answer(self):
        self.account.function("f")

        logs = [self.log(lines) for lines in (0, 400, 0, 1, 2)]

        self.assertEqual([[str(n) for n in range(lines)] for lines in (0, 400, 0, 1, 2)], logs)

    def log(self, lines):
        """Returns the lines of the log of one call, in which the function writes as many."""
        answer = self.account.client("lambda").invoke(
            FunctionName="f", LogType="Tail", Payload=json.dumps({"lines": lines} if lines else {})
        )
        return base64.b64decode(answer.get("LogResult", "")).decode().splitlines()


@needs("lambda")
class Unpacked(Contract):
    def test_code_that_is_unpacked_runs_where_it_is_and_other_code_does_not(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        known = Path(place.name).resolve() / hashlib.sha256(bootstrap.packed(BOOTSTRAP)).hexdigest()
        known.mkdir()
        (known / "bootstrap").write_text(BOOTSTRAP)
        (known / "bootstrap").chmod(0o555)
        instance = Instance(env={"FREEHOLD_UNPACKED": str(known.parent)})
        self.addCleanup(instance.close)
        account = instance.account()
        account.function("known")
        account.function("other", script=f"{BOOTSTRAP}# other code\n")

        roots = [Path(account.call(name)["env"]["LAMBDA_TASK_ROOT"]) for name in ("known", "other")]

        self.assertEqual(known, roots[0])
        self.assertIn(instance.state, roots[1].parents)
