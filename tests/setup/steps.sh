# Sourced by scripts that run steps: `step NAME COMMAND...` runs a command, prints how long it took, and ends the script
# when the command fails. `begin NAME COMMAND...` starts a command beside the steps that follow, and `await NAME` prints its
# output as a step. A script that ends earlier ends what it began.

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

declare -A beside=()

begin() {
    local name=$1 output
    shift
    output=target/beside/${name// /-}.txt
    mkdir -p target/beside
    printf '\n=== %s: begins, beside the next steps\n' "$name"
    (
        begun=$SECONDS code=0
        "$@" &
        # shellcheck disable=SC2064  # the process of now
        trap "kill $! 2>/dev/null" TERM
        wait $! || code=$?
        echo "took $((SECONDS - begun)) s beside other steps"
        exit "$code"
    ) >"$output" 2>&1 </dev/null &
    beside[$name]=$!
}

await() { step "$1" ended "$1"; }

ended() {
    local code=0
    wait "${beside[$1]}" || code=$?
    unset "beside[$1]"
    cat "target/beside/${1// /-}.txt"
    return "$code"
}

trap 'for process in "${beside[@]}"; do kill "$process" 2>/dev/null || true; done' EXIT
