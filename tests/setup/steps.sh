# Sourced by scripts that run steps: `step NAME COMMAND...` runs a command, prints how long it took, and ends the script
# when the command fails.

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

step() {
    local name=$1 begun=$SECONDS
    shift
    printf '\n=== %s\n' "$name"
    if ! "$@"; then
        printf '=== %s FAILED after %d s\n' "$name" $((SECONDS - begun)) >&2
        exit 1
    fi
    printf '=== %s: %d s\n' "$name" $((SECONDS - begun))
}
