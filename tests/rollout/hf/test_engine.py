import math
import random
from collections import Counter

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

from rollout.engine import Engine, EngineStateError, GenerationRequest, PromptTooLong, SamplingParams
from rollout.hf.engine import HFEngine


def requests(count, *, seed=0, low=1, high=40, sampling=None, vocab=340):
    rng = random.Random(seed)
    sampling = sampling or SamplingParams(temperature=0.8, top_p=0.95, max_new_tokens=24)
    return [
        GenerationRequest(tuple(rng.randrange(4, vocab) for _ in range(rng.randint(low, high))), 100 + i, sampling)
        for i in range(count)
    ]


def ids_of(generations):
    return [g.token_ids for g in generations]


def test_is_an_engine(model, tokenizer):
    assert isinstance(HFEngine(model, tokenizer), Engine)


@pytest.mark.parametrize("temperature, top_p", [(0.6, 1.0), (0.8, 0.95), (1.0, 0.5), (1.3, 1.0)])
def test_logprobs_are_raw_and_equal_a_plain_forward(model, tokenizer, forward_logprobs, temperature, top_p):
    batch = requests(9, sampling=SamplingParams(temperature, top_p, 20))
    for request, generation in zip(batch, HFEngine(model, tokenizer).generate(batch), strict=True):
        expected = forward_logprobs(model, request.prompt_ids, generation.token_ids)
        assert len(generation.logprobs) == len(generation.token_ids)
        torch.testing.assert_close(torch.tensor(generation.logprobs), expected, atol=1e-5, rtol=0)


def other_models():
    shape = dict(
        vocab_size=340,
        hidden_size=32,
        num_hidden_layers=2,
        intermediate_size=64,
        max_position_embeddings=256,
        eos_token_id=2,
    )
    torch.manual_seed(1)
    yield "multi-head attention", LlamaForCausalLM(LlamaConfig(num_attention_heads=4, num_key_value_heads=4, **shape))
    yield (
        "tied head",
        LlamaForCausalLM(LlamaConfig(num_attention_heads=4, num_key_value_heads=1, tie_word_embeddings=True, **shape)),
    )
    yield (
        "sliding window shorter than the prompts",
        MistralForCausalLM(MistralConfig(num_attention_heads=4, num_key_value_heads=2, sliding_window=8, **shape)),
    )
    eager = LlamaConfig(num_attention_heads=4, num_key_value_heads=2, **shape)
    eager._attn_implementation = "eager"
    yield "eager attention", LlamaForCausalLM(eager)


@pytest.mark.parametrize("name, other", list(other_models()), ids=lambda value: value if isinstance(value, str) else "")
def test_other_architectures_agree_with_a_plain_forward(name, other, tokenizer, forward_logprobs):
    batch = requests(6)
    for request, generation in zip(batch, HFEngine(other.eval(), tokenizer).generate(batch), strict=True):
        expected = forward_logprobs(other, request.prompt_ids, generation.token_ids)
        torch.testing.assert_close(torch.tensor(generation.logprobs), expected, atol=1e-5, rtol=0)


def test_same_seed_same_tokens_and_other_seeds_differ(model, tokenizer):
    engine = HFEngine(model, tokenizer)
    batch = requests(6)
    assert engine.generate(batch) == engine.generate(batch)
    group = [GenerationRequest(batch[0].prompt_ids, seed, batch[0].sampling) for seed in range(8)]
    assert len(set(ids_of(engine.generate(group)))) > 1


def test_a_request_does_not_depend_on_its_batch(model, tokenizer):
    batch = requests(12)
    together = ids_of(HFEngine(model, tokenizer).generate(batch))
    alone = [HFEngine(model, tokenizer).generate([request])[0].token_ids for request in batch]
    small_batches = ids_of(HFEngine(model, tokenizer, max_batch_tokens=150).generate(batch))
    shuffled = list(reversed(HFEngine(model, tokenizer).generate(batch[::-1])))
    assert together == alone == small_batches == ids_of(shuffled)


