"""The other job: it has everything that a job may have, says where in `ready.json`, and stays until it is stopped."""

import json
import os
import socket
import tempfile
import threading

from syscalls import LIBC

IPC_PRIVATE_TO_NOBODY = 0o1666


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
    key = 0x46480000 | (os.getpid() & 0xFFFF)
    ready = {
        "credentials": os.environ["AWS_CONTAINER_CREDENTIALS_FULL_URI"],
        "token": os.environ["AWS_CONTAINER_AUTHORIZATION_TOKEN"],
        "port": listener.getsockname()[1],
        "temporary": leave("/tmp"),
        "shared": leave("/dev/shm"),
        "memory": key,
        "segment": LIBC.shmget(key, 4096, IPC_PRIVATE_TO_NOBODY),
    }
    with open("ready.json.new", "w") as file:
        json.dump(ready, file)
    os.rename("ready.json.new", "ready.json")
    while True:
        threading.Event().wait()


def leave(folder):
    if not os.access(folder, os.W_OK):
        return f"{folder}/none"
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix="freehold-neighbour-", delete=False) as file:
        file.write("left behind")
        return file.name


def serve(listener):
    while True:
        connection, _ = listener.accept()
        connection.recv(100)
        connection.sendall(b"the neighbour")
        connection.close()


if __name__ == "__main__":
    main()
