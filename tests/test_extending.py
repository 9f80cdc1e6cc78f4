"""The examples of docs/extending.md, taken from the page and run."""

import importlib
import re
import sys

import pytest

from memory_env import MemoryState, PromptTemplate, step
from rewards import Scorer, score_step
from rewards.terms import TermError, reward_term, weighted_terms
from tests.memory_env.chats import add, segment


@pytest.fixture
def example(repository, tmp_path, monkeypatch):
    """Writes the block that begins with `# NAME.py` into an importable module."""
    page = (repository / "docs" / "extending.md").read_text()
    monkeypatch.syspath_prepend(tmp_path)

    def write(name):
        block = re.search(rf"```python\n# {name}\.py\n(.*?)```", page, re.DOTALL)
        assert block, f"docs/extending.md has no example {name}.py"
        (tmp_path / f"{name}.py").write_text(block[1])
        sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return tmp_path / f"{name}.py"

    return write


def scored(actions, terms=()):
    before, one = MemoryState.empty(), segment()
    after, report = step(before, one, actions)
    return score_step(actions, report, before, after, after, Scorer(terms=terms))


def test_a_reward_term_changes_the_return_by_its_weight(example):
    example("brevity")
    terms = weighted_terms({"brevity": 0.05}, ["brevity"])
    short, long = [add("likes tea")], [add(" ".join(f"word{n}" for n in range(16)))]
    assert scored(short, terms).total() - scored(short).total() == pytest.approx(0.05)
    assert scored(long, terms).total() - scored(long).total() == pytest.approx(0.025)
    assert scored(long, terms).terms == {"brevity": pytest.approx(0.025)}
    assert scored(long).terms == {}


def test_terms_that_are_not_there_are_named():
    with pytest.raises(TermError, match="no term 'absent'"):
        weighted_terms({"absent": 1.0})
    with pytest.raises(TermError, match="reward.modules: no_such_module can't be imported"):
        weighted_terms({}, ["no_such_module"])

    def other(*arguments):
        return 0.0

    reward_term("only once")(lambda *arguments: 1.0)
    with pytest.raises(TermError, match="registered twice"):
        reward_term("only once")(other)


def test_a_term_reaches_the_metrics_of_a_training_run(example, tmp_path):
    import json

    from tests.writer_rl.tiny_run import save_config
    from writer_rl.config import load_config
    from writer_rl.grpo.run import train

    example("brevity")
    changes = {"reward": {"modules": ["brevity"], "terms": {"brevity": 0.05}}, "trainer.steps": 1}
    assert train(load_config("grpo", save_config(tmp_path, changes), [])) == 0
    (line,) = [json.loads(text) for text in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert 0 < line["reward/term/brevity/mean"] <= 0.05


def test_a_writer_model_of_another_family_writes_memory(example, tmp_path, repository, monkeypatch):
    from rollout.hf.engine import HFEngine
    from rollout.sampler import write_memories
    from rollout.writer_prompt import WriterPrompt
    from writer_rl.config import ModelSection
    from writer_rl.model.policy import load_policy, load_tokenizer

    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").symlink_to(repository / "configs")
    script = example("make_writer")
    exec(compile(script.read_text(), str(script), "exec"), {})
    settings = ModelSection(path=str(tmp_path / "my_writer"))
    tokenizer = load_tokenizer(settings)
    engine = HFEngine(load_policy(settings).eval().model, tokenizer)
    prompt = WriterPrompt(tokenizer, PromptTemplate.load(repository / "configs/prompts/tiny_writer.jinja"), 2000)
    from memory_env.corpus import heldout_networks

    (network,) = heldout_networks()[:1]
    written = write_memories([network], engine, prompt, 8)[network.network_id]
    assert len(written.steps) == len(network.segments())


def test_a_scripted_engine_writes_what_it_is_told(example, repository):
    from memory_env.corpus import heldout_networks
    from rollout.engine import Engine
    from rollout.sampler import write_memories
    from rollout.writer_prompt import WriterPrompt
    from tests.writer_rl.tiny_run import NOOP, make_tokenizer

    example("scripted")
    tokenizer = make_tokenizer()
    engine = importlib.import_module("scripted").ScriptedEngine(tokenizer, NOOP)
    assert isinstance(engine, Engine)
    (network,) = heldout_networks()[:1]
    prompt = WriterPrompt(tokenizer, PromptTemplate.load(repository / "configs/prompts/tiny_writer.jinja"), 100_000)
    written = write_memories([network], engine, prompt, 8)[network.network_id]
    assert all(made.report.noop == 1 and not made.report.errors for made in written.steps)


def test_a_second_run_can_begin_in_the_same_process(tmp_path):
    from tests.writer_rl.tiny_run import save_config
    from writer_rl.config import load_config
    from writer_rl.grpo.run import train

    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        assert train(load_config("grpo", save_config(tmp_path / name, {"trainer.steps": 1}), [])) == 0
