#!/bin/sh
# Makes this namespace a machine with a metadata service's address, a cable to the internet (a namespace of its own), a name
# server and a place for a system bus; then runs the rest of the command line. Needs network and mount namespaces.
set -eu
folder=$1 user=$2
shift 2

ip link set lo up
ip address add 169.254.169.254/32 dev lo
ip -6 address add fd00:ec2::254/128 dev lo nodad
echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start

# It ends with the program that this shell becomes.
unshare --net sh "$folder/escapes/make-internet.sh" "$folder" $$ >/dev/null &
internet=$!
while [ "$(readlink /proc/$internet/ns/net)" = "$(readlink /proc/$$/ns/net)" ]; do sleep 0.02; done
ip link add near type veth peer name far netns $internet
ip address add 10.77.0.1/24 dev near
ip -6 address add 2606:2800:21f::1/64 dev near nodad
ip link set near up
ip route add default via 10.77.0.2
ip -6 route add default via 2606:2800:21f::2

mount -t tmpfs -o mode=777 none /run
mkdir -m 777 /run/dbus
printf '%s\n' '127.0.0.1 localhost' '::1 localhost' '93.184.215.14 allowed.example.com pair.example.com' \
    '93.184.215.15 other.example.net iam.amazonaws.com vpce-1.iam.us-east-1.vpce.amazonaws.com' \
    '169.254.169.254 rebinding.example.com rebinding-pair.example.com' '127.0.0.1 loopback.example.com' \
    '93.184.215.15 ec2-93-184-215-15.compute-1.amazonaws.com stranger.eu-west-1.elb.amazonaws.com' \
    '93.184.215.15 stranger.execute-api.eu-west-1.amazonaws.com' >"$folder/hosts"
echo 'nameserver 127.0.0.1' >"$folder/resolv.conf"
for name in hosts resolv.conf; do
    at=$(readlink -m "/etc/$name")
    case $at in /run/*) mkdir -p "${at%/*}" && touch "$at" ;; esac
    mount --bind "$folder/$name" "$at"
done

if [ "$user" = ordinary ]; then
    # The users that its jobs may have.
    { cat /etc/passwd && echo "ordinary:x:60123:60123::/:/bin/sh"; } >"$folder/passwd"
    echo 'ordinary:300000:65536' | tee "$folder/subuid" >"$folder/subgid"
    for name in passwd subuid subgid; do
        mount --bind "$folder/$name" "/etc/$name"
    done
fi

# A disk of its own, so that no probe fills another, and on it something that is mounted read-only.
mkdir -m 777 "$folder/disk"
mount -t tmpfs -o mode=777,size=1g none "$folder/disk"
mkdir -m 777 "$folder/disk/read-only"
mount --bind "$folder/disk/read-only" "$folder/disk/read-only"
mount -o remount,bind,ro "$folder/disk/read-only"

exec "$@"
