"""The processes of one cluster: etcd, the API server and the controllers, and a fake kubelet as a thread."""

import http.client
import os
import secrets
import ssl
import threading
import time

from kubernetes import credentials
from kubernetes.daemon import Daemon
from kubernetes.fake_kubelet import FakeKubelet, FakeVolumes

LOOPBACK = "127.0.0.1"
PROGRAMS = ("etcd", "kubectl", "kube-apiserver", "kube-controller-manager")
READY_SECS = 60
# etcd has no login: it listens on sockets in the folder of the cluster, which has mode 0700, and not on ports.
ETCD, PEERS = "unix://etcd-socket:0", "unix://etcd-peers:0"
# The controllers make it, and then its token. Without both there can be no pod; a cluster of AWS has them from the
# beginning.
ACCOUNT_OF_PODS = "/api/v1/namespaces/default/serviceaccounts/default"
CONTROLLERS_WITHOUT_A_CLOUD = "*,-nodeipam,-route,-service,-cloud-node-lifecycle,-attachdetach"


class ControlPlane:
    def __init__(self, folder, programs, port, command):
        self.stopping = threading.Event()  # a start that is under way gives up
        self._folder, self._programs, self._port = folder, programs, port
        self._command = command
        self._token = secrets.token_hex(24)
        self._daemons = []
        self._fakes = []

    def inside(self, path):
        """Returns where a path of MiniStack's container is."""
        return self._folder / "root" / path.lstrip("/")

    def start(self):
        self.stopping.clear()
        missing = [name for name in PROGRAMS if not os.access(self._programs / name, os.X_OK)]
        if missing:
            raise RuntimeError(f"no {', '.join(missing)} in `{self._programs}`; run `localstack/kubernetes/build`")
        if not (self._folder / "kubeconfig").exists():
            credentials.write(self._folder, self.inside, LOOPBACK, self._port, self._token)
        # No proxy of the caller may stand between the API server and the token webhook.
        environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self._folder)}
        self._daemons = [
            Daemon(name, [str(self._programs / words[0]), *words[1:]], self._folder, environment)
            for name, words in self._command_lines().items()
        ]
        for daemon in self._daemons[:2]:
            daemon.start()
        self._wait_for("/readyz")
        self._daemons[2].start()
        self._wait_for(ACCOUNT_OF_PODS, b'"secrets"')
        self._fakes = [kind(self._folder / "kubeconfig") for kind in (FakeKubelet, FakeVolumes)]
        for fake in self._fakes:
            fake.start()

    def end(self, timeout):
        for daemon in reversed(self._daemons):
            daemon.stop(timeout if daemon.name == "etcd" else 0)  # only etcd has something to lose
        for fake in self._fakes:
            fake.stop()
        self._daemons, self._fakes = [], []

    def _command_lines(self):
        return {
            "etcd": [
                *("etcd", "--name=one", "--data-dir=etcd", "--unsafe-no-fsync", "--log-level=warn"),
                *(f"--listen-client-urls={ETCD}", f"--advertise-client-urls={ETCD}", f"--listen-peer-urls={PEERS}"),
                *(f"--initial-advertise-peer-urls={PEERS}", f"--initial-cluster=one={PEERS}"),
            ],
            "apiserver": [
                *("kube-apiserver", f"--etcd-servers={ETCD}", "--profiling=false", "--allow-privileged=true"),
                *(f"--bind-address={LOOPBACK}", f"--advertise-address={LOOPBACK}", f"--secure-port={self._port}"),
                *("--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.100.0.0/16"),
                *("--tls-cert-file=pki/api.crt", "--tls-private-key-file=pki/api.key"),
                *("--client-ca-file=pki/ca.crt", "--token-auth-file=pki/tokens.csv", "--authorization-mode=RBAC"),
                *("--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=pki/sa.pub"),
                "--service-account-signing-key-file=pki/sa.key",
                # The default keeps an answer for two minutes, a refusal as well.
                "--authentication-token-webhook-cache-ttl=0s",
                *self._flags_for_k3s(),
            ],
            "controllers": [
                *("kube-controller-manager", "--kubeconfig=kubeconfig", "--port=0", "--secure-port=0"),
                *("--leader-elect=false", f"--controllers={CONTROLLERS_WITHOUT_A_CLOUD}"),
                *("--service-account-private-key-file=pki/sa.key", "--root-ca-file=pki/ca.crt"),
            ],
        }

    def _flags_for_k3s(self):
        """Returns the flags that MiniStack passes to the API server through k3s, with paths of this folder."""
        prefix = "--kube-apiserver-arg="
        for word in self._command:
            if word.startswith(prefix):
                name, _, value = word[len(prefix) :].partition("=")
                yield f"--{name}={self.inside(value) if value.startswith('/') else value}"

    def _wait_for(self, path, part=b""):
        """Waits until the API server answers `path` well, with this part in its answer."""
        context = ssl.create_default_context(cafile=self._folder / "pki/ca.crt")
        deadline = time.monotonic() + READY_SECS
        while time.monotonic() < deadline:
            for daemon in self._daemons:
                if daemon.exits:
                    raise RuntimeError(f"{daemon.name} ended when it started: {daemon.last_line()}")
            if self.stopping.is_set():
                raise RuntimeError("stopped while it started")
            if self._answers(path, part, context):
                return
            time.sleep(0.1)
        raise RuntimeError(f"`{path}` of the API server was not there after {READY_SECS} s; see `{self._folder}`")

    def _answers(self, path, part, context):
        connection = http.client.HTTPSConnection(LOOPBACK, self._port, timeout=5, context=context)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self._token}"})
            answer = connection.getresponse()
            return answer.status == 200 and part in answer.read()
        except OSError:
            return False
        finally:
            connection.close()
