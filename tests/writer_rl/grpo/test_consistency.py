"""How local credit is: by hand, and against loops over all pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr

from writer_rl.grpo.consistency import contradicted, neighbour_correlation


def test_by_hand():
    assert neighbour_correlation([np.array([[1.0, 1.0], [-1.0, -1.0]])]) == pytest.approx(1.0)
    assert neighbour_correlation([np.array([[1.0, -1.0], [-1.0, 1.0]])]) == pytest.approx(-1.0)
    assert neighbour_correlation([np.array([[1.0], [0.0]])]) is None and neighbour_correlation([]) is None
    assert contradicted([([["x"], ["x"], ["y"]], np.array([[1.0], [0.0], [-1.0]]))]) == 1.0
    assert contradicted([([["x"], ["x"], ["x"]], np.array([[1.0], [0.5], [0.5]]))]) == 0.0
    assert contradicted([([["x"], ["y"]], np.array([[1.0], [0.0]]))]) is None


@given(st.integers(2, 5), st.integers(2, 4), st.randoms(use_true_random=False))
def test_against_all_pairs(size, length, dice):
    advantages = np.array([[dice.choice([-1.0, 0.0, 0.3, 1.0]) for _ in range(length)] for _ in range(size)])
    texts = [[dice.choice("ab") for _ in range(length)] for _ in range(size)]
    pairs = [
        (advantages[g, t], [advantages[i, t] for i in range(size) if i != g and texts[i][t] == texts[g][t]])
        for g in range(size)
        for t in range(length)
    ]
    alike = [any(abs(a - b) > 0.5 for b in others) for a, others in pairs if others]
    assert contradicted([(texts, advantages)]) == (pytest.approx(np.mean(alike)) if alike else None)
    before, after = advantages[:, :-1].ravel(), advantages[:, 1:].ravel()
    if np.ptp(before) and np.ptp(after):
        assert neighbour_correlation([advantages]) == pytest.approx(pearsonr(before, after).statistic)