def test_equal_prompts_are_read_once_and_sampled_apart(model, tokenizer, forward_logprobs):
    first, second = requests(2, low=10)
    batch = [GenerationRequest((first, second)[i % 2].prompt_ids, i, first.sampling) for i in range(10)]
    engine = HFEngine(model, tokenizer)
    out = engine.generate(batch)
    assert engine.metrics()["cached_prompt_tokens"] == 4 * (len(first.prompt_ids) + len(second.prompt_ids))
    for request, generation in zip(batch, out, strict=True):
        expected = forward_logprobs(model, request.prompt_ids, generation.token_ids)
        torch.testing.assert_close(torch.tensor(generation.logprobs), expected, atol=1e-5, rtol=0)


def test_settings_are_per_request(model, tokenizer):
    engine = HFEngine(model, tokenizer)
    prompt = requests(1)[0].prompt_ids
    kinds = [
        SamplingParams(greedy=True, max_new_tokens=12),
        SamplingParams(temperature=0.8, top_p=0.95, max_new_tokens=5),
        SamplingParams(temperature=1.5, top_p=1.0, max_new_tokens=12),
    ]
    batch = [GenerationRequest(prompt, 7, kind) for kind in kinds]
    assert ids_of(engine.generate(batch)) == [engine.generate([r])[0].token_ids for r in batch]
    greedy = engine.generate([GenerationRequest(prompt, seed, kinds[0]) for seed in (1, 2)])
    assert greedy[0] == greedy[1]


def test_greedy_is_the_most_probable_token_at_each_step(model, tokenizer):
    prompt = requests(1)[0].prompt_ids
    out = HFEngine(model, tokenizer).generate([GenerationRequest(prompt, 0, SamplingParams(greedy=True, max_new_tokens=8))])[0]
    ids = list(prompt)
    for token in out.token_ids:
        with torch.no_grad():
            assert model(torch.tensor([ids])).logits[0, -1].argmax().item() == token
        ids.append(token)


def biased(model, token, amount):
    """The model with one token's logit raised, wherever it is."""
    head = torch.nn.Linear(model.config.hidden_size, model.config.vocab_size)
    with torch.no_grad():
        head.weight.copy_(model.lm_head.weight)
        head.bias.zero_()
        head.bias[token] = amount
    model.lm_head = head
    return model


def test_stop_token_ends_a_completion_and_is_kept(model, tokenizer):
    engine = HFEngine(biased(model, 2, 60.0), tokenizer)
    for generation in engine.generate(requests(5)):
        assert generation.token_ids == (2,) and generation.finish_reason == "stop" and generation.text == ""
        assert generation.logprobs[0] > -1e-3


def test_stop_set_unites_generation_config_and_tokenizer(model, tokenizer):
    model.generation_config.eos_token_id = [0, 1]
    assert HFEngine(model, tokenizer).stop_ids == {0, 1, 2}
    assert HFEngine(biased(model, 1, 60.0), tokenizer).generate(requests(1))[0].finish_reason == "stop"


def test_pad_equal_to_eos_neither_ends_nor_masks_anything(build_model, build_tokenizer, forward_logprobs):
    model, tokenizer = build_model(pad_token_id=2), build_tokenizer()
    tokenizer.pad_token = tokenizer.eos_token
    batch = requests(8)
    batch.append(GenerationRequest((5, 2, 6, 2), 1, batch[0].sampling))
    for request, generation in zip(batch, HFEngine(model, tokenizer).generate(batch), strict=True):
        assert (generation.token_ids[-1] == 2) == (generation.finish_reason == "stop")
        assert 2 not in generation.token_ids[:-1]
        expected = forward_logprobs(model, request.prompt_ids, generation.token_ids)
        torch.testing.assert_close(torch.tensor(generation.logprobs), expected, atol=1e-5, rtol=0)


def test_length_limit_and_a_stop_token_on_the_last_step(model, tokenizer):
    engine = HFEngine(biased(model, 2, -100.0), tokenizer)
    out = engine.generate(requests(3, sampling=SamplingParams(max_new_tokens=7)))
    assert [(len(g.token_ids), g.finish_reason) for g in out] == [(7, "length")] * 3
    model.lm_head.bias.data[2] = 100.0
    out = engine.generate(requests(3, sampling=SamplingParams(max_new_tokens=1)))
    assert [(g.token_ids, g.finish_reason) for g in out] == [((2,), "stop")] * 3


def test_the_context_ends_a_completion_and_a_longer_prompt_is_refused(build_model, tokenizer):
    model = biased(build_model(max_position_embeddings=32), 2, -100.0)
    engine = HFEngine(model, tokenizer)
    sampling = SamplingParams(max_new_tokens=50)
    out = engine.generate([GenerationRequest((5,) * 30, 0, sampling), GenerationRequest((5,) * 8, 0, sampling)])
    assert [len(g.token_ids) for g in out] == [2, 24] and {g.finish_reason for g in out} == {"length"}
    with pytest.raises(PromptTooLong, match="32 tokens.*context is 32"):
        engine.generate([GenerationRequest((5,) * 32, 0, sampling)])
    with pytest.raises(ValueError, match="empty prompt"):
        engine.generate([GenerationRequest((), 0, sampling)])


def test_text_hides_the_stop_token_and_shows_every_other_special_token(model, tokenizer):
    ids = tokenizer.encode('{"actions":[]}', add_special_tokens=False)
    from rollout.completion import completion_text

    assert completion_text(tokenizer, [*ids, 2], frozenset({2})) == '{"actions":[]}'
    assert completion_text(tokenizer, [*ids, 1, *ids], frozenset({2})) == '{"actions":[]}<|im_start|>{"actions":[]}'


@pytest.mark.parametrize("temperature, top_p", [(1.0, 1.0), (0.7, 0.8), (1.5, 0.95)])
def test_draws_follow_the_renormalised_nucleus(build_model, tokenizer, temperature, top_p):
    model = build_model(vocab=12, sharpness=30.0, eos_token_id=2)
    prompt = (5, 7, 4)
    with torch.no_grad():
        logits = model(torch.tensor([prompt])).logits[0, -1].double()
    p = torch.softmax(logits / temperature, -1).numpy()
    order = np.argsort(-p)
    kept = order[: int((np.cumsum(p[order]) - p[order] < top_p).sum())]
    expected = p[kept] / p[kept].sum()

    sampling = SamplingParams(temperature, top_p, 1)
    draws = 4000
    out = HFEngine(model, tokenizer).generate([GenerationRequest(prompt, seed, sampling) for seed in range(draws)])
    counts = Counter(g.token_ids[0] for g in out)
    assert set(counts) <= set(kept.tolist())
    big = expected * draws >= 5
    observed = np.array([counts[t] for t in kept])
    observed, expected = (np.append(a[big], a[~big].sum()) for a in (observed, expected * draws))
    observed, expected = observed[expected > 0], expected[expected > 0]
    assert chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-4


def test_modes_and_attention_are_restored(model, tokenizer):
    model.train()
    model.model.layers[0].eval()
    HFEngine(model, tokenizer).generate(requests(2))
    assert model.training and model.model.layers[1].mlp.training and not model.model.layers[0].mlp.training
    assert model.config._attn_implementation == "sdpa"
    model(torch.tensor([[5, 6]]), labels=torch.tensor([[5, 6]])).loss.backward()
    with pytest.raises(RuntimeError, match="interrupted"):
        model.register_forward_pre_hook(lambda *_: (_ for _ in ()).throw(RuntimeError("interrupted")))
        HFEngine(model, tokenizer).generate(requests(2))
    assert model.training and model.config._attn_implementation == "sdpa"


def test_shared_weights_need_no_copy(model, tokenizer):
    engine = HFEngine(model, tokenizer)
    batch = requests(4)
    before = ids_of(engine.generate(batch))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    engine.update_weights(model.named_parameters(), 1)
    assert engine.policy_version == 1 and ids_of(engine.generate(batch)) != before


def test_updated_copy_writes_what_the_other_model_writes(build_model, tokenizer):
    trainer, own = build_model(seed=1), build_model(seed=0)
    batch = requests(4)
    engine = HFEngine(own, tokenizer)
    engine.update_weights(((n, p.detach().clone()) for n, p in trainer.named_parameters()), 3)
    assert engine.generate(batch) == HFEngine(trainer, tokenizer).generate(batch)
    assert engine.policy_version == 3


