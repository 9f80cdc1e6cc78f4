import json

import pytest

from memory_env import MemoryState, Network, PromptTemplate, parse_completion, step
from rollout.engine import Generation, SamplingParams
from rollout.hf.engine import HFEngine
from rollout.sampler import sample_groups, write_memories
from rollout.seeds import request_seed
from rollout.trajectory import completion_records
from rollout.tree.prefix_tree import PrefixTree
from rollout.writer_prompt import WriterPrompt
from tests.rollout.test_writer_prompt import PROMPT


def network(name, sessions):
    turns = [
        {"session_id": f"{name}_s{s}", "session_index": s + 1, "topic": "", "ts": f"2025-01-0{s + 1}T10:00:00",
         "turns": [{"turn": f"{name}_{s}_{i}", "speaker": ("Ana", "Ben")[i % 2], "speaker_id": "",
                    "content": f"{name} says {s} {i}", "ts": f"2025-01-0{s + 1}T10:0{i}:00", "reply_to": ""} for i in range(3)]}
        for s in range(sessions)
    ]  # fmt: skip
    return Network.from_dict(
        {"scenario": "", "speakers": ["Ana", "Ben"], "sessions": turns, "qa_pairs": [], "meta": {"network_id": name}}
    )


NETWORKS = [network("short", 1), network("long", 3), network("middle", 2)]
SAMPLING = SamplingParams(temperature=0.8, top_p=0.95, max_new_tokens=20)


@pytest.fixture
def prompt(tmp_path, tokenizer):
    path = tmp_path / "writer.txt"
    path.write_text(PROMPT)
    return WriterPrompt(tokenizer, PromptTemplate.load(path), 400)


class ScriptedEngine:
    """Writes what a function of the prompt's text and the call says; records the calls."""

    policy_version = 5

    def __init__(self, tokenizer, write):
        self.tokenizer, self.write, self.calls = tokenizer, write, []

    def generate(self, requests):
        self.calls.append(requests)
        out = []
        for index, request in enumerate(requests):
            text, reason = self.write(self.tokenizer.decode(request.prompt_ids), index)
            ids = tuple(self.tokenizer.encode(text, add_special_tokens=False)) + ((2,) if reason == "stop" else ())
            out.append(Generation(ids, text, (-0.5,) * len(ids), reason))
        return out


def add(content, owner="Ana"):
    action = {
        "action": "ADD",
        "owner": owner,
        "source": owner,
        "layer": "per_speaker_core",
        "utype": "fact",
        "content": content,
    }
    return json.dumps({"actions": [action]})


def test_one_engine_call_per_position_for_all_networks_and_trajectories(tokenizer, prompt):
    engine = ScriptedEngine(tokenizer, lambda text, index: (add(f"fact {index}"), "stop"))
    groups = sample_groups(NETWORKS, engine, prompt, 4, SAMPLING, 0)
    assert [len(call) for call in engine.calls] == [12, 8, 4]
    assert {name: [len(t.steps) for t in group] for name, group in groups.items()} == {
        "short": [1] * 4, "long": [3] * 4, "middle": [2] * 4,
    }  # fmt: skip
    seeds = [request.seed for call in engine.calls for request in call]
    assert len(set(seeds)) == len(seeds)


def test_every_malformed_output_is_a_step_without_effect_and_never_an_early_stop(tokenizer, prompt):
    garbage = ["", "Sure!", "[]", '{"actions":', '{"actions":[]}', "NOOP", '{"actions":[1,null]}', "<|im_start|>" * 3]
    engine = ScriptedEngine(tokenizer, lambda text, index: (garbage[index % len(garbage)], ("stop", "length")[index % 2]))
    for trajectory in sample_groups(NETWORKS, engine, prompt, len(garbage), SAMPLING, 0)["long"]:
        assert [s.position for s in trajectory.steps] == [0, 1, 2]
        for made in trajectory.steps:
            assert made.post_state.derived() == () and made.report.errors
            assert len(made.post_state.verbatim()) == 3 * (made.position + 1)
            assert made.report.hit_length_limit == (made.finish_reason == "length")


def test_with_a_shared_past_all_write_from_the_memory_of_the_first(tokenizer, prompt):
    engine = ScriptedEngine(tokenizer, lambda text, index: (add(f"fact {index} of {text.count('fact')}"), "stop"))
    group = sample_groups(NETWORKS, engine, prompt, 3, SAMPLING, 0, shared_past=True)["long"]
    first = group[0]
    for trajectory in group:
        for made, own in zip(trajectory.steps, first.steps, strict=True):
            assert made.pre_state is own.pre_state and made.prompt_ids == own.prompt_ids
            assert len(made.post_state.derived()) == made.position + 1
    for earlier, later in zip(first.steps, first.steps[1:], strict=False):
        assert later.pre_state is earlier.post_state
    assert len({trajectory.steps[-1].text for trajectory in group}) == 3
    plain = sample_groups(NETWORKS, engine, prompt, 3, SAMPLING, 0)["long"]
    assert plain[1].steps[1].pre_state is plain[1].steps[0].post_state  # otherwise each has its own past


def test_steps_carry_the_state_on_and_the_next_prompt_shows_it(tokenizer, prompt):
    engine = ScriptedEngine(tokenizer, lambda text, index: (add(f"fact {index} of {text.count('fact')}"), "stop"))
    for trajectory in sample_groups(NETWORKS, engine, prompt, 3, SAMPLING, 0)["long"]:
        state = MemoryState.empty()
        for made, segment in zip(trajectory.steps, NETWORKS[1].segments(), strict=True):
            assert made.pre_state == state
            state, report = step(state, segment, made.text)
            assert made.post_state == state and made.report == report
            assert made.actions == parse_completion(made.text).actions
            shown = tokenizer.decode(made.prompt_ids)
            assert all(head.content in shown for head in made.pre_state.heads())
        assert trajectory.final_state == state and trajectory.policy_version == 5


