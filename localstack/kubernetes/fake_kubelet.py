"""Reports that pods run, where there are no nodes: Deployments become available, and `helm --wait` returns. Gives every
claim for a volume one, in name only, where nothing provisions volumes.

A pod of a Job succeeds at once; every other pod becomes ready. The label `fake-kubelet` of a pod changes that, and so
does the environment variable `FAKE_KUBELET` of its first container: `hold` leaves the pod pending, `fail` makes it
fail. A container that ends leaves the value of `FAKE_KUBELET_MESSAGE` as its message. Nothing runs, no image is
pulled, and no pod has a log.
"""

import base64
import contextlib
import http.client
import json
import ssl
import threading
import time
import urllib.parse

PENDING = "/api/v1/pods?watch=1&timeoutSeconds=600&fieldSelector=status.phase%3DPending"
CLAIMS = "/api/v1/persistentvolumeclaims?watch=1&timeoutSeconds=600"
VOLUMES = "/api/v1/persistentvolumes"
RETRY_SECS = 0.2


class _Watcher:
    """A thread that watches objects of the cluster of a kubeconfig (in JSON)."""

    def __init__(self, kubeconfig, watched):
        self._watched = watched
        config = json.loads(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self._host = urllib.parse.urlsplit(cluster["server"]).netloc
        self._headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._context = ssl.create_default_context(cadata=authority)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"{type(self).__name__}-{self._host}")

    def start(self):
        self._thread.start()

    def stop(self):
        """Ends the thread; its watch ends with the API server, which has to be down."""
        self._ended.set()
        self._thread.join(10)

    def _run(self):
        while not self._ended.is_set():
            # While the API server is down or starts again, every call fails.
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                self._follow()
            self._ended.wait(RETRY_SECS)

    def _follow(self):
        """Handles each object that is watched, those of now first, until the API server ends the watch."""
        watch = self._connection(timeout=None)
        try:
            watch.request("GET", self._watched, headers=self._headers)
            answer = watch.getresponse()
            while not self._ended.is_set() and (line := answer.readline()):
                event = json.loads(line)
                if event["type"] in ("ADDED", "MODIFIED"):
                    self._report(event["object"])
        finally:
            watch.close()

    def _send(self, method, path, body, kind):
        # An object that is gone, has changed meanwhile or exists answers 404 or 409; its next event decides.
        connection = self._connection(timeout=10)
        try:
            connection.request(method, path, json.dumps(body), {**self._headers, "Content-Type": kind})
            if connection.getresponse().status >= 500:
                raise OSError("the API server fails")  # the next watch begins with this object
        finally:
            connection.close()

    def _connection(self, timeout):
        return http.client.HTTPSConnection(self._host, timeout=timeout, context=self._context)


class FakeKubelet(_Watcher):
    """Reports that pods run."""

    def __init__(self, kubeconfig):
        super().__init__(kubeconfig, PENDING)

    def _report(self, pod):
        metadata = pod["metadata"]
        container = pod["spec"]["containers"][0]
        env = {variable["name"]: variable.get("value", "") for variable in container.get("env", [])}
        wish = metadata.get("labels", {}).get("fake-kubelet", env.get("FAKE_KUBELET"))
        if wish == "hold" or "deletionTimestamp" in metadata:
            return
        of_job = any(owner["kind"] == "Job" for owner in metadata.get("ownerReferences", []))
        phase = "Failed" if wish == "fail" else "Succeeded" if of_job else "Running"
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        ready = {"type": "Ready", "status": str(phase == "Running"), "lastTransitionTime": now}
        status = {"phase": phase, "conditions": [ready]}
        if phase != "Running":
            status["containerStatuses"] = [_ended(container, phase == "Failed", env.get("FAKE_KUBELET_MESSAGE", ""))]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
        self._send("PATCH", path, {"status": status}, "application/strategic-merge-patch+json")


class FakeVolumes(_Watcher):
    """Makes a volume for each claim; the controllers bind the two."""

    def __init__(self, kubeconfig):
        super().__init__(kubeconfig, CLAIMS)

    def _report(self, claim):
        metadata, spec = claim["metadata"], claim["spec"]
        named = {key: metadata[key] for key in ("namespace", "name", "uid")}
        if spec.get("volumeName") or "deletionTimestamp" in metadata:
            return
        volume = {
            "capacity": spec["resources"]["requests"],
            "accessModes": spec["accessModes"],
            "claimRef": {"kind": "PersistentVolumeClaim", **named},
            "storageClassName": spec.get("storageClassName", ""),
            "volumeMode": spec.get("volumeMode", "Filesystem"),
            # Nothing ever uses this path, and the controllers delete nothing there.
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": "/nonexistent"},
        }
        body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"pvc-{metadata['uid']}"}}
        self._send("POST", VOLUMES, {**body, "spec": volume}, "application/json")


def _ended(container, failed, message):
    """Returns the status of a container whose program has ended."""
    state = {"exitCode": int(failed), "reason": "Error" if failed else "Completed", "message": message}
    named = {"name": container["name"], "image": container["image"], "imageID": ""}
    return {**named, "ready": False, "restartCount": 0, "state": {"terminated": state}}
