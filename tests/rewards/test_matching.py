import itertools
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from rewards.matching import best_weight, soft_f1


@st.composite
def tables(draw):
    """Rows of weights, many of them 0, values that often tie."""
    columns = draw(st.integers(0, 5))
    weight = st.sampled_from((0.0, 0.0, 0.5, 0.6, 0.7, 0.8, 1.0)) | st.floats(0.5, 1.0)
    return draw(st.lists(st.lists(weight, min_size=columns, max_size=columns), max_size=5)), columns


def sparse(table):
    return [{column: weight for column, weight in enumerate(row) if weight} for row in table]


def brute_force(table, columns):
    """The best sum over all one-to-one matchings."""
    if not table:
        return 0.0
    places = list(range(columns)) + [None] * len(table)
    return max(
        math.fsum(row[place] for row, place in zip(table, chosen, strict=True) if place is not None)
        for chosen in itertools.permutations(places, len(table))
    )


@given(tables())
def test_equals_scipy_on_the_whole_matrix(drawn):
    table, columns = drawn
    matrix = np.array(table).reshape(len(table), columns)
    expected = math.fsum(matrix[linear_sum_assignment(matrix, maximize=True)])
    assert best_weight(sparse(table), columns) == expected


@given(tables().filter(lambda drawn: len(drawn[0]) <= 4 and drawn[1] <= 4))
def test_no_matching_weighs_more(drawn):
    table, columns = drawn
    assert math.isclose(best_weight(sparse(table), columns), brute_force(table, columns), abs_tol=1e-12)


def test_a_greedy_choice_would_be_worse():
    assert soft_f1([{0: 0.9, 1: 0.8}, {0: 0.7}], 2) == 2 * (0.8 + 0.7) / 4


def test_one_prediction_cannot_serve_two_references():
    assert soft_f1([{0: 1.0, 1: 1.0}], 2) == 2 * 1.0 / 3
    assert soft_f1([{0: 1.0}, {0: 1.0}], 1) == 2 * 1.0 / 3


def test_empty_sides():
    assert soft_f1([], 0) == 1.0
    assert soft_f1([], 3) == 0.0
    assert soft_f1([{}, {}], 0) == 0.0
    assert soft_f1([{}, {}], 2) == 0.0
