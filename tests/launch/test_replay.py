import json
import subprocess
import sys

import pytest

from launch.cli import exit_code
from launch.replay import main
from memory_env.loader import load_network
from memory_env.trajectory import load_trajectory
from tests.memory_env.chats import NOOP, add, document, output, update

REPORT = [
    "json_valid", "attempted", "applied", "noop", "errors", "created_ids", "updated_from", "schema_valid_actions",
    "too_many_actions", "hit_length_limit",
]  # fmt: skip
FIRST = [add("Alice likes tea"), {"action": "NOOP"}, 3]


@pytest.fixture
def files(tmp_path):
    """Writes a network and completions, and gives the arguments that name them."""

    def write(*completions, network=None):
        (tmp_path / "n.json").write_text(json.dumps(network or document()))
        lines = (line if isinstance(line, str) else json.dumps(line) for line in completions)
        (tmp_path / "c.jsonl").write_text("\n".join(lines))
        return ["--network", str(tmp_path / "n.json"), "--completions", str(tmp_path / "c.jsonl")]

    return write


def completion(*actions, **more):
    return {"completion": output(*actions), **more}


def replay(capsys, arguments):
    assert exit_code(main, arguments) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_one_line_per_position_with_the_documented_keys(files, capsys):
    lines = replay(capsys, files(completion(*FIRST), {"completion": "oops", "hit_length_limit": True}))
    assert [list(line) for line in lines] == [
        ["position", "session_id", "n_messages", "actions", "report", "pre_state", "post_state"]
    ] * 2
    first, second = lines
    assert (first["position"], first["session_id"], first["n_messages"]) == (0, "n1_s01", 3)
    assert first["actions"] == FIRST and list(first["report"]) == REPORT
    assert first["report"]["attempted"] == 3 and first["report"]["applied"] == 1 and len(first["report"]["errors"]) == 2
    assert first["pre_state"] == {"entries": [], "update_edges": [], "roster": []}
    assert [entry["content"] for entry in first["post_state"]["entries"]] == ["Alice likes tea"]
    assert first["post_state"]["roster"] == ["Alice", "Bob", "Carol"]
    assert second["pre_state"] == second["post_state"] == first["post_state"]
    assert second["actions"] == [] and second["report"]["attempted"] == 0
    assert second["report"]["hit_length_limit"] and not second["report"]["json_valid"]


def test_the_messages_behind_a_record_are_found_as_asked(files, capsys, monkeypatch):
    from memory_env.query.retrieve import dense

    arguments = files(completion(add("Alice likes tea")), completion(NOOP))
    assert replay(capsys, [*arguments, "--provenance", "lexical"]) == replay(capsys, arguments)

    class Embedder:
        def encode(self, texts):  # what is like the first text is like no other
            return [[float(text == "Alice likes tea"), 1.0 - (text == "Alice likes tea")] for text in texts]

    monkeypatch.setattr(dense, "minilm", Embedder)
    (first, _) = replay(capsys, [*arguments, "--provenance", "minilm"])
    assert first["post_state"]["entries"][0]["from_ids"] == []
    monkeypatch.undo()
    monkeypatch.setattr(dense, "MINILM_PACKAGE", "no_such_package")
    assert exit_code(main, [*arguments, "--provenance", "minilm"]) == 2
    assert "not installed" in capsys.readouterr().err


def test_an_update_prints_its_edge(files, capsys):
    (first, _) = replay(capsys, files(completion(*FIRST), completion(NOOP)))
    old = first["report"]["created_ids"][0]
    (_, second) = replay(capsys, files(completion(*FIRST), completion(update(old, "Alice likes coffee"))))
    assert second["report"]["updated_from"] == [old]
    assert second["post_state"]["update_edges"] == [{"old": old, "new": second["report"]["created_ids"][0]}]


def test_strict_rejects_an_output_with_an_error(files, capsys):
    lines = replay(capsys, [*files(completion(*FIRST), completion(add("x"))), "--strict"])
    assert [line["report"]["applied"] for line in lines] == [0, 1]


def test_windows_make_more_positions(files, capsys):
    lines = replay(capsys, [*files(*[completion(NOOP)] * 4), "--window", "2"])
    assert [(line["position"], line["n_messages"]) for line in lines] == [(0, 2), (1, 1), (2, 2), (3, 1)]


def test_prompts_show_what_the_writer_saw_before_it_wrote(files, capsys, tmp_path):
    arguments = files(completion(*FIRST), completion(NOOP))
    first, second = replay(capsys, [*arguments, "--prompts"])
    assert first["observation"]["heads"] == [] and first["observation"]["roster"] == ["Alice", "Bob", "Carol"]
    assert [head["content"] for head in second["observation"]["heads"]] == ["Alice likes tea"]
    assert second["observation"]["budget"] == 8 and second["observation"]["omitted_heads"] == 0
    assert [message["role"] for message in second["prompt"]] == ["system", "user"]
    assert "Alice likes tea" in second["prompt"][1]["content"]
    (tmp_path / "own.txt").write_text("{roster}!")
    (first, _) = replay(capsys, [*arguments, "--prompts", "--template", str(tmp_path / "own.txt")])
    assert first["prompt"] == [{"role": "user", "content": "Alice, Bob, Carol!"}]


def test_a_reference_is_printed_after_every_position(files, capsys, tmp_path):
    entry = {
        "entry_id": "r0",
        "content": "Alice likes tea",
        "owner": "Alice",
        "source": "Alice",
        "layer": "per_speaker_core",
        "turn_created": 1,
    }
    teacher = {"network_id": "n1", "final_state": {"entries": [entry], "update_edges": []}}
    (tmp_path / "teacher.json").write_text(json.dumps(teacher))
    lines = replay(capsys, [*files(completion(NOOP), completion(NOOP)), "--reference", str(tmp_path / "teacher.json")])
    assert [[e["entry_id"] for e in line["reference"]["entries"]] for line in lines] == [[], ["r0"]]
    assert lines[1]["reference"]["update_edges"] == []


@pytest.mark.parametrize(
    ("completions", "says"),
    [
        ([], "has 0 lines"),
        ([completion(NOOP)], "has 1 lines"),
        ([completion(NOOP)] * 3, "has 3 lines"),
        ([completion(NOOP), "{"], "c.jsonl, line 2: not valid JSON"),
        ([completion(NOOP), "", completion(NOOP)], "c.jsonl, line 2: not valid JSON"),
        ([completion(NOOP), "[]"], "c.jsonl, line 2: the line is a list; it must be an object"),
        ([completion(NOOP), {}], "c.jsonl, line 2: the line.completion is missing"),
        ([completion(NOOP), {"completion": []}], "completion is a list; it must be a string"),
        ([completion(NOOP), completion(NOOP, hit_length_limit="yes")], "hit_length_limit is a string; it must be true or false"),
    ],
)
def test_wrong_completions_exit_2_with_one_line_and_print_nothing(files, capsys, completions, says):
    assert exit_code(main, files(*completions)) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and says in captured.err and captured.err.count("\n") == 1


@pytest.mark.parametrize(
    "more",
    [
        ["--window", "0"],
        ["--reference", "gone.json"],
        ["--prompts", "--template", "gone.jinja"],
        ["--network", "gone.json"],
    ],
)
def test_wrong_arguments_exit_2_and_print_nothing(files, capsys, more):
    assert exit_code(main, [*files(completion(NOOP), completion(NOOP)), *more]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1 and more[-1] in captured.err


def test_hostile_completions_are_printed_as_json(files, capsys):
    hostile = '{"actions": ["\\ud800", NaN, {"action": ["ADD"]}, ' + "9" * 4000 + ", " + "[" * 300 + "]" * 300 + "]}"
    lines = replay(capsys, files({"completion": hostile}, {"completion": "[" * 100_000}))
    assert lines[0]["report"]["attempted"] == 5 and lines[0]["actions"][0] == "\ud800"
    assert not lines[1]["report"]["json_valid"]


def test_blank_lines_at_the_end_and_line_separators_in_strings_do_not_count(files, capsys):
    separator = json.dumps(completion(add("a\u2028b")), ensure_ascii=False).replace("\\\\u2028", "\u2028")
    lines = replay(capsys, files(separator, completion(NOOP), "", " "))
    assert [entry["content"] for entry in lines[0]["post_state"]["entries"]] == ["a\u2028b"]


def test_it_runs_as_a_script_from_anywhere(files, repository, tmp_path):
    script = repository / "launch" / "replay.py"
    arguments = files(completion(NOOP), completion(NOOP))
    done = subprocess.run([sys.executable, script, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 2 and done.stderr == ""
    done = subprocess.run([sys.executable, script, "--help"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "--completions" in done.stdout
    done = subprocess.run([sys.executable, script, *arguments[:2]], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "--completions" in done.stderr and "Traceback" not in done.stderr


def test_a_teachers_actions_replay_to_its_reference(capsys, tmp_path, shared_data):
    for path in sorted((shared_data / "speakermem_r1" / "manual_trajectories").iterdir()):
        teacher = load_trajectory(path, load_network(path))
        completions = tmp_path / "c.jsonl"
        completions.write_text("\n".join(json.dumps(completion(*actions)) for actions in teacher.actions))
        lines = replay(capsys, ["--network", str(path), "--completions", str(completions), "--reference", str(path), "--strict"])
        for line in lines:
            assert line["report"]["errors"] == [] and line["post_state"] == line["reference"]


def published(tmp_path, capsys, files):
    """A network and a teacher file of it whose entry ids are another program's."""
    arguments = files(completion(add("lives in Leeds")), completion(NOOP))
    first, _ = replay(capsys, arguments)
    ours = first["report"]["created_ids"][0]
    arguments = files(completion(add("lives in Leeds")), completion(update(ours, "lives in York")))
    lines = replay(capsys, arguments)
    renamed = json.loads(json.dumps(lines).replace(ours, "theirs-1"))
    transitions = [
        {"session_id": line["session_id"], "messages": [], "actions": line["actions"], "report": line["report"],
         "post_state": line["post_state"]} for line in renamed
    ]  # fmt: skip
    (tmp_path / "teacher.json").write_text(json.dumps({"network_id": "n1", "transitions": transitions}))
    (tmp_path / "c.jsonl").write_text("\n".join(json.dumps(completion(*line["actions"])) for line in renamed))
    return arguments, lines


def test_a_published_teachers_actions_replay_though_their_ids_are_anothers(tmp_path, capsys, files):
    arguments, lines = published(tmp_path, capsys, files)
    assert replay(capsys, arguments)[1]["report"]["errors"] != []
    with_reference = replay(capsys, [*arguments, "--reference", str(tmp_path / "teacher.json")])
    assert [line["post_state"] for line in with_reference] == [line["post_state"] for line in lines]
    arguments[arguments.index("--completions") + 1] = str(tmp_path / "teacher.json")
    assert replay(capsys, arguments) == lines
