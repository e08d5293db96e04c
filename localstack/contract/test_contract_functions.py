"""Contract tests of functions: their logs."""

import base64
import json

from contract_cloud import Contract, needs


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
