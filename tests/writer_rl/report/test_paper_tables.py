"""The paper's tables: its rows and columns from evaluation folders, by hand; and a reason where there is none."""

import json

import pytest

from launch import tables as script
from launch.cli import exit_code
from memory_env.datafile import DataError
from writer_rl.report.paper_tables import TABLES, best_differences, training_data
from writer_rl.report.results import EVER, EVER_COLUMNS, GROUP, LOCOMO, SOCIAL, Results, benchmark_of, names, open_results
from writer_rl.train.data import load_sources, with_teachers

BY_NUMBER = {table.number: table for table in TABLES}


def figures(correct, total, f1=50.0):
    accuracy = 100 * correct / total
    return {
        "total": total,
        "correct": [correct],
        "accuracy_mean": accuracy,
        "accuracy_std": None,
        "token_f1_mean": f1,
        "mean_q": 0.5,
    }


def row(name, categories):
    correct, total = (sum(each[place] for each in categories.values()) for place in (0, 1))
    whole = figures(correct, total) | {"mean_n": 0.4, "mean_n_ci95": [0.3, 0.5]}
    return {"writer": name, **whole, "by_category": {key: figures(*each) for key, each in categories.items()}}


def folder(path, rows, **parts):
    path.mkdir(parents=True)
    total = rows[0]["total"]
    document = {"total": total, "frozen": {"questions": "abcdef012345", "judge": "123456789abc"}, "rows": rows}
    for name, value in {"evaluation": document, **parts}.items():
        (path / f"{name}.json").write_text(json.dumps(value))
    return Results.open(path)


@pytest.mark.parametrize(
    "categories, benchmark",
    [
        ({"Q1", "Q9"}, SOCIAL),
        ({"abstention", "user_implicit", "multi_hop", "temporal", "knowledge_update", "term_ambiguity"}, GROUP),
        ({"F_SH_Top01", "F_MH_Top02", "MA_P_Top01", "P_Style_Top03"}, EVER),
        ({"single-hop", "multi-hop", "temporal", "open-domain", "adversarial"}, LOCOMO),
        ({"whatever"}, ""),
    ],
)
def test_a_folder_is_known_by_its_categories(categories, benchmark):
    assert benchmark_of(categories) == benchmark


@pytest.mark.parametrize(
    "category, column",
    [
        ("F_SH_Top01", "Single"),
        ("MA_C_Top09", "Const"),
        ("MA_P_Top01", "Proact"),
        ("P_Title_x", "Role"),
        ("F_TP", "Temp"),
        ("Update", "Update"),
    ],
)
def test_behaviours_do_not_depend_on_how_ids_begin_or_end(category, column):
    assert [name for name, words in EVER_COLUMNS.items() if names(category, words, EVER)] == [column]


def test_locomo_counts_and_the_total_without_adversarial_questions(tmp_path):
    counts = {"single-hop": (6, 8), "multi-hop": (1, 4), "temporal": (2, 4), "open-domain": (1, 4), "adversarial": (9, 10)}
    results = [folder(tmp_path / "a", [row("RL", counts)])]
    lines = {line.split("  ")[0].strip(): line.split() for line in BY_NUMBER["T23"].text(results).splitlines()}
    assert lines["Adversarial/AD"][-2:] == ["9/10", "90.00"] and lines["Single-hop"][-2:] == ["6/8", "75.00"]
    assert lines["All questions"][-2:] == ["19/30", "63.33"] and lines["Excluding AD"][-2:] == ["10/20", "50.00"]
    assert BY_NUMBER["T4"].text(results).splitlines()[-2].split() == ["RL", "75.00", "25.00", "50.00", "25.00", "50.00"]
    assert "other systems" in BY_NUMBER["T4"].text(results)


def test_ablations_are_measured_against_the_better_full_row(tmp_path):
    values = {"w/o S2": 10, "w/o S1": 5, "full, no ASK": 15, "full, ASK": 16}
    rows = [{"variant": name, "writer": "RL", **figures(value, 20)} for name, value in values.items()]
    results = folder(tmp_path / "a", [row("RL", {"Q1": (15, 20)})], ablations={"rows": rows})
    found = best_differences(results, "RL")
    assert found["w/o S2"] == (50.0, -30.0) and found["full, no ASK"] == (75.0, -5.0) and found["full, ASK"][1] == 0
    assert "-30.00" in BY_NUMBER["T22"].text([results])


