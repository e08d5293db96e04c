"""Starts LocalStack on loopback, without Docker: a second emulator, with which requests and responses are compared.

`cloud up --engine localstack` starts this file with a clean environment.
"""

import importlib.metadata
import os
import sys
import threading

import launcher

VERSION = "4.9.2"


def main():
    found = importlib.metadata.version("localstack-core")
    if found != VERSION:
        sys.exit(f"`cloud` names LocalStack {VERSION}, found {found}")
    if not os.environ.get("GATEWAY_LISTEN", "").startswith("127.0.0.1:"):
        sys.exit("GATEWAY_LISTEN must be at 127.0.0.1: any access key is an account's root here")
    if until_pid := launcher.argument("--until-pid"):
        threading.Thread(target=launcher.end_with, args=(int(until_pid),), daemon=True).start()
    sys.argv = sys.argv[:1]
    _listen_on_loopback_only()

    from localstack.runtime.main import main as serve

    serve()


def _listen_on_loopback_only():
    """Gives Twisted's servers an interface: LocalStack takes the port of GATEWAY_LISTEN and leaves its host out."""
    from twisted.internet import endpoints

    class LoopbackEndpoint(endpoints.TCP4ServerEndpoint):
        def __init__(self, reactor, port, backlog=50, interface="127.0.0.1"):
            super().__init__(reactor, port, backlog, interface)

    endpoints.TCP4ServerEndpoint = LoopbackEndpoint


if __name__ == "__main__":
    main()
