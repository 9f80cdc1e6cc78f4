"""Scores by hand and against independent definitions."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from writer_rl.evaluation.scores import Result, bootstrap_interval, summary, token_f1


def result(network, number, correct, score=None, category="Q1", f1=0.5):
    return Result(network, f"q{number}", category, correct, float(correct) if score is None else score, f1)


@pytest.mark.parametrize(
    "answer, gold, expected",
    [
        ("Oslo", "oslo", 1.0),
        ("  Lives in   Oslo. ", "lives in oslo", 1.0),
        ("Oslo...", "Oslo", 1.0),
        ("lives in Oslo.", "Oslo", 0.5),  # precision 1/3, recall 1
        ("no no no Oslo", "Oslo no", 1.0),  # sets, not multisets
        ("Oslo, Norway", "Oslo", 0.0),  # only trailing periods are stripped
        ("", "Oslo", 0.0),
        ("Oslo", "", 0.0),
        (".", ".", 0.0),
    ],
)
def test_token_f1_by_hand(answer, gold, expected):
    assert token_f1(answer, gold) == pytest.approx(expected)


words = st.lists(st.sampled_from(["a", "b", "c", "D", "e.", "f"]), max_size=6).map(" ".join)


@given(words, words)
def test_token_f1_equals_the_dice_coefficient_of_the_token_sets(a, b):
    left, right = (set(text.lower().strip().rstrip(".").split()) for text in (a, b))
    expected = 2 * len(left & right) / (len(left) + len(right)) if left & right else 0.0
    assert token_f1(a, b) == pytest.approx(expected) == token_f1(b, a)


def test_a_row_by_hand():
    """Network a: 3 questions, b: 1. Seeds 2/4 and 3/4 right."""
    first = [result("a", 0, True), result("a", 1, False, 0.5), result("a", 2, False, 0.0, "Q2"), result("b", 0, True, f1=1.0)]
    second = [result("a", 0, True), result("a", 1, True), result("a", 2, False, 0.0, "Q2"), result("b", 0, True, f1=1.0)]
    row = summary([first, second])
    assert row["correct"] == [2, 3]
    assert row["accuracy_mean"] == 62.5 and row["accuracy_std"] == pytest.approx(statistics.stdev([50.0, 75.0]))
    assert row["token_f1_mean"] == pytest.approx(62.5)
    assert row["mean_q"] == pytest.approx((2.5 / 4 + 3 / 4) / 2)
    assert row["mean_n"] == pytest.approx(((0.5 + 1) / 2 + (2 / 3 + 1) / 2) / 2)
    assert row["by_category"]["Q2"] == {
        "total": 1,
        "correct": [0, 0],
        "accuracy_mean": 0.0,
        "accuracy_std": 0.0,
        "token_f1_mean": 50.0,
        "mean_q": 0.0,
    }
    assert row["by_category"]["Q1"]["total"] == 3


def test_one_seed_has_no_deviation():
    row = summary([[result("a", 0, True)]])
    assert row["accuracy_std"] is None and row["by_category"]["Q1"]["accuracy_std"] is None


def test_seeds_over_other_questions_are_refused():
    for seeds in ([], [[]], [[result("a", 0, True)], [result("a", 1, True)]], [[result("a", 0, True)], []]):
        with pytest.raises(ValueError, match="same questions"):
            summary(seeds)


def test_the_papers_figures_come_out():
    """174, 175, 176 of 305 are 57.38 ± 0.33; 206, 208, 210 are 68.20 ± 0.66 (Appendix E)."""
    published = (((174, 175, 176), 57.38, 0.33), ((206, 208, 210), 68.20, 0.66), ((216, 218, 220), 71.48, 0.66))
    for counts, mean, deviation in published:
        row = summary([[result("n", i, i < right) for i in range(305)] for right in counts])
        assert (round(row["accuracy_mean"], 2), round(row["accuracy_std"], 2)) == (mean, deviation)


def test_the_interval_is_that_of_resampled_networks():
    means = [0.2, 0.5, 0.9, 0.4]
    low, high = bootstrap_interval(means)
    exact = np.array([np.mean([means[i] for i in index]) for index in np.ndindex(4, 4, 4, 4)])
    assert low == pytest.approx(np.percentile(exact, 2.5), abs=0.03)
    assert high == pytest.approx(np.percentile(exact, 97.5), abs=0.03)
    assert (low, high) == bootstrap_interval(means)
    assert bootstrap_interval([0.7]) == (pytest.approx(0.7), pytest.approx(0.7))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_the_interval_lies_within_the_networks(means):
    low, high = bootstrap_interval(means, resamples=200)
    slack = 1e-9
    assert min(means) - slack <= low <= high <= max(means) + slack and not math.isnan(low)