def test_unfit_weights_are_named(build_model, tokenizer):
    engine = HFEngine(build_model(), tokenizer)
    weights = dict(build_model(seed=1).named_parameters())
    with pytest.raises(ValueError, match="'extra' is no parameter"):
        engine.update_weights([*weights.items(), ("extra", torch.zeros(1))], 1)
    with pytest.raises(ValueError, match=r"lm_head.weight has shape \[3\], the engine's has \[340, 32\]"):
        engine.update_weights([("lm_head.weight", torch.zeros(3))], 1)
    with pytest.raises(ValueError, match="1 parameters were not sent, lm_head.weight among them"):
        engine.update_weights([(n, p) for n, p in weights.items() if n != "lm_head.weight"], 1)
    assert engine.policy_version == 0


def test_tied_head_may_be_sent_or_left_out(build_model, tokenizer):
    batch = requests(3)
    for with_head in (True, False):
        trainer = build_model(seed=1, tie_word_embeddings=True)
        engine = HFEngine(build_model(tie_word_embeddings=True), tokenizer)
        sent = list(trainer.named_parameters()) + [("lm_head.weight", trainer.lm_head.weight)] * with_head
        engine.update_weights(sent, 1)
        assert engine.generate(batch) == HFEngine(trainer, tokenizer).generate(batch)


def test_states(model, tokenizer):
    engine = HFEngine(model, tokenizer)
    engine.sleep(), engine.sleep()
    with pytest.raises(EngineStateError, match="asleep"):
        engine.generate(requests(1))
    with pytest.raises(EngineStateError, match="asleep"):
        engine.update_weights(model.named_parameters(), 1)
    engine.wake(), engine.wake()
    assert engine.generate(requests(1)) and engine.generate([]) == []
    engine.close(), engine.close()
    with pytest.raises(EngineStateError, match="closed"):
        engine.generate(requests(1))


def test_a_wrapped_module_is_unwrapped_and_a_sharded_one_refused(model, tokenizer):
    class Wrapper(torch.nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

        def __getattr__(self, name):  # as DeepSpeed's engine does
            return super().__getattr__(name) if name == "module" else getattr(self.module, name)

    batch = requests(2)
    assert HFEngine(Wrapper(model), tokenizer).generate(batch) == HFEngine(model, tokenizer).generate(batch)
    model.lm_head.weight.ds_id = 0
    with pytest.raises(ValueError, match="ZeRO-3"):
        HFEngine(model, tokenizer)


def test_metrics_count_since_the_last_call(model, tokenizer):
    engine = HFEngine(model, tokenizer)
    batch = requests(3)
    generated = sum(len(g.token_ids) for g in engine.generate(batch))
    metrics = engine.metrics()
    assert metrics["prompt_tokens"] == sum(len(r.prompt_ids) for r in batch)
    assert metrics["generated_tokens"] == generated and metrics["seconds"] > 0
    assert engine.metrics()["generated_tokens"] == 0


@pytest.mark.parametrize(
    "bad",
    [
        dict(temperature=0.0),
        dict(temperature=-1.0),
        dict(temperature=math.inf),
        dict(top_p=0.0),
        dict(top_p=1.1),
        dict(max_new_tokens=0),
    ],
)
def test_impossible_sampling_settings_name_the_field(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        SamplingParams(**bad)


def test_a_call_can_be_ended_between_decode_steps_and_the_engine_goes_on(model, tokenizer):
    engine = HFEngine(model, tokenizer)
    requests = [GenerationRequest((5, 9, 11), seed, SamplingParams(max_new_tokens=12)) for seed in range(4)]
    expected = engine.generate(requests)
    passed = []

    def end_at_the_third() -> None:
        passed.append(0)
        if len(passed) == 3:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"), engine.interruptible(end_at_the_third):
        engine.generate(requests)
    assert len(passed) == 3 and engine.generate(requests) == expected and len(passed) == 3
