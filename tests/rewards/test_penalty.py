import itertools
import math

import pytest

from rewards.penalty import penalty
from rewards.weights import RewardWeights

FINE = {"json_valid": True, "errors": [], "too_many_actions": False, "hit_length_limit": False}


@pytest.mark.parametrize(
    ("faults", "value"),
    [
        ({}, 0.0),
        ({"json_valid": False, "errors": ["not JSON"]}, -0.40),  # as published: invalid JSON costs both
        ({"errors": ["empty list"]}, -0.15),
        ({"errors": ["a", "b", "c"]}, -0.15),
        ({"too_many_actions": True}, -0.10),
        ({"hit_length_limit": True}, -0.10),
        ({"json_valid": False, "errors": ["x"], "too_many_actions": True, "hit_length_limit": True}, -0.60),
    ],
)
def test_each_fault_costs_once(faults, value):
    assert penalty(FINE | faults) == pytest.approx(value, abs=1e-15)


def test_no_fault_is_plain_zero_not_minus_zero():
    assert math.copysign(1.0, penalty(FINE)) == 1.0


def test_faults_add_up():
    weights = RewardWeights(invalid_json=1, invalid_action=2, too_many_actions=4, length_limit=8)
    for broken in itertools.product((False, True), repeat=4):
        report = {
            "json_valid": not broken[0],
            "errors": ["x"] * broken[1],
            "too_many_actions": broken[2],
            "hit_length_limit": broken[3],
        }
        assert penalty(report, weights) == -sum(2**place for place in range(4) if broken[place])


def test_a_report_that_lacks_fields():
    assert penalty({"json_valid": True}) == 0.0
    assert penalty({"json_valid": True, "errors": None, "too_many_actions": None}) == 0.0
    assert penalty({}) == penalty(None) == -0.25  # nobody says that the JSON was valid
