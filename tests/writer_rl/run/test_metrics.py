"""Records of figures: fixed keys, numbers that JSON can hold."""

import pytest

from writer_rl.run import metrics


def test_a_key_that_comes_or_goes_is_an_error():
    with pytest.raises(RuntimeError, match="b"):
        metrics.checked_metrics({"a": 1.0}, {"a", "b"})
    assert metrics.checked_metrics({"a": float("nan"), "b": float("inf"), "c": 2}) == {"a": None, "b": None, "c": 2}


def test_untimed_leaves_out_the_clock():
    assert metrics.untimed({"round": 1, "policy/kl": 0.1, "time/round": 2.0, "perf/x": 3.0}) == {"round": 1, "policy/kl": 0.1}
