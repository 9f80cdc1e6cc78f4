import dataclasses
import math

import pytest

from rewards import RewardWeights
from rewards.weights import WeightError


def test_the_defaults_are_the_papers():
    assert dataclasses.asdict(RewardWeights()) == {
        "token": 0.60,
        "sequence": 0.40,
        "threshold": 0.50,
        "macro": 0.80,
        "worst": 0.20,
        "chain_old": 0.50,
        "chain_new": 0.50,
        "state": 0.80,
        "chain": 0.20,
        "json": 0.25,
        "schema": 0.35,
        "dup": 0.25,
        "stop": 0.15,
        "invalid_json": 0.25,
        "invalid_action": 0.15,
        "too_many_actions": 0.10,
        "length_limit": 0.10,
        "valid": 0.20,
        "mem": 0.45,
        "qa": 0.35,
        "gamma": 0.95,
    }


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(RewardWeights)])
@pytest.mark.parametrize("wrong", [-0.1, math.nan, math.inf, "0.5", None, True])
def test_every_number_is_checked_and_named(name, wrong):
    with pytest.raises(WeightError, match=f"^{name}: "):
        RewardWeights(**{name: wrong})


@pytest.mark.parametrize(
    "wrong", [{"token": 0.7}, {"macro": 1.0}, {"chain_old": 0.4}, {"state": 0.5}, {"stop": 0.0}, {"threshold": 1.5}]
)
def test_parts_of_a_whole_add_up_to_one_and_thresholds_are_fractions(wrong):
    with pytest.raises(WeightError, match=next(iter(wrong))):
        RewardWeights(**wrong)


def test_ablations_are_allowed():
    assert RewardWeights(macro=1.0, worst=0.0, qa=0.0, gamma=1, threshold=0).worst == 0.0
    assert RewardWeights(token=0.1 + 0.2, sequence=0.7).sequence == 0.7  # rounding is not an error
