import json
import os
import subprocess
import sys

import pytest

from rewards import score_step, unseen_text_share
from tests.conftest import PATIENCE
from tests.rewards.examples import entry, state

KEYS = [
    *("json", "schema", "dup", "stop", "valid", "owners", "phi_macro", "phi_worst", "phi"),
    *("chain", "mem", "penalty", "qa_term", "total"),
]


def transition(**changes):
    line = {
        "position": 0,
        "session_id": "s1",
        "n_messages": 3,
        "actions": [{"action": "ADD", "owner": "Alice", "source": "Bob", "layer": "per_speaker_core", "content": "tea"}],
        "report": {"json_valid": True, "attempted": 1, "schema_valid_actions": 1, "errors": []},
        "pre_state": state(),
        "post_state": state(entry("Alice likes tea")),
        "reference": state(entry("Alice likes tea"), entry("李雷喜欢茶", owner="李雷")),
    }
    return line | changes


def score(repository, *arguments, stdin=None, environment=None):
    return subprocess.run(
        [sys.executable, "launch/score.py", *arguments],
        cwd=repository,
        input=stdin,
        capture_output=True,
        timeout=PATIENCE,
        env={**os.environ, **(environment or {})},
    )


def written(path, *lines):
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines), "utf-8")
    return str(path)


def test_one_line_of_exactly_the_named_keys_per_transition(repository, tmp_path):
    file = written(tmp_path / "T.jsonl", transition(), "\n", transition(qa_gain=0.5, length=3, position=1))
    done = score(repository, "--transitions", file)
    assert (done.returncode, done.stderr) == (0, b"")
    first, second = map(json.loads, done.stdout.splitlines())
    assert list(first) == list(second) == KEYS
    line = transition()
    reward = score_step(*(line[key] for key in ("actions", "report", "pre_state", "post_state", "reference")))
    assert first["owners"] == reward.owners == {"Alice": 1.0, "李雷": 0.0}
    assert {key: first[key] for key in KEYS[:-2]} == {key: getattr(reward, key) for key in KEYS[:-2]}
    assert (first["qa_term"], first["total"]) == (0.0, reward.total())
    assert second["qa_term"] == 0.35 * 0.95 * 0.5
    assert second["total"] == reward.total(0.5, 1, 3)


@pytest.mark.parametrize(
    "changes", [{"qa_gain": None, "length": 5}, {"qa_gain": 0.5}, {"qa_gain": 0.5, "length": None}, {"position": None}]
)
def test_no_gain_or_no_length_is_no_question_term(repository, changes):
    done = score(repository, "--transitions", "-", stdin=json.dumps(transition(**changes)).encode())
    assert json.loads(done.stdout)["qa_term"] == 0.0


def test_stdin_bom_and_missing_record_fields(repository):
    line = transition(post_state={"entries": [{}, {"content": None, "owner": "李雷"}]}, report={}, actions=[None])
    done = score(repository, "--transitions", "-", stdin=b"\xef\xbb\xbf" + json.dumps(line, ensure_ascii=False).encode())
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["owners"] == {"": 0.0, "Alice": 0.0, "李雷": 0.0}


def test_the_unicode_tokenizer(repository):
    cyrillic = state(entry("Зоя любит чай"))
    assert unseen_text_share("Зоя любит чай") == 1.0
    line = json.dumps(transition(post_state=cyrillic, reference=cyrillic)).encode()
    for tokenizer, phi in (("paper", 0.0), ("unicode", 1.0)):
        done = score(repository, "--transitions", "-", "--tokenizer", tokenizer, stdin=line)
        assert json.loads(done.stdout)["phi"] == phi


