"""Evaluation during training: joined means equal the means over everything."""

import pytest

from tests.writer_rl.grpo.test_groups import ScriptedEngine, setting  # noqa: F401
from tests.writer_rl.tiny_run import PROMPT, make_tokenizer
from writer_rl.config import DataSection, load_config
from writer_rl.evaluation.memory_metrics import memory_metrics
from writer_rl.evaluation.validation import KEYS, Validation, joined_means
from writer_rl.train.data import load_sources
from writer_rl.train.distributed import World, connect
from writer_rl.train.prompt import build_prompt


def test_the_documented_example():
    joined = joined_means([{"question_score": 0.5, "questions": 2}, {"question_score": 1.0, "questions": 6}, {}])
    assert joined["evaluation/question_score"] == 0.875
    assert joined["evaluation/questions"] == 8
    assert joined["evaluation/phi"] is None
    assert set(joined) == set(KEYS)


@pytest.mark.parametrize("kind", ["grpo", "sft"])
def test_the_frozen_questions_are_not_among_it_unless_asked_for(kind):
    """What chooses the best checkpoint may not be what the checkpoint is then judged by."""
    for name in (None, "configs/demo.yaml", "configs/qwen2.5-3b.yaml", "configs/smollm2-135m.yaml"):
        data = load_config(kind, name, []).data
        assert not set(data.validation) & set(data.heldout), name
    networks = {source: {n.network_id for n in load_sources([f"corpus:{source}"])} for source in ("validation", "heldout")}
    assert networks["validation"] and not networks["validation"] & networks["heldout"]


@pytest.fixture
def prompt(tmp_path):
    (tmp_path / "prompt.txt").write_text(PROMPT)
    return build_prompt(DataSection(prompt=str(tmp_path / "prompt.txt")), make_tokenizer(), 512, 8)


def test_it_measures_the_greedy_memories(setting, prompt):  # noqa: F811
    data = list(setting[0].values())
    found = Validation(data, prompt, 8, connect(1))(ScriptedEngine())
    assert set(found) == set(KEYS)
    assert found["evaluation/steps"] == 5 and found["evaluation/questions"] == 4
    assert 0 <= found["evaluation/phi"] <= 1


def test_shares_of_ranks_join_to_the_whole(setting, prompt):  # noqa: F811
    from rollout.sampler import write_memories

    data = list(setting[0].values())
    parts = []
    for share in (data[0::2], data[1::2]):
        written = write_memories([t.network for t in share], ScriptedEngine(), prompt, 8)
        parts.append(
            memory_metrics(
                written.values(),
                {t.network.network_id: t.teacher for t in share},
                {t.network.network_id: t.network.questions for t in share},
            )
        )
    joined = joined_means(parts)
    steps = [part["steps"] for part in parts]
    expected = sum(part["total"] * n for part, n in zip(parts, steps, strict=True)) / sum(steps)
    assert joined["evaluation/total"] == pytest.approx(expected)


def test_a_rank_without_networks_takes_part(setting, prompt, monkeypatch):  # noqa: F811
    idle = World(rank=5, size=1, local_rank=0, device=connect(1).device)
    found = Validation(list(setting[0].values())[:1], prompt, 8, World(0, 1, 0, idle.device))(ScriptedEngine())
    assert found["evaluation/steps"] == 2
    alone = Validation([], prompt, 8, idle)(ScriptedEngine())
    assert all(value is None or value == 0 for value in alone.values())
