"""Serves the repositories that apps name from this machine: by HTTPS behind a proxy, as in a closed network.

The build runner is told of the proxy and of the certificate that it answers with.
"""

import http.server
import os
import shutil
import socketserver
import ssl
import subprocess
import threading

HOST = "github.com"
# The same commit for the same files, on every machine.
AUTHOR = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in {"NAME": "apps", "EMAIL": "apps@localhost", "DATE": "2026-01-01T00:00:00Z"}.items()
}


class Repositories:
    """Git repositories of the folders OWNER/NAME below `sources`."""

    def __init__(self, sources, folder):
        self._sources, self._folder = sources, folder
        (folder / HOST).mkdir(parents=True)

    def copy(self, repository):
        """Returns a copy of a repository's files to change, or nothing when the sources have no such folder."""
        original, copy = self._sources / repository, self._folder / HOST / repository
        if not original.is_dir():
            return None
        if not copy.exists():
            shutil.copytree(original, copy, symlinks=True)
        return copy

    def commit(self, repository, references):
        folder = self._folder / HOST / repository
        self._git(folder, "init", "--quiet", "--initial-branch", "main")
        self._git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
        self._git(folder, "add", "--all", "--force")
        self._git(folder, "commit", "--quiet", "--message", "as given")
        for reference in references - {"main"}:
            self._git(folder, "branch", "--quiet", reference)

    def serve(self):
        """Serves the repositories until the process ends; returns the variables that a build runner needs for it."""
        certificate, key = self._folder / "certificate.pem", self._folder / "key.pem"
        words = f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN={HOST}"
        words += f" -keyout {key} -out {certificate} -addext subjectAltName=DNS:{HOST}"
        subprocess.run(["openssl", *words.split()], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server = Server(("127.0.0.1", 0), Proxy)
        server.context, server.root = context, self._folder
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return {"HTTPS_PROXY": f"http://127.0.0.1:{server.server_port}", "GIT_SSL_CAINFO": str(certificate)}

    def settings(self):
        """Returns the variables with which `git` on the vendor's machine finds the repositories on disk."""
        name = f"url.file://{self._folder / HOST}/.insteadOf"
        return {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": name, "GIT_CONFIG_VALUE_0": f"https://{HOST}/"}

    def _git(self, folder, *words):
        env = {"PATH": os.environ["PATH"], "HOME": str(self._folder), "GIT_CONFIG_NOSYSTEM": "1", **AUTHOR}
        subprocess.run(["git", "-C", folder, *words], check=True, env=env, capture_output=True)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    @property
    def server_port(self):
        return self.server_address[1]

    def handle_error(self, request, client_address):
        pass  # a client that hangs up


class Proxy(socketserver.StreamRequestHandler):
    """Answers `CONNECT host:port`, and then HTTPS itself."""

    def handle(self):
        method, _, rest = self.rfile.readline().decode().partition(" ")
        host = rest.partition(":")[0]
        while self.rfile.readline().strip():
            pass
        if method != "CONNECT" or host != HOST:
            self.wfile.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            return
        self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        with self.server.context.wrap_socket(self.request, server_side=True) as inside:
            Git(inside, self.client_address, self.server)


class Git(http.server.BaseHTTPRequestHandler):
    """Hands requests to `git http-backend` (RFC 3875)."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self._answer(b"")

    def do_POST(self):
        self._answer(self._body())

    def _body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _answer(self, body):
        path, _, query = self.path.partition("?")
        owner, name, rest = path.lstrip("/").split("/", 2)
        env = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.server.root / HOST),
            "GIT_HTTP_EXPORT_ALL": "1",
            # The files are the caller's, who may not be the user of this process.
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "PATH_INFO": f"/{owner}/{name.removesuffix('.git')}/.git/{rest}",
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        answer = subprocess.run(["git", "http-backend"], env=env, input=body, capture_output=True).stdout
        head, _, content = answer.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for field, value in fields.items():
            self.send_header(field, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass
