"""The journal of a round's calls: nothing is sampled twice, and what is torn is sampled again."""

from rollout.engine import Engine, Generation, GenerationRequest, SamplingParams
from rollout.hf.engine import HFEngine
from rollout.journal import JournaledEngine


class CountingEngine:
    policy_version = 3

    def __init__(self):
        self.calls = []

    def generate(self, requests):
        self.calls.append(len(requests))
        return [Generation((r.seed, 2), f"é {r.seed}", (-0.1, -1 / 3), "stop") for r in requests]


def requests(*seeds, temperature=0.8):
    return [GenerationRequest((1, 2), seed, SamplingParams(temperature=temperature)) for seed in seeds]


def test_a_call_that_was_finished_before_the_kill_is_not_repeated(tmp_path):
    path = tmp_path / "rollout.jsonl"
    first = JournaledEngine(CountingEngine(), path)
    made = [first.generate(requests(1, 2)), first.generate(requests(3))]
    again = JournaledEngine(CountingEngine(), path)
    assert [again.generate(requests(1, 2)), again.generate(requests(3))] == made
    assert again.engine.calls == []
    again.generate(requests(1))  # another batch is another call
    again.generate(requests(3, temperature=0.9))
    assert again.engine.calls == [1, 1]


def test_a_torn_line_is_sampled_again(tmp_path):
    path = tmp_path / "rollout.jsonl"
    first = JournaledEngine(CountingEngine(), path)
    first.generate(requests(1)), first.generate(requests(2))
    path.write_bytes(path.read_bytes()[:-20])
    again = JournaledEngine(CountingEngine(), path)
    again.generate(requests(1)), again.generate(requests(2))
    assert again.engine.calls == [1]


def test_calls_of_other_settings_are_not_used(tmp_path):
    path = tmp_path / "rollout.jsonl"
    JournaledEngine(CountingEngine(), path, identity="temperature 0.8").generate(requests(1))
    other = JournaledEngine(CountingEngine(), path, identity="another model")
    other.generate(requests(1))
    assert other.engine.calls == [1]


def test_forgetting(tmp_path):
    engine = JournaledEngine(CountingEngine(), tmp_path / "rollout.jsonl")
    engine.generate(requests(1))
    engine.forget()
    engine.generate(requests(1))
    assert engine.engine.calls == [1, 1]
    engine.forget(), engine.forget()


def test_everything_else_is_the_engines_own(tmp_path):
    told = []

    class Telling(CountingEngine):
        def __getattr__(self, name):
            return lambda *arguments: told.append((name, *arguments))

    engine = JournaledEngine(Telling(), tmp_path / "rollout.jsonl")
    assert isinstance(engine, Engine)
    assert engine.policy_version == 3
    (
        engine.update_weights([], 4),
        engine.weight_checksums(),
        engine.sleep(),
        engine.wake(),
        engine.restart(),
        engine.metrics(),
        engine.close(),
    )
    assert told == [
        ("update_weights", [], 4),
        ("weight_checksums",),
        ("sleep",),
        ("wake",),
        ("restart",),
        ("metrics",),
        ("close",),
    ]


def test_what_the_journal_answers_is_read_before_more_is_sampled(tmp_path, model, tokenizer):
    """A round that is begun again goes on to the last digit, though the engine keeps prompts from call to call."""
    sampling = SamplingParams(max_new_tokens=3)
    stem = tuple(range(10, 60))
    calls = [
        [GenerationRequest((*stem, *end), seed, sampling) for seed, end in enumerate(ends)]
        for ends in ([(4,), (5, 6)], [(5,), (4, 7)], [(4, 7, 8), (9,)])
    ]
    whole = JournaledEngine(HFEngine(model, tokenizer), tmp_path / "whole.jsonl")
    with whole.keep_prompts():
        expected = [whole.generate(call) for call in calls]
    first = JournaledEngine(HFEngine(model, tokenizer), tmp_path / "killed.jsonl")
    with first.keep_prompts():
        first.generate(calls[0]), first.generate(calls[1])
    again = JournaledEngine(HFEngine(model, tokenizer), tmp_path / "killed.jsonl")
    with again.keep_prompts():
        assert [again.generate(call) for call in calls] == expected
        # Of the last call only what parts from the earlier ones was computed.
        assert again.metrics()["cached_prompt_tokens"] > 2 * len(stem)
