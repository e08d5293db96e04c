"""Sets the loopback interface of this network namespace up, and becomes a program.

Usage: loopback.py UID GID PROGRAM [ARGUMENT...]; the program runs as that user.
"""

import fcntl
import os
import socket
import struct
import sys

SIOCGIFFLAGS, SIOCSIFFLAGS = 0x8913, 0x8914
IFF_UP = 1


def set_up(interface):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh", interface.encode(), 0)
        name, flags = struct.unpack("16sh", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh", name, flags | IFF_UP))


def main():
    user, group, *command = sys.argv[1:]
    set_up("lo")
    if user != "0":
        command = ["unshare", "--user", f"--map-user={user}", f"--map-group={group}", *command]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
