import http.server
import socket
import subprocess
import sys
import threading

import pytest

from tests.conftest import PATIENCE
from writer_rl.run import doctor
from writer_rl.run.doctor import Check, DoctorError, cheap_checks, endpoint, require, stale_locks, wandb_mode


def lock_in(folder, name="op"):
    (folder / name).mkdir(parents=True)
    lock = folder / name / "lock"
    lock.touch()
    return lock


def test_a_lock_that_nobody_holds_is_stale(tmp_path):
    lock = lock_in(tmp_path)
    environment = {"TORCH_EXTENSIONS_DIR": str(tmp_path)}
    assert stale_locks(environment) == [lock]
    found = [check for check in cheap_checks(tmp_path, environment) if check.state == "problem"]
    assert len(found) == 1 and f"rm {lock}" in found[0].remedy
    with pytest.raises(DoctorError, match="extension lock.*rm "):
        require(found)


@pytest.mark.parametrize("kind", ["grpo", "sft"])
def test_training_does_not_wait_for_a_stale_lock_in_silence(tmp_path, monkeypatch, kind):
    import importlib

    from writer_rl.config import load_config

    lock = lock_in(tmp_path)
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    config = load_config(kind, None, ["--output_dir", str(tmp_path / "run")])
    with pytest.raises(DoctorError, match=f"rm {lock}"):
        importlib.import_module(f"writer_rl.{kind}.run").train(config)
    assert not (tmp_path / "run").exists()


def test_the_default_cache_is_searched_per_torch_build(tmp_path):
    lock = lock_in(tmp_path / ".cache" / "torch_extensions" / "py311_cpu", "deepspeed_shm_comm")
    assert stale_locks({"HOME": str(tmp_path)}) == [lock]
    assert stale_locks({"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "elsewhere")}) == []


def test_a_lock_that_a_running_compiler_holds_is_left_alone(tmp_path):
    """The real thing: torch's own baton, held by another process."""
    (tmp_path / "op").mkdir()
    code = (
        "import sys; from torch.utils.file_baton import FileBaton\n"
        "assert FileBaton(sys.argv[1]).try_acquire(); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "op" / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        assert stale_locks({"TORCH_EXTENSIONS_DIR": str(tmp_path)}) == []
        process.kill()
        process.wait()
    assert stale_locks({"TORCH_EXTENSIONS_DIR": str(tmp_path)}) == [tmp_path / "op" / "lock"]


def test_fix_removes_stale_locks_only(tmp_path, repository, monkeypatch):
    lock = lock_in(tmp_path)
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    command = [sys.executable, "launch/doctor.py", "--fix"]
    shown = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=PATIENCE)
    assert f"removed {lock}" in shown.stdout and not lock.exists()
    assert "PROBLEM" not in shown.stdout.split("extension lock")[1].splitlines()[0]


def test_wandb_never_asks_for_a_login(tmp_path):
    assert wandb_mode({}).state == "ok"
    assert wandb_mode({"WANDB_MODE": "offline"}).state == "ok"
    assert wandb_mode({"WANDB_MODE": "online", "HOME": str(tmp_path)}).state == "problem"
    assert wandb_mode({"WANDB_MODE": "online", "WANDB_API_KEY": "k"}).state == "ok"
    (tmp_path / ".netrc").write_text("machine api.wandb.ai login user password secret")
    found = wandb_mode({"WANDB_MODE": "online", "HOME": str(tmp_path)})
    assert found.state == "ok" and "secret" not in str(found)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        code = {"/v1/models": 200, "/locked/models": 401, "/broken/models": 500, "/bare/models": 404}[self.path]
        self.send_response(code)
        self.end_headers()

    def log_message(self, *arguments):
        return None


@pytest.mark.endpoint
def test_endpoints_are_tried_and_the_key_is_never_shown():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}"
        states = {path: endpoint(f"{base}/{path}", "top-secret") for path in ("v1", "locked", "broken", "bare")}
        server.shutdown()
    assert {path: check.state for path, check in states.items()} == {
        "v1": "ok", "locked": "problem", "broken": "problem", "bare": "ok",
    }  # fmt: skip
    assert "top-secret" not in str(states)
    gone = endpoint(f"{base}/v1", seconds=1)
    assert gone.state == "problem" and "unreachable" in gone.finding
    assert endpoint("no address").state == "problem"


def test_a_taken_port_is_noticed():
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        assert doctor.port(taken.getsockname()[1]).state == "note"


def test_a_full_or_forbidden_disk_is_a_problem(tmp_path, monkeypatch):
    assert doctor.disk(tmp_path / "a" / "b").state == "ok"
    usage = type("Usage", (), {"free": 1000})()
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: usage)
    assert doctor.disk(tmp_path).state == "problem"


def test_the_container_limit_bounds_available_memory(monkeypatch):
    files = {
        "/proc/meminfo": "MemTotal: 9 kB\nMemAvailable:   8388608 kB\n",
        "/sys/fs/cgroup/memory.max": "2147483648\n",
        "/sys/fs/cgroup/memory.current": "1073741824\n",
        "/sys/fs/cgroup/memory.stat": "anon 5\ninactive_file 536870912\n",
    }
    monkeypatch.setattr(doctor, "_read", lambda path: files.get(str(path), ""))
    assert doctor.available_memory() == 1536 * 1024**2
    files["/sys/fs/cgroup/memory.max"] = "max\n"
    assert doctor.available_memory() == 8 * 1024**3


def test_versions_are_held_against_the_tested_ones(monkeypatch):
    tested = doctor.pins()
    assert tested["transformers"] and tested["torch"]
    installed = {**tested, "transformers": "0.1", "deepspeed": None}
    monkeypatch.setattr(doctor, "_version", installed.get)
    found = {check.name: check for check in doctor.versions()}
    assert found["torch"].state == "ok"
    assert found["transformers"].state == "note" and tested["transformers"] in found["transformers"].remedy
    assert found["deepspeed"].state == "problem"


def test_builds_for_another_torch_are_a_problem(monkeypatch):
    monkeypatch.setattr(doctor, "_version", {"torch": "2.13.0+cpu", "torchvision": "0.28"}.get)
    assert doctor.mismatched_builds()[0].remedy == "pip uninstall torchvision"
    monkeypatch.setattr(doctor, "_version", {"torch": "2.14.0", "torchvision": "0.29"}.get)
    assert doctor.mismatched_builds() == []


def test_require_passes_notes_and_stops_at_problems():
    require([Check("a", "ok", "x"), Check("b", "note", "y", "z")])
    with pytest.raises(DoctorError, match="^c: bad; do this"):
        require([Check("b", "note", "y"), Check("c", "problem", "bad", "do this")])
