"""What structural faults cost (Eq. 21)."""

from __future__ import annotations

from typing import Any

from rewards.entries import value
from rewards.validity import error_count, is_json_valid
from rewards.weights import PAPER, RewardWeights


def penalty(report: Any, weights: RewardWeights = PAPER) -> float:
    """P <= 0: invalid JSON, any error in the report, too many actions, and reaching the length limit, each once.

    Invalid JSON also is an error in the report: 0.40 in all; an empty action list is an error alone: 0.15.
    """
    return (
        0.0
        - weights.invalid_json * (not is_json_valid(report))
        - weights.invalid_action * (error_count(report) > 0)
        - weights.too_many_actions * bool(value(report, "too_many_actions"))
        - weights.length_limit * bool(value(report, "hit_length_limit"))
    )
