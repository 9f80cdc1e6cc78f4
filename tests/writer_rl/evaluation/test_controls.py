"""Rows of a file, and the document of all results: what is given twice or too little is refused with the place."""

import json
import re

import pytest

from launch.cli import UsageError
from launch.reproduce import arguments, check_settings
from memory_env.datafile import DataError
from writer_rl.config import load_config, resolve
from writer_rl.evaluation.controls import ControlRow, RowError, read_rows, results_document, results_table


@pytest.mark.parametrize(("file", "least"), [("controls.yaml:core", 5), ("controls.yaml:more", 5), ("new-networks.yaml", 2)])
def test_every_row_of_the_controls_is_a_run_that_exists(file, least):
    rows = read_rows(str(resolve(f"configs/{file}")))
    assert len({row.folder for row in rows}) == len(rows) >= least
    for row in rows:
        config = "configs/demo.yaml" if row.script == "grpo" else "configs/tiny-sft.yaml"
        chosen = row.arguments("configs/tiny_writer", "runs/none")
        assert not any("{" in each and re.search("{(SFT|RL)}", each) for each in chosen)
        load_config(row.script, resolve(config), chosen)  # raises for a setting that does not exist
    whole = read_rows(str(resolve(f"configs/{file.partition(':')[0]}")))
    assert {row.name for row in rows} <= {row.name for row in whole}


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("core: [{settings: --a 1}]", RowError, r"core\[0\]: give name"),
        ("core: [{name: x, script: bash}]", RowError, "script is grpo or sft"),
        ("core: [{name: a/b}]", RowError, "a name has letters"),
        ("core: [{name: x, setting: y}]", RowError, "give name, settings"),
        ("more: []", RowError, "no group of that name; .* has more"),
        ("[1]", RowError, "no group"),
        ("core: [", DataError, "not YAML"),
        ("core: 3", RowError, "core: a group is a list"),
        ("core: {name: x}", RowError, "core: a group is a list"),
        ("core: [7]", RowError, r"core\[0\]: give name"),
        ("core: [{name: x, settings: 3}]", RowError, r"core\[0\]: settings are one text"),
        ("core: [{name: x, settings: trainer.lr 1}]", RowError, "settings are one text of --section.key value"),
        ("core: [{name: x, settings: --trainer.lr 1, gets: [1]}]", RowError, "gets is a text"),
        ("core: [{name: x, settings: \"--trainer.lr '1\"}]", RowError, r"core\[0\]: settings: No closing quotation"),
    ],
)
def test_a_file_that_says_too_little_is_refused_with_the_place(tmp_path, text, error, words):
    (tmp_path / "rows.yaml").write_text(text)
    with pytest.raises(error, match=words):
        read_rows(f"{tmp_path / 'rows.yaml'}:core")


def test_what_is_no_text_file_is_refused_by_name(tmp_path):
    (tmp_path / "rows.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="rows.yaml: byte 0 is not UTF-8"):
        read_rows(f"{tmp_path / 'rows.yaml'}:core")
    for nothing in (tmp_path, tmp_path / "none.yaml"):
        with pytest.raises(DataError, match="is no file"):
            read_rows(str(nothing))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--row", "mine=--trainer.lrr 1e-4"], "row mine: .*trainer.lrr"),
        (["--row", "mine=--trainer.steps 0"], "row mine: .*trainer.steps"),
        (["--row", "a=--trainer.lr 1e-4", "--row", "b=--trainer.lr '1"], "No closing quotation"),
        (["--grpo-settings", "--trainer.credt local"], "GRPO: .*trainer.credt"),
        (["--grpo-settings", "--trainer.lr '1"], "--grpo-settings: No closing quotation"),
        (["--sft-settings", "--trainer.epoch 1"], "SFT: .*trainer.epoch"),
    ],
)
def test_a_setting_that_does_not_exist_is_refused_before_the_first_stage(tmp_path, options, words):
    with pytest.raises(UsageError, match=words):
        check_settings(arguments(["--output_dir", str(tmp_path / "o"), *options]))
    assert not (tmp_path / "o").exists()


def test_rows_of_the_file_and_the_command_line_together(tmp_path):
    (tmp_path / "rows.yaml").write_text("core: [{name: no KL, settings: --trainer.kl_coef 0, gets: all}]")
    chosen = arguments(["--output_dir", str(tmp_path / "o"), "--rows", f"{tmp_path / 'rows.yaml'}", "--row", "mine=--trainer.lr 1e-4"])
    assert [row.name for row in chosen.rows] == ["RL", "mine", "no KL"] and chosen.rows[2].gets == "all"


def answers(folder, right):
    """An evaluation's files with four questions on two networks: `right` has the verdicts of each Writer."""
    folder.mkdir()
    keys = [("n1", "q1"), ("n1", "q2"), ("n2", "q3"), ("n2", "q4")]
    (folder / "questions.jsonl").write_text(
        "".join(
            json.dumps({"variant": "main", "writer": w, "seed": 0, "network_id": n, "question_id": q, "correct": mark == "1"}) + "\n"
            for w, marks in right.items()
            for (n, q), mark in zip(keys, marks, strict=True)
        )
    )
    rows = [{"writer": w, "accuracy_mean": 25.0 * marks.count("1")} for w, marks in right.items()]
    (folder / "evaluation.json").write_text(json.dumps({"total": 4, "frozen": {}, "rows": rows}))
    return folder


def test_the_document_has_every_pair_and_the_table_a_line_a_row(tmp_path):
    folder = answers(tmp_path / "e", {"SFT": "1000", "RL": "1100", "no KL": "1111", "teacher": "1111", "none": "0000"})
    rows = [ControlRow("RL"), ControlRow("no KL", ("--trainer.kl_coef", "0"), gets="the same")]
    found = results_document(rows, [0], {"corpus:heldout": folder}, {"no KL": {"cpu_seconds": 12.4, "tokens": 3456}})
    pairs = {(p["first"], p["second"]): p["difference"] for p in found["sets"]["corpus:heldout"]["pairs"]}
    assert pairs == {("SFT", "RL"): 25.0, ("SFT", "no KL"): 75.0, ("RL", "no KL"): 50.0}
    assert json.loads(json.dumps(found))["sets"].keys() == found["sets"].keys() and found["rows"][1]["settings"] == "--trainer.kl_coef 0"
    lines = results_table(found).splitlines()
    assert [line.split("  ")[0] for line in lines[2:]] == ["SFT", "RL", "no KL", "teacher", "none"]
    assert "+75.00" in lines[4] and "3,456" in lines[4] and "12" in lines[4] and lines[4].rstrip().endswith("the same")
