#!/usr/bin/env bash
# What `make test` runs: ruff, mypy, the tests, and the tests of vLLM. A part that fails does not keep the next from running;
# the exit code is 1 if any failed, and the last lines say which.
#   bash launch/test.sh [PATHS]   PATHS: only these tests (no ruff, no mypy)
# VENV: the environment. WORKERS: test processes side by side (default 2).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

BIN=${VENV:-.venv}/bin
SUMMARY=()
FAILED=0

# part NAME COMMAND...: run it, remember how it ended. 5 is pytest's word for "no test among these".
part() {
    local name=$1 code=0 started=$SECONDS
    shift
    "$@" || code=$?
    if [ "$code" -eq 5 ]; then code=0; fi
    if [ "$code" -ne 0 ]; then FAILED=1; fi
    SUMMARY+=("$(printf '%-12s %s in %d s' "$name" "$([ "$code" -eq 0 ] && echo passed || echo "FAILED (exit code $code)")" $((SECONDS - started)))")
}

if [ $# -eq 0 ]; then
    part ruff "$BIN/ruff" check .
    part mypy "$BIN/mypy"
fi
# Files stay together, so that a module's fixtures are made once.
part tests "$BIN/python" -m pytest -q --durations=15 -m "not vllm" -n "${WORKERS:-2}" --dist loadfile "${@:-tests}"
# vLLM reseeds and rewires its process, so its tests have one of their own.
part "vLLM tests" "$BIN/python" -m pytest -q --durations=5 -m vllm "${@:-tests}"

printf '%s\n' "" "${SUMMARY[@]}"
exit "$FAILED"
