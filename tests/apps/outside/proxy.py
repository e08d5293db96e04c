"""A proxy on loopback that answers HTTPS itself, for the hosts that an app names: as in a closed network with mirrors.

The build runner is told of the proxy and of the authority of its certificate. Other hosts are refused.
"""

import os
import socketserver
import ssl
import subprocess
import threading

EXTENSIONS = "basicConstraints=CA:FALSE\nkeyUsage=digitalSignature\nextendedKeyUsage=serverAuth\nsubjectAltName={}\n"
KEY = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"


def serve(folder, handlers):
    """Serves until the process ends; `handlers` has what answers for a host: a function of socket, address and server.

    Returns the variables that a build runner needs for it.
    """
    authority = _make_certificates(folder, handlers)
    server = Server(("127.0.0.1", 0), Tunnel)
    server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.context.load_cert_chain(folder / "server.pem", folder / "server.key")
    server.handlers = handlers
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    return {"HTTPS_PROXY": address, "GIT_SSL_CAINFO": str(authority), "SSL_CERT_FILE": str(authority)}


def _make_certificates(folder, hosts):
    (folder / "server.extensions").write_text(EXTENSIONS.format(",".join(f"DNS:{host}" for host in sorted(hosts))))
    for words in (
        f"req -x509 {KEY} -days 2 -subj /CN=mirrors -keyout authority.key -out authority.pem",
        f"req {KEY} -subj /CN=mirror -keyout server.key -out server.csr",
        "x509 -req -in server.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 2 -out server.pem "
        "-extfile server.extensions",
    ):
        env = {"PATH": os.environ["PATH"]}
        subprocess.run(["openssl", *words.split()], cwd=folder, env=env, check=True, capture_output=True)
    return folder / "authority.pem"


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # a client that hangs up


class Tunnel(socketserver.StreamRequestHandler):
    """Answers `CONNECT host:port`, and then HTTPS itself."""

    def handle(self):
        method, _, rest = self.rfile.readline().decode().partition(" ")
        host = rest.partition(":")[0]
        while self.rfile.readline().strip():
            pass
        if method != "CONNECT" or host not in self.server.handlers:
            self.wfile.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            return
        self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        with self.server.context.wrap_socket(self.request, server_side=True) as inside:
            self.server.handlers[host](inside, self.client_address, self.server)
