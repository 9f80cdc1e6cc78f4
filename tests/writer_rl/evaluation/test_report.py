"""Tables of an evaluation."""

from __future__ import annotations

from writer_rl.evaluation.report import (
    evaluation_document,
    memory_table,
    spread,
    variant_category_table,
    variant_document,
    writer_table,
)


def test_memory_figures_of_several_seeds_have_their_sample_standard_deviation():
    seeds = [{"total": 0.4, "records": 10.0}, {"total": 0.6, "records": 14.0}]
    text = memory_table({"RL": {"total": 0.5, "records": 12.0, "seeds": seeds}, "none": {"total": 0.25, "seeds": seeds[:1]}})
    header, _, several, single = text.split("\n")
    assert header.split()[:2] == ["Memory", "total"]
    assert "0.500 ± 0.141" in several and "12.0 ± 2.8" in several
    assert "±" not in single and "0.250" in single and single.split()[-1] == "-"


def test_one_seed_has_no_deviation():
    assert spread(50.0, None) == "50.00" and spread(0.5, 0.0714, digits=3) == "0.500 ± 0.071"


def scores(interval, categories):
    by_category = {name: {"accuracy_mean": share, "total": total} for name, (share, total) in categories.items()}
    return {
        "correct": [3], "accuracy_mean": 60.0, "accuracy_std": None, "token_f1_mean": 1.0, "mean_q": 0.5, "mean_n": 0.5,
        "mean_n_ci95": interval, "by_category": by_category,
    }  # fmt: skip


def test_one_network_has_no_interval():
    rows = [{"writer": "a", **scores([0.5, 0.5], {})}, {"writer": "b", **scores([0.25, 0.75], {})}]
    one, several = writer_table(evaluation_document(5, {}, rows)).split("\n")[2:]
    assert one.split()[-1] == "0.500" and several.endswith("0.500 [0.250, 0.750]")


def test_an_ablations_total_stands_beside_its_categories():
    """Equal totals, carried by one category in the second row."""
    full = {"variant": "full", "writer": "a", **scores([0, 1], {"1": (60.0, 3), "5": (60.0, 2)})}
    none = {"variant": "w/o S1", "writer": "a", **scores([0, 1], {"1": (33.3, 3), "5": (100.0, 2)})}
    text = variant_category_table(variant_document(5, {"questions": "q", "judge": "j"}, [full, none]), "Ablation")
    header, _, first, second = text.split("\n")
    assert header.split() == ["Ablation", "Acc.", "(%)", "1", "(3)", "5", "(2)"]
    assert first.split() == ["full", "a", "60.0", "60.0"] and second.split() == ["w/o", "S1", "a", "33.3", "100.0"]
