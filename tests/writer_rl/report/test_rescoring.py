"""Stored rollouts scored again: the same rewards give the same to the bit, others what their definition says."""

import numpy as np
import pytest

from tests.writer_rl.report.made_runs import make_run
from writer_rl.config import ConfigError, GRPOConfig
from writer_rl.grpo.advantages import position_advantages
from writer_rl.report.rescoring import GroupFigures, Rescorer, change, rescored, stored_scores, what_if_settings
from writer_rl.report.stored_run import StoredRun


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return StoredRun(make_run(tmp_path_factory.mktemp("run"), rounds=2, networks=3, group_size=4))


def test_the_runs_own_rewards_give_the_runs_own_figures_to_the_bit(run):
    score = Rescorer(run.config)
    for each in run.rounds():
        for group in each.groups:
            returns, advantages = stored_scores(group)[:2]
            scores = score(group)
            assert (scores.returns == returns).all() and (scores.advantages == advantages).all() and group.differing == 0
            for row, rewards in zip(group.records, scores.rewards, strict=True):
                assert [line.reward["mem"] for line in row] == [reward.mem for reward in rewards]


def test_other_weights_give_what_eq_9_says_of_the_stored_terms(run):
    settings = what_if_settings(run, ["--reward.weights", "{valid: 0.5, mem: 0.1, qa: 1.0, gamma: 0.5}"])
    for group in run.round(1).groups:
        last = group.taught.length - 1
        expected = [
            [
                0.5 * r.reward["valid"] + 0.1 * r.reward["mem"] + r.reward["penalty"] + 0.5 ** (last - r.position) * r.qa_gain
                for r in row
            ]
            for row in group.records
        ]
        scores = Rescorer(settings)(group)
        assert np.allclose(scores.returns, expected, atol=1e-12)
        assert np.allclose(scores.advantages, position_advantages(np.array(expected)), atol=1e-9)


def test_a_threshold_changes_the_matching_itself(run):
    strict = Rescorer(what_if_settings(run, ["--reward.weights.threshold", "1.0"]))
    for group in run.round(1).groups:
        for row, rewards in zip(group.records, strict(group).rewards, strict=True):
            assert all(reward.phi <= line.reward["phi"] + 1e-12 for line, reward in zip(row, rewards, strict=True))


def figures(returns, advantages):
    returns = np.array(returns)
    return GroupFigures(returns, np.array(advantages), np.broadcast_to(returns.std(axis=0), returns.shape), [["x"] * 2] * 2)


def test_a_change_by_hand():
    before = figures([[1.0, 0.5], [0.0, 0.5]], [[1.0, 0.0], [-1.0, 0.0]])
    after = figures([[0.0, 0.5], [1.0, 0.7]], [[-1.0, -1.0], [1.0, 1.0]])
    found = change([before], [after])
    assert (found.completions, found.columns, found.signs, found.silent_before, found.silent_after) == (4, 2, 4, 1, 0)
    assert (found.return_before, found.return_after, found.advantage_shift) == (0.5, pytest.approx(0.55), pytest.approx(1.5))
    # ranks 4, 2.5, 1, 2.5 and 1, 2, 4, 3: Pearson's correlation of these
    assert found.return_rank == pytest.approx(np.corrcoef([4, 2.5, 1, 2.5], [1, 2, 4, 3])[0, 1])
    # all words are alike: the first column is contradicted before, both after; neighbours 1, -1 with 0, 0 and -1, 1 with -1, 1
    assert (found.contradicted_before, found.contradicted_after) == (0.5, 1.0)
    assert (found.neighbours_before, found.neighbours_after) == (None, pytest.approx(1.0))
    flat = figures([[0.0], [0.0]], [[0.0], [0.0]])
    assert change([flat], [flat]).return_rank is None


def test_all_rounds_together_are_the_sum_of_the_rounds(run):
    total, each = rescored(run.rounds(), what_if_settings(run, ["--reward.weights.mem", "0"]))
    assert sorted(each) == [1, 2] and total.signs == sum(c.signs for c in each.values()) > 0
    assert total.completions == sum(c.completions for c in each.values())


@pytest.mark.parametrize(
    "overrides, message",
    [
        (["--trainer.lr", "1"], "only reward settings"),
        (["--reward.qa.s1_k", "3"], "not asked again"),
        (["--reward.weights.none", "1"], "none"),
        (["--reward.weights.macro", "0.5"], "macro"),
        (["--reward.terms", "{nothing: 1}"], "nothing"),
    ],
)
def test_what_cannot_be_changed_afterwards_says_so(run, overrides, message):
    with pytest.raises(ValueError, match=message) as error:
        what_if_settings(run, overrides)
    assert "\n" not in str(error.value)


def test_a_term_that_is_new_is_scored_on_stored_rollouts(run, tmp_path, monkeypatch):
    (tmp_path / "what_if_term.py").write_text(
        "from rewards.terms import reward_term\n@reward_term('brevity_what_if')\n"
        "def brevity(actions, report, pre_state, post_state, reference):\n    return -float(len(actions))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    settings = what_if_settings(run, ["--reward.modules", "[what_if_term]", "--reward.terms.brevity_what_if", "0.1"])
    for group in run.round(1).groups:
        returns = stored_scores(group).returns
        lengths = np.array([[len(line.actions) for line in row] for row in group.records])
        assert np.allclose(Rescorer(settings)(group).returns, returns - 0.1 * lengths)


def test_the_default_settings_are_the_papers():
    assert Rescorer(GRPOConfig()).weights.mem == 0.45 and issubclass(ConfigError, ValueError)
