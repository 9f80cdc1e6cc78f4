"""Tables of an evaluation."""

from __future__ import annotations

from writer_rl.evaluation.report import memory_table, spread


def test_memory_figures_of_several_seeds_have_their_sample_standard_deviation():
    seeds = [{"total": 0.4, "records": 10.0}, {"total": 0.6, "records": 14.0}]
    text = memory_table({"RL": {"total": 0.5, "records": 12.0, "seeds": seeds}, "none": {"total": 0.25, "seeds": seeds[:1]}})
    header, _, several, single = text.split("\n")
    assert header.split()[:2] == ["Memory", "total"]
    assert "0.500 ± 0.141" in several and "12.0 ± 2.8" in several
    assert "±" not in single and "0.250" in single and single.split()[-1] == "-"


def test_one_seed_has_no_deviation():
    assert spread(50.0, None) == "50.00" and spread(0.5, 0.0714, digits=3) == "0.500 ± 0.071"