def test_output_is_ascii_json_on_any_terminal(repository):
    lone = entry("tea", owner="\ud800")
    line = json.dumps(transition(post_state=state(lone), reference=state(lone))).encode()
    done = score(repository, "--transitions", "-", stdin=line, environment={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["owners"] == {"\ud800": 1.0}


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ("{not json}\n", "is not JSON"),
        ("[" * 100_000 + "\n", "is not JSON"),
        ("[1, 2]\n", "one transition per line"),
        (transition(reference=None), "`reference`"),
        (transition(report=[]), "`report`"),
        (transition(actions={}), "`actions`"),
        (transition(pre_state="x"), "`pre_state`"),
        (transition(post_state={"entries": 5}), "`post_state.entries`"),
        (transition(reference={"update_edges": {}}), "`reference.update_edges`"),
        (transition(qa_gain="much", length=5), "qa_gain"),
        (transition(qa_gain=float("nan"), length=5), "qa_gain"),
        (transition(qa_gain=0.5, length=5, position=5), "position"),
        (transition(qa_gain=0.5, length=5, position=None), "`position`"),
        (transition(qa_gain=0.5, length="5"), "`length`"),
    ],
)
def test_a_bad_line_exits_2_and_names_file_line_and_key(repository, tmp_path, bad, named):
    file = written(tmp_path / "T.jsonl", transition(), bad)
    done = score(repository, "--transitions", file)
    error = done.stderr.decode()
    assert done.returncode == 2
    assert f"{file}:2: " in error and named in error
    assert error.count("\n") == 1 and "Traceback" not in error
    assert len(done.stdout.splitlines()) == 1  # what came before it is scored


def test_text_that_is_not_utf8_exits_2(repository, tmp_path):
    file = tmp_path / "T.jsonl"
    file.write_bytes(json.dumps(transition()).encode() + b'\n{"a": "\xff"}\n')
    done = score(repository, "--transitions", str(file))
    assert done.returncode == 2
    assert f"{file}:2: is not UTF-8" in done.stderr.decode()


@pytest.mark.parametrize("arguments", [[], ["--transitions"], ["--transitions", "absent.jsonl"], ["--transitions", "."]])
def test_a_bad_argument_exits_2_with_one_line(repository, arguments):
    done = score(repository, *arguments)
    assert done.returncode == 2
    assert done.stderr.decode().count("\n") == 1 and b"Traceback" not in done.stderr


def test_an_empty_file_is_an_error(repository, tmp_path):
    done = score(repository, "--transitions", written(tmp_path / "T.jsonl", "\n"))
    assert done.returncode == 2 and b"no transition" in done.stderr


def test_help_says_what_goes_in_and_what_comes_out(repository):
    done = score(repository, "--help")
    assert done.returncode == 0
    for word in (*KEYS, "qa_gain", "length", "--transitions"):
        assert word.encode() in done.stdout


def test_reads_what_replay_prints(repository, tmp_path):
    """The teacher's own outputs, replayed and scored against the teacher: nothing is lost on the way."""
    words = {"speaker": "Alice", "content": "I like tea", "session": "s1", "ts": "2026-01-01", "msg_id": "0"}
    actions = [
        {"action": "ADD", "owner": "Alice", "source": "Alice", "layer": "per_speaker_core", "utype": "fact", "content": "tea"}
    ]
    taught = {"turn": 0, "session_id": "s1", "ts": "2026-01-01", "messages": [words], "actions": actions}
    teacher = {"schema": "speakermem-v4-trajectories/1", "network_id": "own", "transitions": [taught]}
    network = written(tmp_path / "N.json", json.dumps(teacher))
    completions = written(tmp_path / "C.jsonl", {"completion": json.dumps({"actions": actions})})
    replay = [sys.executable, "launch/replay.py", "--network", network, "--completions", completions, "--reference", network]
    replayed = subprocess.run(replay, cwd=repository, capture_output=True, timeout=PATIENCE)
    assert replayed.returncode == 0, replayed.stderr
    done = score(repository, "--transitions", "-", stdin=replayed.stdout)
    assert done.returncode == 0, done.stderr
    line = json.loads(done.stdout)
    assert (line["valid"], line["mem"], line["penalty"], line["total"]) == (1.0, 1.0, 0.0, 0.65)
