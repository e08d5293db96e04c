"""The part of docker-py that MiniStack's EKS uses. A container is a folder with the processes of a cluster."""

import collections
import contextlib
import io
import os
import secrets
import shlex
import shutil
import subprocess
import tarfile
import threading

from kubernetes.control_plane import ControlPlane

ExecResult = collections.namedtuple("ExecResult", "exit_code output")


class NotFound(Exception):
    pass


class Client:
    """Stands for the Docker client and for its `containers`."""

    def __init__(self, state, programs):
        self.containers = self
        self.state, self.programs = state, programs
        self.failed = {}  # name of the container -> why its cluster did not start
        self._all = {}  # id -> Container
        self._lock = threading.Lock()

    def create(self, name, ports, command=(), labels=None, **ignored):
        container = Container(self, name, int(ports["6443/tcp"]), list(command), dict(labels or {}))
        with self._lock:
            if any(other.name == name for other in self._all.values()):
                raise RuntimeError(f"there is already a container named {name}")
            self._all[container.id] = container
            self.failed.pop(name, None)
        return container

    def run(self, **kwargs):
        container = self.create(**kwargs)
        container.start()
        return container

    def get(self, id_or_name):
        with self._lock:
            for container in self._all.values():
                if id_or_name in (container.id, container.name):
                    return container
        raise NotFound(id_or_name)

    def list(self, filters=None, **ignored):
        """Returns the containers with all the given labels, also those that are still starting."""
        labels = (filters or {}).get("label") or []
        wanted = [label.partition("=") for label in ([labels] if isinstance(labels, str) else labels)]
        with self._lock:
            return [
                container
                for container in self._all.values()
                if all(container.labels.get(key) == value for key, _, value in wanted)
            ]

    def discard(self, name):
        """Removes a container if there is one, and forgets why it may have failed."""
        with contextlib.suppress(NotFound):
            self.get(name).remove(force=True)
        self.failed.pop(name, None)

    def forget(self, container):
        with self._lock:
            self._all.pop(container.id, None)


class Container:
    """A folder with a cluster; `root` in it holds what MiniStack writes and reads, at the paths of its image."""

    def __init__(self, client, name, port, command, labels):
        self.id = secrets.token_hex(32)
        self.name, self.labels = name, labels
        self.status = "created"
        self.attrs = {"Config": {"Labels": labels}}
        self.folder = client.state / name
        self._client = client
        self._busy = threading.Lock()  # held while it starts or ends
        self._removed = False
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "root").mkdir(parents=True, mode=0o700)
        self._plane = ControlPlane(self.folder, client.programs, port, command)

    def reload(self):
        pass

    def put_archive(self, path, data):
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            tar.extractall(self._plane.inside(path), filter="data")
        return True

    def exec_run(self, command, **ignored):
        """Runs a command as in the container: kubectl is the administrator, absolute paths are below `root`."""
        if isinstance(command, str):
            words = shlex.split(command)
            command = [str(self._plane.inside(word)) if word.startswith("/") else word for word in words]
        ended = subprocess.run(
            command, cwd=self.folder, env=self._environment(), stdin=subprocess.DEVNULL, capture_output=True
        )
        # docker-py mixes both streams, but warnings on stderr must not get into JSON.
        output = ended.stdout if ended.returncode == 0 else ended.stdout + ended.stderr
        return ExecResult(ended.returncode, output)

    def start(self):
        """Starts the processes and returns when the API server is ready. The data of an earlier start is kept."""
        with self._busy:
            if self._removed:
                raise NotFound(self.name)
            try:
                self._plane.start()
            except Exception as error:
                if not self._plane.stopping.is_set():
                    self._client.failed[self.name] = str(error)
                self._plane.end(0)
                self._client.forget(self)
                raise
            self.status = "running"

    def stop(self, timeout=10):
        self._plane.stopping.set()
        with self._busy:
            self._plane.end(timeout)
            self.status = "exited"

    def remove(self, v=False, force=False):
        self._removed = True
        self._plane.stopping.set()
        with self._busy:
            self._plane.end(0)
            self._client.forget(self)
            shutil.rmtree(self.folder, ignore_errors=True)
            self.status = "removed"

    def _environment(self):
        path = f"{self._client.programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        return {"PATH": path, "HOME": str(self.folder), "KUBECONFIG": str(self.folder / "kubeconfig")}
