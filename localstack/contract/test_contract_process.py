"""The contract of `cloud` itself: what it starts, listens on and leaves behind."""

import os
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

import process_tree
from contract_cloud import Instance, cloud, needs, shared, until


class Cloud(unittest.TestCase):
    @needs("lambda")
    def test_functions_end_with_the_cloud(self):
        instance = Instance()
        account = instance.account()
        account.function("f")
        pid = account.call("f")["pid"]
        before = process_tree.command_line(pid)

        stopped = instance.close()

        self.assertIn("bootstrap", before)
        self.assertIn("stopped", stopped.stdout)
        self.assertEqual("", process_tree.command_line(pid))

    @needs("lambda")
    def test_functions_can_be_given_another_endpoint(self):
        instance = Instance("--function-endpoint", "http://127.0.0.1:9")
        account = instance.account()
        account.function("f")

        endpoint = account.call("f")["env"]["AWS_ENDPOINT_URL"]

        instance.close()
        self.assertEqual("http://127.0.0.1:9", endpoint)

    @needs("registry")
    def test_logins_of_registries_can_name_another_port(self):
        instance = Instance("--registry-port", "9")
        account = instance.account()

        data = account.client("ecr").get_authorization_token()["authorizationData"][0]

        instance.close()
        self.assertTrue(data["proxyEndpoint"].endswith(".localhost:9"), data["proxyEndpoint"])

    @unittest.skipUnless(hasattr(os, "pidfd_open"), "needs Linux")
    def test_cloud_ends_with_the_process_that_it_was_started_for(self):
        with tempfile.TemporaryDirectory() as state:
            owner = subprocess.Popen(["sleep", "600"])
            self.addCleanup(owner.kill)
            cloud("up", "--detach", "--port", 0, "--state", state, "--until-pid", owner.pid)
            until(lambda: cloud("status", "--state", state).returncode == 0, "the cloud answers")

            owner.kill()
            owner.wait()

            until(lambda: cloud("status", "--state", state).returncode == 3, "the cloud ends")

    def test_port_in_use_is_named_with_the_way_out(self):
        with socket.create_server(("127.0.0.1", 0)) as taken, tempfile.TemporaryDirectory() as state:
            port = taken.getsockname()[1]
            started = cloud("up", "--detach", "--port", port, "--state", state)

        self.assertNotEqual(0, started.returncode)
        self.assertIn(f"port {port} is in use", started.stderr)
        self.assertIn("--port", started.stderr)

    def test_up_twice_and_reset_keep_one_process(self):
        again = cloud("up", "--detach", "--port", 0, "--state", shared().state)

        self.assertIn(f"{shared().endpoint} (pid ", again.stdout)
        self.assertIn("already up", again.stdout)

    def test_everything_listens_on_loopback_only(self):
        pid = int((shared().state / "cloud.pid").read_text())
        if not Path("/proc/net/tcp").exists():
            self.skipTest("needs Linux")

        self.assertEqual({"0100007F"}, set(listening_addresses(pid)))


def listening_addresses(pid):
    sockets = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                yield fields[1].partition(":")[0]


if __name__ == "__main__":
    unittest.main()
