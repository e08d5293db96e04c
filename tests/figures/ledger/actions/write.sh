#!/bin/bash
# Writes two lines into the ledger, which is the proxy that the box leads to: one when it begins, and one that is its effect;
# between them it runs BETWEEN. The output names the effect, with PAD bytes beside it.
set -eu
effect=$(cat /proc/sys/kernel/random/uuid)
at=${AWS_ENDPOINT_URL#http://}
write() {
    exec 3<>"/dev/tcp/${at%:*}/${at#*:}"
    printf 'POST /__proxy/effect?%s HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\n\r\n' "${1// /%20}" "$at" >&3
    read -r answer <&3
    exec 3>&-
}
write "begin $NAME $ROUND $effect"
eval "$BETWEEN"
write "end $NAME $ROUND $effect"
echo "wrote $ROUND $effect"
printf '{"effect": "%s", "pad": "%s"}' "$effect" "$(head -c "$PAD" /dev/zero | tr '\0' x)" >"$FREEHOLD_OUTPUTS"
