"""Starts MiniStack on loopback with the shims that bring it closer to AWS.

`cloud` starts this file with a clean environment. A shim replaces a private function, so the version is
checked exactly and every replaced name must exist. Each shim has its test in test_contract*.py.
"""

import importlib.metadata
import os
import sys
import threading

VERSION = "1.5.33"


def main():
    found = importlib.metadata.version("ministack")
    if found != VERSION:
        sys.exit(f"the shims are written for MiniStack {VERSION}, found {found}; check them with `cloud test` first")
    if os.environ.get("BIND_HOST") != "127.0.0.1":
        sys.exit("BIND_HOST must be 127.0.0.1: any 12-digit access key is an account's root here")
    until_pid = argument("--until-pid")
    sys.argv = sys.argv[:1]  # MiniStack parses the command line too, and must not see our options

    import moved_clock
    import shims

    moved_clock.mend_sleep()
    shims.apply()
    if until_pid:
        threading.Thread(target=end_with, args=(int(until_pid),), daemon=True).start()

    from ministack.app import main as serve

    code = 0
    try:
        serve()
    except SystemExit as end:
        code = end.code or 0
    except KeyboardInterrupt:
        pass
    finally:
        _end_children()
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)  # does not wait for worker threads inside a function call; there is no state to save


def argument(name):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None


def end_with(pid):
    """Ends this process when the process `pid` ends, even when it is killed, so that no test run leaves a cloud."""
    import select

    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        handle = None
    except (AttributeError, OSError) as error:
        print(f"--until-pid is not available here: {error}", file=sys.stderr)
        return
    if handle is not None:
        select.select([handle], [], [])
    _end_children()
    os._exit(0)


def _end_children():
    """Kills the function processes, which MiniStack leaves running."""
    import signal

    import process_tree

    for pid in process_tree.descendants(os.getpid()):
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass  # it has ended already, or it is a grandchild, for which only its parent can wait


if __name__ == "__main__":
    main()