def test_multiple_choice_and_open_questions_apart(tmp_path):
    results = folder(tmp_path / "a", [row("RL", {"F_SH_Top01": (2, 4)})])
    lines = [
        {
            "variant": "main",
            "writer": "RL",
            "network_id": "n",
            "question_id": f"q{n}",
            "option": "A" if n < 2 else "",
            "correct": n == 0,
            "token_f1": 0.5,
        }
        for n in range(4)
    ]
    (tmp_path / "a" / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert results.split("RL") == {True: (50.0, 50.0), False: (0.0, 50.0)}
    assert "50.0/50.0  0.0/50.0" in BY_NUMBER["T1"].text([results])


def test_tokens_of_all_benchmarks_are_the_sum(tmp_path):
    usage = {"calls": 2, "ingest_in": 100, "ingest_out": 20, "qa_input": 30, "answer_out": 10, "total": 160}
    tokens = {"table": {"RL": usage}}
    results = [
        folder(tmp_path / "a", [row("RL", {"Q1": (1, 4)})], tokens=tokens),
        folder(tmp_path / "b", [row("RL", {"abstention": (1, 4)})], tokens=tokens),
    ]
    assert BY_NUMBER["T9"].text(results).splitlines()[3].split() == ["RL", "4", "200", "40", "60", "20", "320", "40.00"]
    assert BY_NUMBER["T10"].text(results).splitlines()[3].split()[-1] == "40.00"


def test_a_second_evaluation_of_a_benchmark_is_the_second_answer_model(tmp_path):
    results = [folder(tmp_path / name, [row(name, {"Q1": (1, 4), "Q2": (2, 4)})]) for name in ("a", "b")]
    assert "\na " in BY_NUMBER["T17"].text(results) and "\nb " not in BY_NUMBER["T17"].text(results)
    assert "\nb " in BY_NUMBER["T21"].text(results)


def test_every_table_says_why_it_is_not_there(tmp_path):
    results = [folder(tmp_path / "a", [row("RL", {"odd": (1, 4)})])]
    for table in TABLES:
        assert "none: " in table.text(results)


def test_the_composition_of_the_training_data():
    from writer_rl.config import DataSection

    data = DataSection()
    networks = with_teachers(load_sources(data.train), data)
    last = training_data(networks).splitlines()[-1].split()
    actions = sum(len(output) for each in networks for output in each.teacher.actions)
    assert last[:3] == ["Total,", "15", "networks"] and last[4:6] == ["73", "89"]  # as in the paper's Table 13
    assert sum(map(int, last[6:])) == actions


def test_the_command_prints_all_tables_and_draws_figures(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    grid = [
        {"variant": f"S1 {s1} x S2 {s2}", "writer": "RL", **figures(s1 + s2, 40, float(s1))}
        for s1 in (5, 10, 20)
        for s2 in (2, 4, 6)
    ]
    ablated = [{"variant": "full, no ASK", "writer": "RL", **figures(15, 20)}]
    folder(tmp_path / "x" / "a", [row("RL", {"Q1": (15, 20)})], grid={"rows": grid}, ablations={"rows": ablated})
    assert exit_code(script.main, [str(tmp_path / "x")]) == 0
    printed = capsys.readouterr().out
    assert all(f"\n{number}  " in f"\n{printed}" for number in (*BY_NUMBER, "T13"))
    assert {p.name for p in (tmp_path / "x" / "figures").iterdir()} == {"fig4.png", "fig5.png", "fig6.png"}


def test_bad_input_is_one_line(tmp_path, capsys):
    with pytest.raises(DataError, match="no such folder"):
        open_results([tmp_path / "none"])
    for arguments, message in ([[str(tmp_path)], "no evaluation.json"], [[str(tmp_path), "--table", "T99"], "T99"]):
        assert exit_code(script.main, arguments) == 2
        complaint = capsys.readouterr().err
        assert message in complaint and complaint.count("\n") == 1
