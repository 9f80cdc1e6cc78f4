"""The figures of a round: keys that never change, and values by hand."""

import json

import pytest

from rollout.mismatch import MismatchSums
from rollout.sampling_bias import BiasSums
from rollout.sync import SyncReport
from tests.writer_rl.grpo.test_groups import assembled, gain, setting  # noqa: F401
from writer_rl.grpo import metrics
from writer_rl.grpo.update import Epoch, UpdateReport
from writer_rl.run.clock import PhaseClock
from writer_rl.run.metrics import checked_metrics

FULL = UpdateReport(
    samples=5,
    tokens=100,
    epochs=(Epoch(-0.1, 0.0, 0.0, 1.5, True), Epoch(-0.2, 0.01, 0.25, 1.2, True)),
    skipped=None,
    entropy=0.7,
    sampler_logprobs=[-1.0, -2.0],
    trainer_logprobs=[-1.0, -2.1],
)
EMPTY = UpdateReport(0, 0, (), "empty")
SKIPPED = UpdateReport(5, 100, (Epoch(-0.1, 0.5, 0.0),), "kl", 0.7)


def record(groups, update):
    return checked_metrics(
        {
            "round": 1,
            **metrics.reward_metrics(groups, positions=4),
            **metrics.rollout_metrics(groups),
            **metrics.mismatch_metrics([metrics.rank_figures(update, {}, PhaseClock())]),
            **metrics.policy_metrics(update, epochs=2, lr=1e-6, version=1, steps=2),
            **metrics.qa_metrics(groups),
            **metrics.skip_metrics({"kl": 2}, 1),
            **metrics.time_metrics({"rollout": 2.0, "update": 4.0}, groups, update, []),
        }
    )


def test_the_keys_are_the_same_whatever_happened(setting):  # noqa: F811
    with_qa = assembled(setting, {"chat_0": gain("chat_0", [1.0, 0.0, -1.0])})
    records = [record(groups, update) for groups in (with_qa, assembled(setting)[:1]) for update in (FULL, SKIPPED, EMPTY)]
    assert all(list(each) == list(records[0]) for each in records)
    for each in records:
        json.dumps(each, allow_nan=False)
    groups = {key.split("/")[0] for key in records[0]} - {"round"}
    assert groups == {"reward", "rollout", "policy", "qa", "skips", "time", "perf"}


def test_what_the_issue_asks_for_is_there(setting):  # noqa: F811
    found = record(assembled(setting), FULL)
    wanted = [
        "reward/mem/mean",
        "reward/mem/std",
        "reward/penalty/std",
        "reward/zero_variance/position_0",
        "policy/kl",
        "policy/clip_fraction",
    ]
    wanted += ["policy/entropy", "policy/grad_norm", "skips/total", "rollout/completion_length/mean", "rollout/truncation"]
    wanted += ["perf/update_tokens_per_s", "time/rollout", "time/update", "qa/gain/mean", "rollout/mismatch_max"]
    assert [key for key in wanted if key not in found] == []


def test_values_by_hand(setting):  # noqa: F811
    found = record(assembled(setting, {"chat_0": gain("chat_0", [1.0, 0.0, -1.0])}), FULL)
    assert (found["policy/kl"], found["policy/kl/epoch_1"], found["policy/clip_fraction"], found["policy/grad_norm"]) == (
        0.01,
        0.0,
        0.25,
        1.2,
    )
    assert (found["policy/steps_taken"], found["policy/samples"], found["policy/entropy"]) == (2, 5, 0.7)
    assert found["rollout/mismatch_max"] == pytest.approx(0.1)
    assert found["rollout/truncation"] == pytest.approx(1 / 3)
    assert found["rollout/completion_length/mean"] == 2.0
    assert found["qa/gain/mean"] == 0.0 and found["qa/gain/std"] == pytest.approx((2 / 3) ** 0.5)
    assert (found["skips/kl"], found["skips/empty"], found["skips/total"], found["skips/consecutive"]) == (2, 0, 2, 1)
    assert (found["perf/rollout_tokens_per_s"], found["perf/update_tokens_per_s"]) == (15.0, 50.0)
    assert found["reward/zero_variance/position_3"] is None  # no network is that long


def test_silent_cells_are_counted_per_position(setting):  # noqa: F811
    groups = assembled(setting)
    found = record(groups, FULL)
    cells = [(t, sigma < 0.02) for group in groups for t, sigma in enumerate(group.deviations[0])]
    assert found["reward/zero_variance"] == pytest.approx(sum(zero for _, zero in cells) / len(cells))
    for position in range(3):
        at = [zero for t, zero in cells if t == position]
        assert found[f"reward/zero_variance/position_{position}"] == pytest.approx(sum(at) / len(at))


def rank(engine=None, peak_gib=None):
    return metrics.RankFigures(MismatchSums(), BiasSums(), engine or {}, peak_gib or {})


def test_engine_figures_of_all_ranks():
    synced = SyncReport(3, 2e-6, 1e-6, -1.0, -1.0, 16, 0.1, tensors=27, checksum_seconds=0.01)
    ranks = [
        rank({"prompt_tokens": 100.0, "cached_prompt_tokens": 60.0}),
        rank({"prompt_tokens": 300.0, "cached_prompt_tokens": 140.0}),
    ]
    assert metrics.engine_metrics(synced, ranks) == {
        "rollout/sync_max_difference": 2e-6,
        "rollout/sync_mean_difference": 1e-6,
        "rollout/sync_equal_tensors": 27,
        "time/sync_checksums": 0.01,
        "perf/prefix_cache_hit_rate": 0.5,
    }
    assert metrics.engine_metrics(synced, [rank({"prompt_tokens": 0.0})])["perf/prefix_cache_hit_rate"] == 0.0


def test_memory_is_the_most_that_any_rank_needed_in_each_phase(setting):  # noqa: F811
    peaks = {"round": 3.0, "update": 3.0, "rollout": 1.0}, {"round": 2.5, "update": 2.5, "rollout": 2.0}
    ranks = [rank(peak_gib=each) for each in peaks]
    found = metrics.time_metrics({}, assembled(setting), FULL, ranks)
    assert [found[f"perf/peak_memory_gib{part}"] for part in ("", "/rollout", "/update")] == [3.0, 2.0, 3.0]
    assert metrics.time_metrics({}, assembled(setting), FULL, [rank()])["perf/peak_memory_gib"] is None
