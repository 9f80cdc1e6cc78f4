"""A signal to a launcher: the state is saved however long that takes, and the same command goes on from there."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import PATIENCE, ROOT
from tests.writer_rl.tiny_run import save_config

SLOW_SAVE = """
import os, time
if os.environ.get("WRITER_RL_KEEPER") or "TORCHELASTIC_RUN_ID" not in os.environ:
    import builtins, sys
    real = builtins.__import__
    def watching(name, *rest, **more):
        module = real(name, *rest, **more)
        found = sys.modules.get("writer_rl.train.checkpoint")
        if found is not None and hasattr(found, "Checkpoints") and not hasattr(found.Checkpoints, "slowed"):
            save = found.Checkpoints.save
            def slow(self, number, *a, **k):
                open(os.environ["SAVING"], "a").write(f"{number}\\n")
                time.sleep(float(os.environ["SAVE_S"]))
                return save(self, number, *a, **k)
            found.Checkpoints.save, found.Checkpoints.slowed = slow, True
        return module
    builtins.__import__ = watching
"""
LIMIT = 900
"""Seconds for what takes a few: a save that never comes must not hold up all other tests for an hour."""
BIN = Path(sys.executable).parent
LAUNCHERS = {
    "torchrun": [str(BIN / "torchrun"), "--nproc_per_node", "2"],
    "accelerate, two ranks": [str(BIN / "accelerate"), "launch", "--config_file", "configs/accelerate/cpu2.yaml"],
    "accelerate, one process": [str(BIN / "accelerate"), "launch", "--num_processes", "1", "--cpu"],
}


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stopping")
    (folder / "sitecustomize.py").write_text(SLOW_SAVE)
    rare = {"data.validation": [], "evaluation.every": 0, "trainer.steps": 100_000, "trainer.checkpoint_every": 100_000}
    return save_config(folder, rare)


def environment(folder, **more):
    shared = {"PYTHONPATH": f"{folder}:{ROOT}", "SAVING": str(folder / "saving"), "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "1"}
    return {**os.environ, **shared, "OMP_NUM_THREADS": "1", **more}


def until(condition, what):
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, f"never came: {what}"
        time.sleep(0.05)


def rounds(run):
    path = run / "metrics.jsonl"
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.mark.parametrize(
    ("launcher", "signum"),
    [
        ("torchrun", signal.SIGINT),
        ("accelerate, two ranks", signal.SIGTERM),
        ("accelerate, one process", signal.SIGINT),
        ("accelerate, one process", signal.SIGTERM),
    ],
)
def test_a_save_that_takes_longer_than_the_launcher_waits_is_made(config, tmp_path, launcher, signum):
    run = tmp_path / "run"
    command = [*LAUNCHERS[launcher], "launch/grpo.py", "--config", str(config), "--output_dir", str(run)]
    slow = environment(config.parent, SAVE_S="3", SAVING=str(tmp_path / "saving"))
    with open(tmp_path / "log", "w") as log:
        started = subprocess.Popen(command, cwd=ROOT, env=slow, stdout=log, stderr=log)
        until(lambda: rounds(run) >= 1 or started.poll() is not None, "the first round")
        assert started.poll() is None, (tmp_path / "log").read_text()
        started.send_signal(signum)
        assert started.wait(PATIENCE) in (1, 128 + signum, -signum), (tmp_path / "log").read_text()
        until(lambda: (run / "checkpoints" / "latest").is_file(), f"the checkpoint; {(tmp_path / 'log').read_text()}")
    until(lambda: "the same command goes on" in (tmp_path / "log").read_text(), "the last word")
    saved = int((run / "checkpoints" / "latest").read_text())
    assert (tmp_path / "saving").read_text().split()[0] == str(saved) == str(rounds(run))
    until(lambda: not _held(run), "the end of every process")
    again = [*command, "--trainer.steps", str(saved + 1)]
    done = subprocess.run(again, cwd=ROOT, env=environment(config.parent, SAVE_S="0"), capture_output=True, text=True)
    assert done.returncode == 0 and f"going on after round {saved}" in done.stdout, done.stdout + done.stderr
    assert [json.loads(line)["round"] for line in (run / "metrics.jsonl").read_text().splitlines()] == [*range(1, saved + 2)]


def _held(run):
    """Whether a process still works in the run's directory."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if str(run) in (folder / "cmdline").read_bytes().decode(errors="replace"):
                return True
        except OSError:
            pass
    return False


def test_a_keeper_that_is_killed_takes_a_training_that_was_not_asked_to_stop_along(config, tmp_path):
    run = tmp_path / "run"
    command = [sys.executable, "launch/grpo.py", "--config", str(config), "--output_dir", str(run)]
    kept = environment(config.parent, SAVE_S="0", TORCHELASTIC_RUN_ID="x", SAVING=str(tmp_path / "saving"))
    with subprocess.Popen(command, cwd=ROOT, env=kept, stdout=subprocess.DEVNULL) as keeper:
        until(lambda: rounds(run) >= 1 or keeper.poll() is not None, "the first round")
        assert keeper.poll() is None
        keeper.kill()
    until(lambda: not _held(run), "the end of the training")
    assert not (run / "checkpoints" / "latest").exists()


def test_the_keeper_ends_as_its_training_does(config, tmp_path):
    kept = environment(config.parent, TORCHELASTIC_RUN_ID="x", SAVE_S="0")
    command = [sys.executable, "launch/grpo.py", "--config", str(config), "--trainer.nothing", "1"]
    done = subprocess.run(command, cwd=ROOT, env=kept, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("unknown key 'trainer.nothing'") == 1
