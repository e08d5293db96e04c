#!/bin/sh
# Makes this network namespace the internet of a machine, when its end of the cable is there, and serves its hosts as long
# as the process lives whose number it gets.
set -eu
folder=$1 machine=$2

until ip link show far >/dev/null 2>&1; do sleep 0.02; done
ip link set lo up
ip link set far up
ip address add 10.77.0.2/24 dev far
ip -6 address add 2606:2800:21f::2/64 dev far nodad
for address in 93.184.215.14 93.184.215.15; do
    ip address add "$address/32" dev lo
done
ip -6 address add 2606:2800:21f::14/128 dev far nodad
exec python3 -B "$folder/escapes/internet.py" "$machine"
