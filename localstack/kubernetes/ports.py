"""Free ports for API servers."""

import random
import socket
import threading

_given = set()
_lock = threading.Lock()


def free_port():
    """Returns a free port below the range from which the kernel takes the ports of outgoing connections."""
    with _lock:
        for _ in range(1000):
            port = random.randrange(20000, 32000)
            if port not in _given and _is_free(port):
                _given.add(port)
                return port
    raise RuntimeError("no free port")


def _is_free(port):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
