#!/usr/bin/env bash
# The test command of this repository. On a fresh Debian machine it installs what
# it needs, then runs every check; all of them run even when one fails.
#
#   ./test.sh          everything
#   ./test.sh quick    without clippy and without what needs a release build

set -euo pipefail
cd "$(dirname "$0")"

mode="${1:-all}"
if [[ $mode != all && $mode != quick ]]; then
    echo "usage: ./test.sh [quick]" >&2
    exit 2
fi
# rustup and Debian put programs where a bare PATH does not look.
export PATH="$PATH:$HOME/.cargo/bin:/usr/sbin"

names=()
seconds=()
verdicts=()

# Runs one stage and notes how long it took and how it ended.
stage() {
    local name="$1" start=$SECONDS verdict=ok
    shift
    printf '\n=== %s: %s\n' "$name" "$*"
    "$@" || verdict=FAILED
    names+=("$name")
    seconds+=($((SECONDS - start)))
    verdicts+=("$verdict")
}

# Debian packages and the program that shows each is there: a linker for cargo,
# git for the list of files, curl and Python for the pages, haproxy and redis as the baselines of `bench forward` and
# `bench acquire`, valgrind for `bench txn --callgrind`,
# node and Chromium for the JavaScript client and the page, faketime for a clock that stands wrong.
packages() {
    local missing=() pair
    for pair in build-essential:cc git:git curl:curl python3:python3 haproxy:haproxy redis-server:redis-server valgrind:valgrind nodejs:node npm:npm chromium:chromium faketime:faketime; do
        command -v "${pair#*:}" > /dev/null || missing+=("${pair%:*}")
    done
    [[ ${#missing[@]} -eq 0 ]] && return 0
    if [[ $(id -u) -eq 0 ]] && command -v apt-get > /dev/null; then
        apt-get update -q &&
            DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}"
    else
        echo "missing Debian packages: ${missing[*]}; install them as root: apt-get install ${missing[*]}" >&2
        return 1
    fi
}

tests() {
    if cargo nextest --version > /dev/null 2>&1; then
        cargo nextest run --workspace --no-fail-fast
    else
        cargo test --workspace --tests --no-fail-fast
    fi
}

# A short look at each bench, and the instructions of a transaction.
bench() {
    local linkstead=(cargo run --release -q -- bench)
    "${linkstead[@]}" forward --baseline haproxy --seconds 0.2 --json &&
        "${linkstead[@]}" txn --seconds 0.2 --json &&
        "${linkstead[@]}" txn --callgrind --json &&
        "${linkstead[@]}" acquire --baseline redis --seconds 0.2 --json &&
        "${linkstead[@]}" acquire --workload memory --keys 100000 --json &&
        "${linkstead[@]}" flush --backend sled --seconds 0.2 --json &&
        "${linkstead[@]}" flush --backend redb --seconds 0.2 --json
}

# The JavaScript client in node, and the tavern's page in Chromium against real processes.
# npm brings what the lock file lists.
browser() {
    if ! node -e 'process.exit(process.versions.node.split(".")[0] >= 20 ? 0 : 1)'; then
        echo "node $(node --version) is too old: install node 20 or later" >&2
        return 1
    fi
    cargo build -q -p cli -p tavern &&
        npm --prefix clients/js ci --no-progress &&
        npm --prefix clients/js run types &&
        npm --prefix clients/js test &&
        npm --prefix clients/js run planted &&
        npm --prefix clients/js run browser
}

report() {
    local index passed=0 failed=0
    printf '\n'
    for index in "${!names[@]}"; do
        printf '%-10s %5d s  %s\n' "${names[index]}" "${seconds[index]}" "${verdicts[index]}"
        if [[ ${verdicts[index]} == ok ]]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    done
    printf '%-10s %5d s\n' total "$SECONDS"
    echo "$passed passed, $failed failed"
    [[ $failed -eq 0 ]]
}

stage packages packages
if ! command -v cargo > /dev/null; then
    echo "cargo is missing: install Rust (stable) with rustup, then run this again" >&2
    exit 1
fi
stage fmt cargo fmt --all --check
[[ $mode == quick ]] || stage clippy cargo clippy --workspace --all-targets -- -D warnings
stage tests tests
stage loom cargo test -q -p linkd --test loom
stage doctests cargo test --workspace --doc
stage planted cargo planted
stage fuzz cargo fuzz --seconds 2
if [[ $mode == all ]]; then
    stage browser browser
    stage sim cargo sim --smoke
    stage bench bench
    stage docs cargo run -q -p tests --bin docs -- --seconds 1800 README.md docs/start.md docs/guides/{tls,authentication,limits,deploy,operating,routing}.md \
        examples/python/README.md
fi
report
