"""A mismatch that grows over its first value stops a run; rounding does not."""

import math

import pytest

from rollout.drift import FLOORS, GROWTH, DriftLimit, SamplerDrifted

LIMIT = DriftLimit(5.0, 1e-4)


@pytest.mark.parametrize(
    ("first", "now", "stops"),
    [
        (1e-7, 9e-5, False),  # 900 times the first value, and still noise
        (1e-7, 1.1e-4, True),
        (0.0, 5e-5, False),  # the hf engine shares the trainer's module: the first value may be nothing
        (1e-3, 4.9e-3, False),
        (1e-3, 5.1e-3, True),
        (1e-3, math.nan, True),
        (1e-3, math.inf, True),
    ],
)
def test_growth_counts_above_the_floor(first, now, stops):
    if not stops:
        LIMIT.require(now, first, "round 3")
        return
    with pytest.raises(SamplerDrifted) as caught:
        LIMIT.require(now, first, "round 3")
    message = str(caught.value)
    assert f"{now:.2e}" in message and f"{first:.2e}" in message and "round 3" in message and "\n" not in message


def test_bfloat16_gets_more_room_than_float32():
    assert GROWTH > 1 and 0 < FLOORS["float32"] < FLOORS["bfloat16"]
