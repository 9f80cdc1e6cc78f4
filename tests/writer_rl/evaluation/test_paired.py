"""Pairs of Writers: by hand, against a slow bootstrap, and what can't be paired."""

import json
import random
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_env.datafile import DataError
from writer_rl.evaluation.paired import paired, paired_table, read_verdicts


def verdicts(text, networks=2):
    """ "10" is right, then wrong; questions go to the networks in turn."""
    return {(f"n{i % networks}", f"q{i}"): mark == "1" for i, mark in enumerate(text)}


def test_by_hand():
    pair = paired("SFT", "RL", [verdicts("100", 1)], [verdicts("110", 1)])
    assert (pair.questions, pair.seeds, pair.better, pair.worse, pair.p) == (3, 1, 1, 0, 1.0)
    assert pair.difference == pytest.approx(100 / 3) and pair.interval is None
    pair = paired("a", "b", [verdicts("0000000000")], [verdicts("1111111110")])
    assert pair.p == pytest.approx(2 / 2**9) and pair.difference == pytest.approx(90.0)


def test_one_seed_stands_beside_every_seed_of_the_other():
    pair = paired("a", "b", [verdicts("1100")], [verdicts("1110"), verdicts("0111")])
    # gains 0 0 1 0 and -1 0 1 1: question 0 loses, 2 and 3 gain
    assert (pair.better, pair.worse, pair.seeds) == (2, 1, 2) and pair.difference == pytest.approx(100 * 2 / 8)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_the_sign_test_is_the_binomial(pairs):
    before, after = ("".join("01"[each[side]] for each in pairs) for side in (0, 1))
    pair = paired("a", "b", [verdicts(before)], [verdicts(after)])
    n, k = pair.better + pair.worse, min(pair.better, pair.worse)
    assert pair.p == pytest.approx(min(1.0, 2 * sum(comb(n, i) for i in range(k + 1)) / 2**n))
    assert pair.difference == pytest.approx(100 * (pair.better - pair.worse) / len(pairs))
    back = paired("b", "a", [verdicts(after)], [verdicts(before)])
    assert (back.better, back.worse, back.p) == (pair.worse, pair.better, pair.p)


def test_the_interval_is_that_of_a_slow_bootstrap():
    dice = random.Random(5)
    before = [verdicts("".join(dice.choice("01") for _ in range(60)), 6) for _ in range(2)]
    after = [verdicts("".join(dice.choice("0111") for _ in range(60)), 6) for _ in range(2)]
    means = []
    for _ in range(4000):
        seeds, names = dice.choices((0, 1), k=2), dice.choices([f"n{i}" for i in range(6)], k=6)
        gains = [after[s][k] - before[s][k] for s in seeds for name in names for k in before[s] if k[0] == name]
        means.append(100 * sum(gains) / len(gains))
    low, high = paired("a", "b", before, after).interval
    assert low == pytest.approx(np.percentile(means, 2.5), abs=1.5) and high == pytest.approx(np.percentile(means, 97.5), abs=1.5)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ([verdicts("10")], [verdicts("101")], "same questions"),
        ([verdicts("10")] * 2, [verdicts("10")] * 3, "2 seeds and b 3"),
        ([], [], "0 seeds"),
    ],
)
def test_what_can_not_be_paired_says_why(before, after, words):
    with pytest.raises(DataError, match=words):
        paired("a", "b", before, after)


def test_answers_are_read_from_an_evaluation(tmp_path):
    lines = [
        {"variant": v, "writer": w, "seed": s, "network_id": "n", "question_id": q, "correct": (w == "RL") ^ (q == "q1")}
        for v in ("main", "w/o S1") for w in ("SFT", "RL") for s in (0, 1) for q in ("q1", "q2")
    ]  # fmt: skip
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    found = read_verdicts(tmp_path)
    assert found["RL"] == [{("n", "q1"): False, ("n", "q2"): True}] * 2 and len(found["SFT"]) == 2
    assert "RL - SFT" in paired_table([paired("SFT", "RL", found["SFT"], found["RL"])])
    with pytest.raises(DataError, match="is not there"):
        read_verdicts(tmp_path / "none")
    (tmp_path / "questions.jsonl").write_text("[]\n")
    with pytest.raises(DataError, match="line 1"):
        read_verdicts(tmp_path)
