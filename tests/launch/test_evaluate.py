"""launch/evaluate.py: tables and files of the controlled evaluation, resumed, frozen, refused."""

import json
import subprocess
import sys

import pytest

from tests.launch.scripts import launch
from tests.memory_env.query.chat_server import Script, error, ok, serving
from tests.writer_rl.tiny_run import save_chats, save_config, save_writer

ROW_KEYS = [
    "writer",
    "correct",
    "accuracy_mean",
    "accuracy_std",
    "token_f1_mean",
    "mean_q",
    "mean_n",
    "mean_n_ci95",
    "by_category",
]
QUIET = ["--tracking.progress", "false"]


@pytest.fixture
def run(repository, monkeypatch, tmp_path):
    """`run(*arguments)` -> (exit code, stdout, stderr) of the script, in this process."""
    from launch import evaluate
    from launch.cli import exit_code

    def call(*arguments, capsys):
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["launch/evaluate.py"])
        code = exit_code(evaluate.main, [*map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_the_corpus_needs_the_writer_and_the_reader_can_answer_it(run, tmp_path, capsys):
    """The teacher's memory at least 90 %, with full evidence too, and at least 15 points above messages alone; 305 questions."""
    code, out, err = run(
        "--config", "configs/evaluate.yaml", "--writer", "teacher", "--writer", "none", "--ablations", "--full-evidence",
        "--output", tmp_path / "e", *QUIET, capsys=capsys,
    )  # fmt: skip
    assert code == 0, err
    document = json.loads((tmp_path / "e" / "evaluation.json").read_text())
    assert list(document) == ["total", "frozen", "rows"] and document["total"] == 305
    assert sorted(document["frozen"]) == ["budgets", "judge", "prompts", "questions"]
    teacher, none = document["rows"]
    assert list(teacher) == ROW_KEYS and teacher["accuracy_std"] is None and len(teacher["correct"]) == 1
    assert sorted(teacher["by_category"]) == [f"Q{i}" for i in range(1, 10)]
    assert sum(category["total"] for category in teacher["by_category"].values()) == 305
    assert teacher["accuracy_mean"] >= 90 and teacher["accuracy_mean"] >= none["accuracy_mean"] + 15
    ablations = {row["variant"]: row for row in json.loads((tmp_path / "e" / "ablations.json").read_text())["rows"]}
    full = ablations["full, no ASK"]
    assert full["accuracy_mean"] == teacher["accuracy_mean"] >= ablations["w/o S2"]["accuracy_mean"] + 15
    for name in ("w/o S2-group", "w/o S2-person"):
        assert ablations["w/o S2"]["accuracy_mean"] < ablations[name]["accuracy_mean"] < full["accuracy_mean"]
        assert ablations[name]["budgets"] != full["budgets"]
    lines = [json.loads(line) for line in (tmp_path / "e" / "questions.jsonl").read_text().splitlines()]
    everything, messages = json.loads((tmp_path / "e" / "full_evidence.json").read_text())["rows"]
    assert everything["accuracy_mean"] >= 90 and everything["accuracy_mean"] >= messages["accuracy_mean"] + 15
    assert len(lines) == 305 * (2 + 6 + 2)
    assert {"question", "gold", "answer", "correct", "score", "reason", "evidence"} <= lines[0].keys()
    assert "Gap to teacher" in out and "Ablation" in out


@pytest.fixture
def chats(tmp_path):
    """A tiny Writer and two chats with teachers; (config file, networks folder)."""
    config = save_config(tmp_path, {"data.heldout": [str(tmp_path / "chats" / "networks")], "data.train": []})
    return config


def test_a_checkpoint_writes_answers_and_is_resumed(run, chats, tmp_path, capsys):
    arguments = ("--config", chats, "--writer", f"tiny={tmp_path / 'writer'},{tmp_path / 'writer'}", "--writer", "teacher")
    code, out, err = run(*arguments, "--output", tmp_path / "e", *QUIET, capsys=capsys)
    assert code == 0, err
    row = json.loads((tmp_path / "e" / "evaluation.json").read_text())["rows"][0]
    assert len(row["correct"]) == 2 and row["accuracy_std"] == 0.0  # two seeds, the same weights
    memories = (tmp_path / "e" / "memories.jsonl").read_text()
    before = {name: (tmp_path / "e" / name).read_bytes() for name in ("evaluation.json", "questions.jsonl", "memories.jsonl")}
    (tmp_path / "e" / "questions.jsonl").write_bytes(b"".join(before["questions.jsonl"].splitlines(True)[:3]))
    (tmp_path / "e" / "memories.jsonl").write_text(memories[: len(memories) // 2])  # torn in the middle of a line
    (tmp_path / "e" / "evaluation.json").unlink()
    code, again, err = run(*arguments, "--output", tmp_path / "e", *QUIET, capsys=capsys)
    assert code == 0 and again == out, err
    for name, content in before.items():
        assert (tmp_path / "e" / name).read_bytes() == content, name


@pytest.mark.parametrize("odd", ["a\u2028b", "a\x85b", "a\x0b\x1e\x00b", "a\ud83db"], ids=ascii)
def test_whatever_a_chat_holds_is_evaluated_and_resumed(run, tmp_path, capsys, odd):
    """What Python takes for a line end, control characters, half of an emoji: in messages, questions, answers and records."""
    turn = {"speaker": "Ana", "content": f"I like tea {odd}"}
    question = {"id": "q1", "category": f"c {odd}", "question": f"What does Ana like? {odd}", "answer": f"tea {odd}"}
    network = {
        "speakers": ["Ana"],
        "sessions": [{"session_id": "s1", "turns": [turn]}],
        "qa_pairs": [question],
        "meta": {"network_id": "n"},
    }
    record = {"owner": "Ana", "source": "Ana", "layer": "per_speaker_core", "utype": "fact", "content": f"likes tea {odd}"}
    taught = {"network_id": "n", "transitions": [{"actions": [{"action": "ADD", **record}]}]}
    for name, document in (("network.json", network), ("taught.json", taught)):
        (tmp_path / name).write_text(json.dumps(document))
    arguments = (
        "--config", "configs/evaluate.yaml", "--networks", tmp_path / "network.json",
        "--data.trajectories", f"[{tmp_path / 'taught.json'}]", "--writer", "teacher", "--output", tmp_path / "e", *QUIET,
    )  # fmt: skip
    first = run(*arguments, capsys=capsys)
    assert first[0] == 0 and run(*arguments, capsys=capsys) == first, first[2]
    line = json.loads((tmp_path / "e" / "questions.jsonl").read_text(encoding="utf-8"))
    assert line["gold"] == question["answer"] and line["correct"]


def test_other_questions_or_budgets_are_never_one_table(run, chats, tmp_path, capsys):
    base = ("--config", chats, "--writer", "teacher", *QUIET)
    assert run(*base, "--output", tmp_path / "a", capsys=capsys)[0] == 0
    code, _, err = run(*base, "--output", tmp_path / "a", "--evaluation.s2_k", "4", capsys=capsys)
    assert code == 2 and "budgets" in err
    assert run(*base, "--output", tmp_path / "b", "--evaluation.s2_k", "4", capsys=capsys)[0] == 0
    code, _, err = run("--compare", tmp_path / "a/evaluation.json", tmp_path / "b/evaluation.json", capsys=capsys)
    assert code == 2 and "budgets" in err and "b/evaluation.json" in err
    save_chats(tmp_path / "more", networks=1)
    more = (*base, "--networks", tmp_path / "more/networks", "--data.trajectories", f"[{tmp_path / 'more/trajectories'}]")
    code, _, err = run(*more, "--output", tmp_path / "a", capsys=capsys)
    assert code == 2 and "questions" in err


def test_results_are_compared_in_one_table(run, chats, tmp_path, capsys):
    for name in ("teacher", "none"):
        assert run("--config", chats, "--writer", name, "--output", tmp_path / name, *QUIET, capsys=capsys)[0] == 0
    files = [tmp_path / name / "evaluation.json" for name in ("teacher", "none")]
    code, out, _ = run("--compare", *files, capsys=capsys)
    assert code == 0 and "teacher" in out and "none" in out
    code, _, err = run("--compare", files[0], files[0], capsys=capsys)
    assert code == 2 and "teacher" in err


def test_grid_and_baselines(run, chats, tmp_path, capsys):
    code, out, err = run(
        "--config", chats, "--writer", "teacher", "--grid", "--baselines", "--output", tmp_path / "e", *QUIET, capsys=capsys
    )
    assert code == 0, err
    grid = json.loads((tmp_path / "e" / "grid.json").read_text())
    assert [row["variant"] for row in grid["rows"]] == [f"S1 {s1} x S2 {s2}" for s1 in (5, 10, 20) for s2 in (2, 4, 6)]
    assert len({row["budgets"] for row in grid["rows"]}) == 9
    assert (tmp_path / "e" / grid["plot"]).read_bytes().startswith(b"\x89PNG")
    baselines = [row["variant"] for row in json.loads((tmp_path / "e" / "baselines.json").read_text())["rows"]]
    assert baselines[0] == "BM25" and baselines[-1] == "Full context"


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--writer", "RL="], "--writer RL="),
        (["--writer", "RL=no/such/folder"], "no model there"),
        (["--writer", "a=teacher", "--writer", "a=none"], "name of its own"),
        (["--writer", "t=teacher,none"], "seeds"),
        (["--writer", "teacher", "--evaluation.s2_kk", "4"], "s2_kk"),
        (["--writer", "teacher", "--networks", "no/such/file.json"], "no/such/file.json"),
        (["--writer", "teacher", "--evaluation.backend", "openai"], "model"),
        (["--writer", "m=endpoint:gpt"], "OPENAI_API_KEY"),
        (["--writer", "teacher", "--data.train", "corpus:heldout", "--data.heldout", "corpus:heldout"], "heldout_01"),
        ([], "--writer"),
    ],
)
def test_bad_arguments_are_one_line_and_leave_nothing(run, chats, tmp_path, capsys, monkeypatch, arguments, said):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    extra = ["--model.path", "no/model"] if not arguments else []
    code, _, err = run("--config", chats, *arguments, *extra, "--output", tmp_path / "e", *QUIET, capsys=capsys)
    assert code == 2 and said in err and len(err.splitlines()) == 1, err
    assert not (tmp_path / "e" / "evaluation.json").exists()


def test_a_folder_with_other_things_in_it_is_refused(run, chats, tmp_path, capsys):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("precious")
    code, _, err = run("--config", chats, "--writer", "teacher", "--output", tmp_path / "full", capsys=capsys)
    assert code == 2 and "not empty" in err


@pytest.mark.endpoint
def test_a_backend_that_fails_stops_the_run_with_a_clear_message(run, chats, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1")
    base = ["--config", chats, "--writer", "teacher", "--evaluation.backend", "openai", "--evaluation.model", "m"]
    with serving(Script(error(400, "too long"))) as url:
        code, _, err = run(*base, "--evaluation.base_url", url, "--output", tmp_path / "a", *QUIET, capsys=capsys)
    assert code == 1 and "could not be judged" in err and "HTTP 400" in err and len(err.splitlines()) <= 3
    with serving(Script(error(401, "bad key sk-secret-1"))) as url:
        code, _, err = run(*base, "--evaluation.base_url", url, "--output", tmp_path / "b", *QUIET, capsys=capsys)
    assert code == 1 and "HTTP 401" in err and "sk-secret-1" not in err
    assert not (tmp_path / "a" / "evaluation.json").exists()
    for file in (tmp_path / "a").iterdir():
        assert b"sk-secret-1" not in file.read_bytes()


@pytest.mark.endpoint
def test_an_endpoint_evaluates_and_its_tokens_are_counted_once_over_interruptions(run, chats, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1")
    base = ["--config", chats, "--writer", "teacher", "--evaluation.backend", "openai", "--evaluation.model", "m", *QUIET]
    bad = error(400, "too long")
    answered, judged = ok({"answer": "Ann: tea"}), ok({"correct": True, "score": 0.5, "reason": "half"})

    def reply(handler, request):
        judging = "Gold answer" in request["messages"][-1]["content"]
        (judged if judging else answered)(handler, request)

    with serving(Script(reply, reply, bad)) as url:  # one question is judged, then nothing works
        limited = ("--evaluation.base_url", url, "--evaluation.concurrency", 1)
        code, _, err = run(*base, *limited, "--output", tmp_path / "e", capsys=capsys)
        assert code == 1, err
    with serving(reply, at=url):  # the address is part of what an answer depends on
        code, out, err = run(*base, "--evaluation.base_url", url, "--output", tmp_path / "e", capsys=capsys)
    assert code == 0, err
    document = json.loads((tmp_path / "e" / "evaluation.json").read_text())
    assert document["rows"][0]["accuracy_mean"] == 100 and document["rows"][0]["mean_q"] == 0.5
    tokens = json.loads((tmp_path / "e" / "tokens.json").read_text())
    asked = len((tmp_path / "e" / "questions.jsonl").read_text().splitlines())
    calls = tokens["stages"]["answer"]["calls"]
    assert 1 <= calls <= asked and tokens["table"]["all calls"]["qa_input"] == 100 * calls
    assert "Avg./question" in out


def test_the_script_runs_by_itself_and_teaches(repository):
    shown = subprocess.run([sys.executable, "launch/evaluate.py", "--help"], cwd=repository, capture_output=True, text=True)
    assert shown.returncode == 0 and "--writer" in shown.stdout and "--settings" in shown.stdout and "--grid" in shown.stdout


@pytest.mark.parametrize(("script", "key"), [("evaluate", "--evaluation.s1_k"), ("grpo", "--trainer.kl_limit"), ("sft", "--trainer.lr")])
def test_settings_lists_every_setting(script, key):
    listed = launch(script, "--settings")
    assert listed.returncode == 0 and f"{key} (" in listed.stdout


def test_real_conversations_run_end_to_end(run, shared_data, tmp_path, capsys):
    """Whatever the accuracy is: three SocialMemBench networks with the teacher's states, and five LoCoMo conversations."""
    states = shared_data / "speakermem_r1" / "teacher_final_states"
    code, out, err = run(
        "--config", "configs/evaluate.yaml", "--writer", "teacher", "--writer", "none",
        "--networks", shared_data / "speakermem_r1" / "training_networks", "--data.trajectories", f"[{states}]",
        "--output", tmp_path / "social", *QUIET, capsys=capsys,
    )  # fmt: skip
    assert code == 0, err
    assert json.loads((tmp_path / "social" / "evaluation.json").read_text())["total"] == 17
    code, out, err = run(
        "--config", "configs/evaluate.yaml", "--writer", "none", "--networks", shared_data / "locomo",
        "--output", tmp_path / "locomo", *QUIET, capsys=capsys,
    )  # fmt: skip
    assert code == 0, err
    row = json.loads((tmp_path / "locomo" / "evaluation.json").read_text())["rows"][0]
    assert set(row["by_category"]) == {"multi-hop", "temporal", "open-domain", "single-hop", "adversarial"}
    assert row["by_category"]["single-hop"]["accuracy_mean"] > 0


def test_a_wrong_path_of_the_last_writer_shows_before_the_first_writes(run, chats, tmp_path, capsys):
    arguments = ("--config", chats, "--writer", "teacher", "--writer", "RL=no/such/folder", "--output", tmp_path / "e", *QUIET)
    code, _, err = run(*arguments, capsys=capsys)
    assert code == 2 and "no model there" in err
    assert not (tmp_path / "e" / "memories.jsonl").exists()


def test_a_row_whose_reward_asked_otherwise_says_so_in_the_table_and_in_its_merges(run, chats, tmp_path, capsys):
    """The run's own settings count, whatever the evaluation's configuration says about the reward; SFT asks nothing."""
    from writer_rl.config import load_config, to_yaml

    for kind, asked in (("grpo", ["--reward.qa.s1_k", "2"]), ("sft", [])):
        folder = tmp_path / kind
        (folder / "checkpoints").mkdir(parents=True)
        save_writer(folder / "final")
        (folder / "config.yaml").write_text(to_yaml(load_config(kind, None, asked)))
    rows = [("RL", "grpo"), ("SFT", "sft")]
    for name, kind in rows:
        arguments = ("--config", chats, "--writer", f"{name}={tmp_path / kind / 'final'}", *QUIET)
        code, out, err = run(*arguments, "--output", tmp_path / name, capsys=capsys)
        said = "RL: its reward's questions were asked with s1_k 2 (evaluation: 10)"
        assert code == 0 and (said in out and said in err) == (name == "RL"), err
    code, merged, err = run("--compare", *(tmp_path / name / "evaluation.json" for name, _ in rows), capsys=capsys)
    assert code == 0 and merged.count(said) == 1, err
