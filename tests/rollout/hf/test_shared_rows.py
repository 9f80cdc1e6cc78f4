"""Reading prompts as a tree and decoding on what they share is the plain way: one row at a time, everything read anew."""

import logging

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from peft import LoraConfig, inject_adapter_in_model
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

from rollout.engine import GenerationRequest, SamplingParams
from rollout.hf import known_prompts
from rollout.hf.engine import HFEngine
from rollout.hf.shared_check import sharing_problem
from rollout.hf.token_sampling import sample_tokens, uniforms
from rollout.tree.prefix_tree import PrefixTree
from tests.rollout.conftest import make_model, make_tokenizer

STOP = 2


def plainly(model, request):
    """The definition: the whole sequence through the model for every token, one row, no cache; its own random stream."""
    ids, logprobs = [], []
    room = min(request.sampling.max_new_tokens, model.config.max_position_embeddings - len(request.prompt_ids))
    draws = torch.from_numpy(uniforms(request.seed, room))
    for draw in draws:
        with torch.no_grad():
            logits = model(torch.tensor([[*request.prompt_ids, *ids]]), use_cache=False).logits[:, -1].float()
        settings = torch.tensor([[request.sampling.temperature], [request.sampling.top_p]])
        token = int(logits.argmax() if request.sampling.greedy else sample_tokens(logits, *settings, draw[None])[0])
        ids.append(token)
        logprobs.append(float(logits.log_softmax(-1)[0, token]))
        if token == STOP:
            break
    return tuple(ids), logprobs


def agree(model, requests, generations):
    for request, generation in zip(requests, generations, strict=True):
        ids, logprobs = plainly(model, request)
        assert generation.token_ids == ids
        assert generation.logprobs == pytest.approx(logprobs, abs=1e-5)


def lora(model):
    model = inject_adapter_in_model(LoraConfig(r=4, target_modules=["q_proj", "down_proj"]), model)
    torch.manual_seed(3)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora" in name:
                parameter.normal_(std=0.1)
    return model.eval()


MODELS = {
    "untied": make_model(),
    "tied": make_model(tie_word_embeddings=True),
    "one key head": make_model(num_key_value_heads=1),
    "as many key heads as query heads": make_model(num_key_value_heads=4),
    "lora": lora(make_model()),
}
for each in MODELS.values():
    each.get_output_embeddings().weight.data[STOP] *= 1.5  # some rows end early

SEED = st.integers(0, 2**32)
SHORT = st.lists(st.integers(4, 6), min_size=1, max_size=12)
LONG = st.tuples(st.integers(0, 3), st.integers(20, 60), st.integers(0, 9)).map(
    lambda drawn: [*range(10, 10 + drawn[1]), *range(100 * drawn[0], 100 * drawn[0] + drawn[2])]
)
PROMPTS = st.lists(st.one_of(SHORT, LONG), min_size=1, max_size=7).flatmap(
    lambda drawn: st.lists(st.sampled_from([tuple(each) for each in drawn]), min_size=1, max_size=9)
)
SAMPLING = st.builds(
    SamplingParams,
    st.sampled_from([0.6, 1.0]),
    st.sampled_from([0.8, 1.0]),
    st.integers(1, 9),
    st.sampled_from([False, False, True]),
)
MANY = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def few_at_once(monkeypatch):
    """A prefill in several parts, the later ones beginning from the earlier."""
    monkeypatch.setattr(known_prompts, "CPU_PREFILL_TOKENS", 16)


@pytest.mark.parametrize("name", MODELS)
@MANY
@given(data=st.data(), prompts=PROMPTS, bound=st.sampled_from([40, 300, 65_536]))
def test_a_call_is_its_requests_one_by_one(name, data, prompts, bound):
    requests = [GenerationRequest(prompt, data.draw(SEED), data.draw(SAMPLING)) for prompt in prompts]
    engine = HFEngine(MODELS[name], make_tokenizer(), max_batch_tokens=bound)
    agree(MODELS[name], requests, engine.generate(requests))
    assert engine._shares


@MANY
@given(data=st.data(), calls=st.lists(PROMPTS, min_size=2, max_size=3))
def test_later_calls_begin_from_what_earlier_ones_read(data, calls, few_at_once):
    model = MODELS["untied"]
    engine = HFEngine(model, make_tokenizer())
    sampling = SamplingParams(max_new_tokens=3)
    before: list[tuple[int, ...]] = []
    with engine.keep_prompts():
        for prompts in calls:
            requests = [GenerationRequest(prompt, data.draw(SEED), sampling) for prompt in prompts]
            agree(model, requests, engine.generate(requests))
            new = len(PrefixTree.of([*before, *prompts])) - len(PrefixTree.of(before))
            computed = computed_by(engine)
            # A prompt's last token is always computed, however often its part of the tree is read.
            assert new <= computed <= new + len(set(prompts))
            before = prompts
    assert engine._known.computed and not engine._known._layers


def computed_by(engine):
    metrics = engine.metrics()
    return metrics["prompt_tokens"] - metrics["cached_prompt_tokens"]


def requests_of(*prompts, tokens=4):
    return [GenerationRequest(tuple(prompt), seed, SamplingParams(max_new_tokens=tokens)) for seed, prompt in enumerate(prompts)]


def test_each_distinct_token_of_a_call_is_computed_once(model, tokenizer):
    engine = HFEngine(model, tokenizer)
    prompts = [[*range(10, 60), *range(100 * i, 100 * i + 5)] for i in (1, 1, 2, 3)]
    engine.generate(requests_of(*prompts))
    metrics = engine.metrics()
    assert metrics["prompt_tokens"] == 4 * 55 and metrics["cached_prompt_tokens"] == 4 * 55 - (50 + 3 * 5)
    assert metrics["prefix_cache_hit_rate"] == (220 - 65) / 220


