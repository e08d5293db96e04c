"""The main job where nothing is reachable but the endpoints of the local cloud; counts the requests of the runner.

It runs in a network namespace that has only its loopback interface, so whatever asks the internet for something fails.
The runner of the install reaches the local cloud through a proxy that counts each request by its service. A service
that the install stack makes no VPC endpoint for fails the run: such a runner would stand still in a private network.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections import Counter

import demo
from programs import APP, BIN, CLOUD, FUNCTIONS, INSTALL, ROOT, TENANT, VENDOR, Failed, Programs
from templates import endpoint_service, of_type, parse

FILES = ROOT / "target" / "closed" / "files"
# How the proxy names a service, where that is not the name in the service's endpoint.
ENDPOINTS = {"registry": "ecr.dkr", "ecr": "ecr.api"}
# What the main job cannot do without: fewer of them counted means that requests went around the proxy.
NEEDED = {"cloudformation", "ecr.api", "ecr.dkr", "iam", "s3", "sqs", "sts"}
OUTSIDE = [("192.0.2.1", 443), ("8.8.8.8", 53), ("169.254.169.254", 80)]


class Closed(Programs):
    """The demo's programs, with a counting proxy between the runner of the install and the cloud."""

    def __init__(self):
        super().__init__(FILES)
        self.proxy = None

    def start_own_cloud(self):
        """Starts the cloud behind the proxy, which is where every registry says that it is."""
        port = self.free_port()
        self.start_proxy(port)
        state = self.own_cloud = self.files.parent / "cloud"
        place = ("--port", port, "--registry-port", self.proxy.rpartition(":")[2], "--state", state)
        self._run(CLOUD, "up", "--detach", *place, "--until-pid", os.getpid())
        self.endpoint = (state / "endpoint").read_text().strip()

    def free_port(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            return listener.getsockname()[1]

    def start_proxy(self, port):
        command = [BIN / "fault-proxy", "--upstream", f"http://127.0.0.1:{port}", "--seed", "1"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.runners.append(process)
        self.proxy = process.stdout.readline().split()[3]

    def start_runner(self, role, config, account, role_name, variables=None, quiet=False):
        """Starts a runner; the one of the install reaches the cloud through the proxy, which counts from here on."""
        if role != "build":
            urllib.request.urlopen(urllib.request.Request(f"{self.proxy}/__proxy/reset", method="POST")).close()
            variables = {**(variables or {}), "AWS_ENDPOINT_URL": self.proxy}
        super().start_runner(role, config, account, role_name, variables, quiet)

    def requests(self):
        """Returns how many requests the proxy passed on, by the name of the endpoint that takes them on AWS."""
        with urllib.request.urlopen(f"{self.proxy}/__proxy/counts") as answer:
            operations = json.load(answer)["operations"]
        counts = Counter()
        for name, each in operations.items():
            service = name.split(".")[0]
            counts[ENDPOINTS.get(service, service)] += each["requests"]
        return counts


def run(programs):
    nothing_else_is_reachable()
    shutil.rmtree(FILES, ignore_errors=True)
    FILES.mkdir(parents=True)
    programs.start_own_cloud()
    tenant = ("--name", TENANT, "--functions", FUNCTIONS)
    principal = f"arn:aws:iam::{VENDOR}:root"
    programs.freehold("tenant", "deploy", *tenant, "--build-runner-principal", principal)
    programs.freehold("app", "sync", demo.make_app(programs))
    demo.start_build_runner(programs)
    programs.freehold("build", APP)
    template, workflow = demo.create_install(programs)
    demo.launch(programs, template)
    programs.freehold("workflow", "watch", workflow)
    change = "greeting=good morning" if programs.terraform else "retention_days=30"
    programs.freehold("deploy", INSTALL, "--input", change)
    return judge(programs.requests(), endpoints(template))


def nothing_else_is_reachable():
    """Fails unless every connection to the outside is refused by this namespace itself, at once."""
    for place in OUTSIDE:
        try:
            socket.create_connection(place, timeout=5).close()
        except OSError as error:
            if isinstance(error, TimeoutError):
                raise Failed(f"{place[0]} did not answer, which is not the same as not being reachable") from error
            continue
        raise Failed(f"{place[0]}:{place[1]} is reachable, so this network is not closed")


def endpoints(template):
    """Returns the services that the launched install stack makes a VPC endpoint for, where the customer wants them."""
    return set(map(endpoint_service, of_type(parse(template.read_text()), "AWS::EC2::VPCEndpoint").values()))


def judge(counts, known):
    """Prints the counts as a table; fails on a service without an endpoint, and when requests are missing."""
    for service in sorted(known | set(counts)):
        note = "" if service in known else "  no endpoint in the install stack"
        print(f"{service:<16} {counts[service]:>6}{note}")
    strangers = sorted(set(counts) - known)
    if strangers:
        raise Failed(f"the install stack makes no VPC endpoint for {', '.join(strangers)}, which its runner called")
    missing = sorted(NEEDED - set(counts))
    if missing:
        raise Failed(f"no request to {', '.join(missing)} was counted, so requests went around the proxy")
    return f"{sum(counts.values())} requests to {len(counts)} of {len(known)} endpoints, none to anything else"


def main():
    programs = Closed()
    try:
        print(f"closed: ok: {run(programs)}")
    except Failed as failure:
        print(f"closed: failed: {failure}")
        return 1
    finally:
        programs.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
