"""What a machine has beside a runner: services on its addresses, a name server, an open proxy, a system bus."""

import contextlib
import os
import socket
import threading

METADATA_V4, METADATA_V6 = "169.254.169.254", "fd00:ec2::254"
# As `make-machine.sh` and `make-internet.sh` write them.
MACHINE_V4, INTERNET_V4, INTERNET_V6 = "10.77.0.1", "93.184.215.14", "2606:2800:21f::14"
UDP_PORT = 9_999
# Of the pairs in the contract: one that every user may have in a box.
PAIR_PORT = 8443
PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\ndone.\n"
BUS = "/run/dbus/system_bus_socket"


class Machine:
    """Runs the services in threads, until this process ends."""

    def __init__(self, folder):
        self.asked = []
        self.giver = f"{folder}/giver"
        self.abstract = "freehold-escapes-service"
        metadata = [(METADATA_V4, port) for port in (80, 443, PAIR_PORT)]
        for address, port in [*metadata, (METADATA_V6, 80), ("127.0.0.1", 443)]:
            listen(socket.AF_INET6 if ":" in address else socket.AF_INET, (address, port), page)
        port = listen(socket.AF_INET, ("", 0), greet)
        listen(socket.AF_INET6, ("::1", port), greet)
        listen(socket.AF_UNIX, "\0" + self.abstract, greet)
        listen(socket.AF_UNIX, BUS, greet)
        listen(socket.AF_UNIX, self.giver, give)
        listen(socket.AF_UNIX, "\0" + self.giver, give)
        self.proxy = listen(socket.AF_INET, ("127.0.0.1", 0), forward)
        self.loopback_port = port
        names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        names.bind(("127.0.0.1", 53))
        threading.Thread(target=self.answer_names, args=(names,), daemon=True).start()

    def facts(self):
        return {
            "metadata_v4": METADATA_V4,
            "metadata_v6": METADATA_V6,
            "machine_v4": MACHINE_V4,
            "internet_v4": INTERNET_V4,
            "internet_v6": INTERNET_V6,
            "name_server": "127.0.0.1",
            "loopback_port": self.loopback_port,
            "udp_port": UDP_PORT,
            "abstract_socket": self.abstract,
            "bus": BUS,
            "giver": self.giver,
            "allowed_host": "allowed.example.com",
            "other_host": "other.example.net",
            "rebinding_host": "rebinding.example.com",
            "loopback_host": "loopback.example.com",
            "pair_host": "pair.example.com",
            "rebinding_pair_host": "rebinding-pair.example.com",
            "pair_port": PAIR_PORT,
            "iam": ["iam.amazonaws.com", "vpce-1.iam.us-east-1.vpce.amazonaws.com"],
            "strangers": [
                "ec2-93-184-215-15.compute-1.amazonaws.com",
                "stranger.eu-west-1.elb.amazonaws.com",
                "stranger.execute-api.eu-west-1.amazonaws.com",
            ],
        }

    def answer_names(self, names):
        """Answers every question with one address, and keeps what was asked."""
        while True:
            query, sender = names.recvfrom(512)
            self.asked.append(query)
            end = query.index(b"\0", 12) + 5
            is_v4 = query[end - 4 : end - 2] == b"\0\1"
            record = b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4" + socket.inet_aton(INTERNET_V4) if is_v4 else b""
            head = query[:2] + b"\x81\x80\0\1" + (b"\0\1" if is_v4 else b"\0\0") + b"\0\0\0\0"
            names.sendto(head + query[12:end] + record, sender)


def listen(family, address, serve):
    """Serves every connection in a thread; returns the port."""
    listener = socket.socket(family, socket.SOCK_STREAM)
    if family != socket.AF_UNIX:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(address)
    listener.listen(64)
    if family == socket.AF_UNIX and address[0] != "\0":
        os.chmod(address, 0o777)

    def accept():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=converse, args=(serve, connection), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1] if family != socket.AF_UNIX else None


def converse(serve, connection):
    # A probe may go at any time.
    with connection, contextlib.suppress(OSError):
        serve(connection)


def page(connection):
    connection.recv(4096)
    connection.sendall(PAGE)


def greet(connection):
    connection.recv(100)
    connection.sendall(b"a service of the machine")


def give(connection):
    root = os.open("/", os.O_RDONLY)
    socket.send_fds(connection, [b"here"], [root])
    os.close(root)


def answer_datagrams(echo):
    while True:
        words, sender = echo.recvfrom(512)
        echo.sendto(words, sender)


def forward(connection):
    """Is a proxy that lets everything through: what a job would have without the runner's."""
    head = connection.recv(4096).split(b"\r\n")
    method, target = head[0].split()[:2]
    if method == b"CONNECT":
        host, _, port = target.decode().rpartition(":")
        with socket.create_connection((host.strip("[]"), int(port)), timeout=10):
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        return
    named = next((line[6:] for line in head if line.lower().startswith(b"host: ")), b"")
    host = (target[7:].split(b"/")[0] if target.startswith(b"http://") else named).decode()
    # Forms such as `2852039166` are addresses to the C library.
    host = host.strip("[]")
    with socket.create_connection((host, 80), timeout=10):
        connection.sendall(PAGE)
