"""Scored groups: returns and advantages stand with the step they belong to, and T and G are exact."""

from dataclasses import replace

import numpy as np
import pytest

from rewards import RewardWeights, Scorer
from rewards.qa_results import QAGain
from rollout.engine import Generation, SamplingParams
from rollout.sampler import sample_groups
from tests.writer_rl.tiny_run import ADD, NOOP, PROMPT, make_tokenizer, save_chats
from writer_rl.config import DataSection
from writer_rl.grpo.groups import assemble, final_states, score_trajectories
from writer_rl.train.data import load_training
from writer_rl.train.prompt import build_prompt

G = 3


class ScriptedEngine:
    """Writes what the trajectory and position say: trajectory 0 the teacher's output, the others worse."""

    policy_version = 7

    def generate(self, requests):
        outputs = [ADD, NOOP, "garbage"]
        return [
            Generation((10 + i % G, 3), outputs[i % G], (-0.5, -0.25), "length" if i % G == 2 else "stop")
            for i in range(len(requests))
        ]


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chats")
    save_chats(folder)
    (folder / "prompt.txt").write_text(PROMPT)
    section = DataSection(
        train=str(folder / "networks"),
        trajectories=str(folder / "trajectories"),
        heldout=(),
        validation=(),
        prompt=str(folder / "prompt.txt"),
    )
    data = {t.network.network_id: t for t in load_training(section)}
    prompt = build_prompt(section, make_tokenizer(), 512, 8)
    written = sample_groups([t.network for t in data.values()], ScriptedEngine(), prompt, G, SamplingParams(max_new_tokens=8), 0)
    return data, written, score_trajectories(written, data, Scorer())


def gain(name, values):
    zeros = (0.0,) * G
    return QAGain(name, tuple(values), zeros, zeros, questions=2, failed=0, calls=0, naive_calls=0)


def assembled(setting, gains=None, scored=None):
    data, _, default = setting
    lengths = {name: taught.length for name, taught in data.items()}
    return assemble(default if scored is None else scored, lengths, G, gains or {}, RewardWeights())


def test_returns_are_eq_9_and_advantages_belong_to_their_position(setting):
    groups = assembled(setting, {"chat_0": gain("chat_0", [1.0, 0.0, -1.0])})
    first = groups[0]
    assert (first.network_id, first.returns.shape) == ("chat_0", (G, 2))
    for g, trajectory in enumerate(first.trajectories):
        for t, scored in enumerate(trajectory.steps):
            reward = scored.reward
            expected = 0.2 * reward.valid + 0.45 * reward.mem + reward.penalty + 0.35 * 0.95 ** (1 - t) * (1.0, 0.0, -1.0)[g]
            assert first.returns[g, t] == pytest.approx(expected)
    # The teacher's own output at position 0: everything right; garbage: invalid JSON, an error, the length limit.
    assert first.trajectories[0].steps[0].reward.mem == 1.0
    assert first.trajectories[2].steps[0].reward.penalty == -0.5
    assert (np.sign(first.advantages[:, 0]) == [1, -1, -1]).all() or (np.sign(first.advantages[:, 0]) == [1, 1, -1]).all()


def test_samples_carry_the_engines_tokens_and_nonzero_advantages_only(setting):
    groups = assembled(setting)
    for group in groups:
        samples = group.samples()
        assert all(s.advantage == group.advantages[s.trajectory, s.position] != 0 for s in samples)
        assert len(samples) == np.count_nonzero(group.advantages)
        assert all(s.completion_ids == (10 + s.trajectory, 3) and s.sampler_logprobs == (-0.5, -0.25) for s in samples)
    threshold = float(np.median([abs(s.advantage) for g in groups for s in g.samples()]))
    assert all(abs(s.advantage) >= threshold for g in groups for s in g.samples(threshold))


def test_the_order_in_which_ranks_report_does_not_matter(setting):
    _, _, scored = setting
    one, other = assembled(setting), assembled(setting, scored=scored[::-1])
    for a, b in zip(one, other, strict=True):
        assert a.network_id == b.network_id and np.array_equal(a.returns, b.returns)
        assert [t.index for t in b.trajectories] == list(range(G))


@pytest.mark.parametrize("damage", ["missing", "doubled", "short"])
def test_anything_but_g_trajectories_of_t_steps_stops_the_run(setting, damage):
    _, _, scored = setting
    broken = {
        "missing": scored[1:],
        "doubled": [*scored, scored[0]],
        "short": [replace(scored[0], steps=scored[0].steps[:-1]), *scored[1:]],
    }[damage]
    with pytest.raises(RuntimeError, match="chat_0"):
        assembled(setting, scored=broken)


def test_replayed_final_states_equal_the_rollouts_byte_for_byte(setting):
    data, written, _ = setting
    for group in assembled(setting):
        states = final_states(group.trajectories, data[group.network_id].network, None, False)
        assert [s.to_dict() for s in states] == [t.final_state.to_dict() for t in written[group.network_id]]


def test_what_travels_between_ranks_holds_no_states(setting):
    for trajectory in setting[2]:
        assert all(s.step.pre_state is None and s.step.post_state is None for s in trajectory.steps)
