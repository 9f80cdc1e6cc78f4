"""W&B under the same names, offline and without a prompt; steps of its own; resumed into the same run."""

import json
import sys
import types

import pytest

from writer_rl.config import load_config
from writer_rl.run.tracking import Tracker, TrackingError, alarms, console_line


class FakeRun:
    """Refuses what the real one drops: a step that goes back, when the step is W&B's own."""

    def __init__(self, run_id):
        self.id = run_id or "new-id"
        self.logged, self.steps, self.finished = [], {}, None

    def define_metric(self, name, step_metric=None):
        self.steps[name] = step_metric

    def log(self, record, step=None):
        assert step is None, "an own step key must be used"
        self.logged.append(record)

    def finish(self, exit_code=0):
        self.finished = exit_code


@pytest.fixture
def wandb(monkeypatch):
    calls = []

    def init(**arguments):
        calls.append(arguments)
        return FakeRun(arguments["id"])

    module = types.ModuleType("wandb")
    module.init, module.Settings = init, lambda **settings: settings
    monkeypatch.setitem(sys.modules, "wandb", module)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    return calls


def config(*overrides):
    return load_config("grpo", None, list(overrides))


def test_figures_under_their_own_names_with_the_round_as_step(wandb, tmp_path, capsys):
    tracker = Tracker(config(), tmp_path, total=3)
    tracker.log({"round": 1, "policy/kl": 0.5, "qa/gain/mean": None}, "round 1/3")
    assert tracker.run.steps == {"round": None, "*": "round"}
    assert tracker.run.logged == [{"round": 1, "policy/kl": 0.5}]
    assert wandb[0]["mode"] == "offline" and wandb[0]["dir"] == tmp_path
    assert capsys.readouterr().out == "round 1/3\n"
    run = tracker.run
    tracker.close(143)
    assert run.finished == 143


def test_a_resumed_run_goes_on_under_its_id(wandb, tmp_path):
    tracker = Tracker(config(), tmp_path, total=3, wandb_id="old-id")
    assert tracker.wandb_id == "old-id" and wandb[0]["resume"] == "allow"


@pytest.mark.parametrize(("setting", "mode"), [("off", None), ("offline", "disabled")])
def test_off(wandb, tmp_path, monkeypatch, setting, mode):
    if mode:
        monkeypatch.setenv("WANDB_MODE", mode)
    tracker = Tracker(config("--tracking.wandb", setting), tmp_path, total=1)
    tracker.log({"round": 1}, "x")
    assert tracker.run is None and not wandb


def test_other_ranks_are_silent(wandb, tmp_path, capsys):
    tracker = Tracker(config(), tmp_path, total=1, main=False)
    tracker.log({"round": 1}, "x")
    assert not wandb and capsys.readouterr().out == ""


def test_online_without_a_key_stops_instead_of_asking(wandb, tmp_path, monkeypatch):
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NETRC", raising=False)
    with pytest.raises(TrackingError, match="WANDB_API_KEY"):
        Tracker(config("--tracking.wandb", "online"), tmp_path, total=1)
    monkeypatch.setenv("WANDB_API_KEY", "secret")
    Tracker(config("--tracking.wandb", "online"), tmp_path, total=1)
    assert "secret" not in json.dumps(wandb, default=str)


def test_without_wandb_installed_training_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "wandb", None)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    tracker = Tracker(config(), tmp_path, total=1)
    tracker.log({"round": 1}, "x")
    assert "not installed" in capsys.readouterr().err


@pytest.mark.slow
def test_the_real_wandb_writes_offline_without_asking(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    tracker = Tracker(config(), tmp_path, total=2)
    for number in (1, 2, 2):  # a repeated round, as after a kill
        tracker.log({"round": number, "policy/kl": 0.1 * number}, "")
    assert tracker.wandb_id
    tracker.close()
    assert list(tmp_path.glob("wandb/offline-run-*/run-*.wandb"))


def test_an_empty_variable_is_none(wandb, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "")
    Tracker(config(), tmp_path, total=1).close()
    assert wandb[0]["mode"] == "offline"


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ({}, []),
        ({"rollout/truncation": None, "rollout/mismatch_mean": None}, []),
        ({"rollout/truncation": 0.5, "rollout/mismatch_mean": 0.009}, []),
        ({"rollout/truncation": 0.96}, ["96% of the completions are cut off: raise rollout.max_new_tokens"]),
        ({"rollout/truncation": 1.0, "rollout/mismatch_mean": 0.25}, ["100% of", "differ by 0.25 nats"]),
    ],
)
def test_what_spoils_training_is_said_at_the_end_of_the_line(figures, words):
    found = alarms(figures)
    assert len(found) == len(words) and all(word in alarm for word, alarm in zip(words, found, strict=True))
    line = console_line({"round": 1, "time/round": 2.0, **figures}, 3, None)
    assert line.count("! ") == len(words) and "\n" not in line


def test_completions_become_a_table_that_names_their_round(wandb, tmp_path):
    sys.modules["wandb"].Table = lambda columns, data: (columns, data)
    tracker = Tracker(config(), tmp_path, total=3)
    line = {"network_id": "n", "trajectory": 1, "position": 2, "return": 0.5, "advantage": -1.0, "qa_gain": None, "text": "{}"}
    tracker.completions(2, [line | {"logprobs": [0.1]}])
    (logged,) = tracker.run.logged
    columns, rows = logged["rollouts/completions"]
    assert logged["round"] == 2 and columns[0] == "round" and rows == [[2, "n", 1, 2, 0.5, -1.0, None, "{}"]]
    off = Tracker(config("--tracking.wandb", "off"), tmp_path, total=3)
    off.completions(2, [line])


def test_every_reason_to_skip_is_explained_where_it_stands():
    from writer_rl.grpo.update import SKIP_REASONS
    from writer_rl.run.glossary import ROUND_LINE, SKIPPED

    assert set(SKIP_REASONS) == set(SKIPPED)
    record = {"round": 1, "time/round": 1.0}
    for reason, why in SKIPPED.items():
        assert f"skipped: {reason} ({why})" in console_line(record, 3, reason)
    labels = {part.split(" ")[0] for part in console_line(record | {"evaluation/total": 0.5}, 3, None).split("  ")}
    assert labels - {"round", "1.0"} <= set(ROUND_LINE)