def test_rollouts_repeat_and_trajectories_differ(model, tokenizer, prompt):
    def sample(run_seed, **options):
        groups = sample_groups(NETWORKS, HFEngine(model, tokenizer), prompt, 8, SAMPLING, run_seed, **options)
        return {name: [[s.completion_ids for s in t.steps] for t in group] for name, group in groups.items()}

    first = sample(0)
    assert first == sample(0)
    assert all(len({str(t) for t in group}) > 1 for group in first.values())
    assert first != sample(1) and first != sample(0, visit=1)


def test_a_trajectory_does_not_depend_on_the_other_networks_of_its_round(model, tokenizer, prompt):
    together = sample_groups(NETWORKS, HFEngine(model, tokenizer), prompt, 3, SAMPLING, 0)
    for one in NETWORKS:
        alone = sample_groups([one], HFEngine(model, tokenizer), prompt, 3, SAMPLING, 0)[one.network_id]
        for a, b in zip(alone, together[one.network_id], strict=True):
            assert [s.completion_ids for s in a.steps] == [s.completion_ids for s in b.steps]


def test_progress_is_reported_after_each_position(tokenizer, prompt):
    engine = ScriptedEngine(tokenizer, lambda text, index: (add("x"), ("stop", "length")[index % 2]))
    seen = []
    sample_groups(NETWORKS, engine, prompt, 2, SAMPLING, 0, on_position=seen.append)
    assert [(p.position, p.positions, p.completions, p.truncated) for p in seen] == [
        (0, 3, 6, 3),
        (1, 3, 4, 2),
        (2, 3, 2, 1),
    ]
    assert all(p.tokens > p.completions for p in seen)


def test_greedy_writing_gives_one_memory_per_network_whatever_the_seeds(model, tokenizer, prompt):
    one = write_memories(NETWORKS, HFEngine(model, tokenizer), prompt, 16)
    two = write_memories(NETWORKS[::-1], HFEngine(model, tokenizer, policy_version=9), prompt, 16)
    assert {n: t.final_state for n, t in one.items()} == {n: t.final_state for n, t in two.items()}


def test_windows_split_sessions(tokenizer, prompt):
    engine = ScriptedEngine(tokenizer, lambda text, index: (add("x"), "stop"))
    groups = sample_groups([NETWORKS[0]], engine, prompt, 1, SAMPLING, 0, window=2)
    assert [len(s.post_state.verbatim()) for s in groups["short"][0].steps] == [2, 3]


def test_impossible_rounds_are_refused(tokenizer, prompt):
    engine = ScriptedEngine(tokenizer, lambda text, index: (add("x"), "stop"))
    with pytest.raises(ValueError, match="group_size is 0"):
        sample_groups(NETWORKS, engine, prompt, 0, SAMPLING, 0)
    with pytest.raises(ValueError, match="'long' is in the round twice"):
        sample_groups([NETWORKS[1], NETWORKS[0], NETWORKS[1]], engine, prompt, 2, SAMPLING, 0)
    assert sample_groups([], engine, prompt, 2, SAMPLING, 0) == {}


def test_completion_records_round_trip_and_name_a_shared_prompt_once(tokenizer, prompt):
    engine = ScriptedEngine(tokenizer, lambda text, index: (add(f"fact {index}"), "stop"))
    group = sample_groups([NETWORKS[1]], engine, prompt, 3, SAMPLING, 0)["long"]
    lines = [json.loads(json.dumps(record)) for record in completion_records(group)]
    assert len(lines) == 9
    prompts = {(r["trajectory"], r["position"]): r["prompt_ids"] for r in lines if "prompt_ids" in r}
    assert {key for key in prompts if key[1] == 0} == {(0, 0)}
    for record in lines:
        made = group[record["trajectory"]].steps[record["position"]]
        ids = record.get("prompt_ids") or prompts[record["prompt_of"], record["position"]]
        assert tuple(ids) == made.prompt_ids and tuple(record["completion_ids"]) == made.completion_ids
        assert record["text"] == made.text and record["actions"] == made.actions and record["logprobs"] == list(made.logprobs)
        assert record["report"] == made.report.to_dict()


def test_seeds_are_stable_and_never_shared():
    assert request_seed(0, "net_1", 3, 0, 0) == 8458142679179392560
    grid = {
        request_seed(run, name, g, t, version, visit)
        for run in range(3)
        for name in ("a", "a1", "1")
        for g in range(12)
        for t in range(12)
        for version in range(3)
        for visit in range(2)
    }
    assert len(grid) == 3 * 3 * 12 * 12 * 3 * 2 and all(0 <= seed < 2**63 for seed in grid)


def test_later_positions_begin_from_what_earlier_ones_read_and_nothing_is_kept(model, tokenizer, prompt):
    engine = HFEngine(model, tokenizer)
    groups = sample_groups(NETWORKS, engine, prompt, 2, SAMPLING, 0)
    by_position = {}
    for steps in (trajectory.steps for group in groups.values() for trajectory in group):
        for made in steps:
            by_position.setdefault(made.position, []).append(made.prompt_ids)
    metrics = engine.metrics()
    computed = metrics["prompt_tokens"] - metrics["cached_prompt_tokens"]
    assert len(by_position) > 1 and computed < sum(len(PrefixTree.of(prompts)) for prompts in by_position.values())
    assert not engine._known._layers
