"""The repositories that an app names, made of folders of this machine, and what answers for their host."""

import functools
import http.server
import os
import shutil
import subprocess

HOST = "github.com"
# The same commit for the same files, on every machine.
AUTHOR = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in {"NAME": "apps", "EMAIL": "apps@localhost", "DATE": "2026-01-01T00:00:00Z"}.items()
}


def make_writable(folder):
    """Lets this process change a copy of what nobody may change."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | 0o200)


class Repositories:
    """Git repositories of the folders OWNER/NAME below `sources`."""

    def __init__(self, sources, folder):
        self._sources, self._folder = sources, folder
        (folder / HOST).mkdir(parents=True)

    def copy(self, repository):
        """Returns a copy of a repository's files to change, or nothing when the sources have no such folder."""
        original, copy = self._sources / repository, self._folder / HOST / repository
        if copy.exists():
            return copy
        if not original.is_dir():
            return None
        shutil.copytree(original, copy, symlinks=True)
        make_writable(copy)
        return copy

    def make(self, repository):
        """Returns the folder of a repository, which is empty when the sources have no such folder."""
        if copy := self.copy(repository):
            return copy
        (self._folder / HOST / repository).mkdir(parents=True)
        return self.copy(repository)

    def commit(self, repository, references):
        folder = self._folder / HOST / repository
        self._git(folder, "init", "--quiet", "--initial-branch", "main")
        self._git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
        self._git(folder, "add", "--all", "--force")
        self._git(folder, "commit", "--quiet", "--allow-empty", "--message", "as given")
        for reference in references - {"main"}:
            self._git(folder, "branch", "--quiet", "--force", reference)

    def handler(self):
        """Returns what answers for the host of the repositories."""
        return functools.partial(Git, self._folder / HOST)

    def settings(self):
        """Returns the variables with which `git` on the vendor's machine finds the repositories on disk."""
        name = f"url.file://{self._folder / HOST}/.insteadOf"
        return {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": name, "GIT_CONFIG_VALUE_0": f"https://{HOST}/"}

    def _git(self, folder, *words):
        env = {"PATH": os.environ["PATH"], "HOME": str(self._folder), "GIT_CONFIG_NOSYSTEM": "1", **AUTHOR}
        subprocess.run(["git", "-C", folder, *words], check=True, env=env, capture_output=True)


class Git(http.server.BaseHTTPRequestHandler):
    """Hands requests to `git http-backend` (RFC 3875)."""

    protocol_version = "HTTP/1.1"

    def __init__(self, root, *arguments):
        self._root = root
        super().__init__(*arguments)

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
            "GIT_PROJECT_ROOT": str(self._root),
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
