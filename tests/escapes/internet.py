"""Serves every host of the machine's internet: a page on each port that a probe asks for, datagrams that come back."""

import os
import socket
import sys
import threading
import time

from machine import INTERNET_V4, UDP_PORT, answer_datagrams, listen, page

PORTS = (22, 25, 80, 443, 8443)


def main():
    for port in PORTS:
        # On IPv4 too.
        listen(socket.AF_INET6, ("::", port), page)
    echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    echo.bind((INTERNET_V4, UDP_PORT))
    threading.Thread(target=answer_datagrams, args=(echo,), daemon=True).start()
    machine = int(sys.argv[1])
    while os.getppid() == machine:
        time.sleep(0.2)


if __name__ == "__main__":
    main()