def test_groups_that_end_before_others_leave_their_trunk(model, tokenizer):
    """Three groups of equal and three of similar prompts, of which some end long before the others."""
    stems = [tuple(range(10, 40)), tuple(range(50, 90)), tuple(range(100, 120))]
    requests = []
    for group, stem in enumerate(stems):
        for member in range(4):
            end = (200 + member,) * (group == 2)
            sampling = SamplingParams(max_new_tokens=(2, 12, 7)[group] + member)
            requests.append(GenerationRequest((*stem, *end), 10 * group + member, sampling))
    agree(model, requests, HFEngine(model, tokenizer).generate(requests))


def test_rows_that_have_ended_cost_no_more_than_they_would_again(model, tokenizer):
    """Of 16 rows 15 end at once. No pass goes on with them longer than one row's worth."""
    engine = HFEngine(model, tokenizer)
    engine.generate(requests_of(range(10, 20)))
    rows = []
    model.register_forward_pre_hook(lambda m, args, given: rows.append(given["input_ids"].shape), with_kwargs=True)
    model.get_output_embeddings().weight.data[STOP] = 0
    limits = [SamplingParams(max_new_tokens=20 if seed == 7 else 1) for seed in range(16)]
    engine.generate([GenerationRequest((5, 6, 7), seed, limit) for seed, limit in enumerate(limits)])
    assert rows[0] == (1, 3) and set(rows[1:]) == {(1, 1)} and len(rows) <= 20


def test_new_weights_and_sleep_forget_what_old_ones_computed(build_model, tokenizer):
    engine, trainer = HFEngine(build_model(), tokenizer), build_model(seed=1)
    requests = requests_of(range(10, 60), range(10, 50))
    with engine.keep_prompts():
        engine.generate(requests)
        engine.update_weights(trainer.named_parameters(), 1)
        assert engine.generate(requests) == HFEngine(trainer, tokenizer).generate(requests)
        engine.sleep()
        assert not engine._known._layers


def test_reading_leaves_known_what_generating_does_to_the_last_digit(model, tokenizer):
    calls = [requests_of(range(10, 60), range(10, 50)), requests_of([*range(10, 45), 7], range(10, 55))]
    generated, read = HFEngine(model, tokenizer), HFEngine(model, tokenizer)
    with generated.keep_prompts(), read.keep_prompts():
        generated.generate(calls[0])
        read.read_prompts(calls[0])
        assert generated.generate(calls[1]) == read.generate(calls[1])


def test_a_failed_call_leaves_nothing_known(model, tokenizer):
    engine = HFEngine(model, tokenizer)
    engine.generate(requests_of(range(10, 20)))
    model.register_forward_hook(lambda *_: (_ for _ in ()).throw(RuntimeError("interrupted")))
    with pytest.raises(RuntimeError, match="interrupted"):
        engine.generate(requests_of(range(10, 60)))
    assert not engine._known._layers


SHAPE = dict(vocab_size=340, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, eos_token_id=STOP)


def others():
    torch.manual_seed(1)
    yield "a cache", MistralForCausalLM(MistralConfig(num_key_value_heads=2, sliding_window=8, **SHAPE))
    eager = LlamaConfig(**SHAPE)
    eager._attn_implementation = "eager"
    yield "eager", LlamaForCausalLM(eager)
    yield "other prompts mixed in", Leaky(LlamaConfig(**SHAPE))


class Leaky(LlamaForCausalLM):
    """Adds the mean over all tokens of the pass: no prompt may share a pass with another."""

    def forward(self, *args, **kwargs):
        out = super().forward(*args, **kwargs)
        out.logits = out.logits + 1e-3 * out.logits.mean(dim=(0, 1), keepdim=True)
        return out


@pytest.mark.parametrize("why, other", list(others()), ids=lambda value: value if isinstance(value, str) else "")
def test_a_model_that_cannot_share_is_padded_with_one_line(why, other, tokenizer, caplog):
    engine = HFEngine(other.eval(), tokenizer)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            engine.generate(requests_of(range(10, 30), range(10, 40)))
    assert engine._shares is False and len(caplog.records) == 1
    assert caplog.records[0].getMessage().startswith("rollout engine hf: padded prompts, no shared prefixes: its ")


def test_learned_positions_share_too_and_rows_that_have_ended_stay_within_them(tokenizer):
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=340, n_embd=32, n_layer=2, n_head=2, n_positions=40, eos_token_id=STOP)).eval()
    assert sharing_problem(model) is None
    sampling = [SamplingParams(max_new_tokens=count, top_p=1.0) for count in (1, 30, 30, 30)]
    prompts = [tuple(range(10, 49)), (5, 6), (5, 6, 7), (5,)]
    requests = [GenerationRequest(p, i, s) for i, (p, s) in enumerate(zip(prompts, sampling, strict=True))]
    agree(model, requests, HFEngine(model, tokenizer).generate(requests))


@pytest.mark.parametrize("dtype, bound", [(torch.bfloat16, 0.1), (torch.float16, 0.02)])
def test_half_precision_stays_within_its_rounding(model, tokenizer, dtype, bound, forward_logprobs):
    model = model.to(dtype)
    engine = HFEngine(model, tokenizer)
    requests = requests_of(*([*range(10, 60), *range(100 * i, 100 * i + 5)] for i in (1, 1, 2, 3)))
    for request, generation in zip(requests, engine.generate(requests), strict=True):
        expected = forward_logprobs(model, request.prompt_ids, generation.token_ids)
        assert (torch.tensor(generation.logprobs) - expected).abs().mean() < bound
    assert engine._shares
