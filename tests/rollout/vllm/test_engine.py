"""The real vLLM engine on tiny models. One engine serves most tests; each test syncs the weights it needs first."""

import json
import os
import random
import weakref
from dataclasses import fields, replace
from statistics import mean

import numpy as np
import pytest
import torch

from memory_env import PromptTemplate
from rollout.engine import Engine, EngineDied, EngineStateError, GenerationRequest, PromptTooLong, SamplingParams
from rollout.hf.engine import HFEngine
from rollout.sampler import sample_groups
from rollout.seeds import request_seed
from rollout.sync import BOUNDS, SyncError, SyncProbe, measure, module_logprobs, sync_and_probe
from rollout.weights import named_weights
from rollout.writer_prompt import WriterPrompt
from tests.rollout.conftest import make_model
from tests.rollout.test_sampler import add, network
from tests.rollout.test_writer_prompt import PROMPT

pytestmark = pytest.mark.vllm

# vLLM's CPU attention knows head sizes from 32 up.
SHAPE = dict(hidden_size=64, num_attention_heads=2, num_key_value_heads=1, intermediate_size=64)
PROBE = SyncProbe.of([range(5, 120), range(30, 40)], new_tokens=12)
BLOCK = 32


def save(model, tokenizer, folder):
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def requests(count, *, seed=0, low=3, high=90, sampling=None):
    rng = random.Random(seed)
    sampling = sampling or SamplingParams(temperature=0.8, top_p=0.95, max_new_tokens=24)
    prompts = [tuple(rng.randrange(4, 340) for _ in range(rng.randint(low, high))) for _ in range(count)]
    return [GenerationRequest(prompt, request_seed(0, "n", i, 0, 0), sampling) for i, prompt in enumerate(prompts)]


def shake(model, scale=0.05):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * scale)


def sync(engine, model, version=None):
    version = engine.policy_version + 1 if version is None else version
    return sync_and_probe(engine, named_weights(model), version, PROBE, module_logprobs(model))


@pytest.fixture(scope="session")
def shared_engine(tmp_path_factory, tokenizer):
    from rollout.vllm.engine import VLLMEngine

    engine = VLLMEngine(save(make_model(**SHAPE), tokenizer, tmp_path_factory.mktemp("untied")), tokenizer, max_model_len=256)
    yield engine
    engine.close()


@pytest.fixture
def trainer():
    return make_model(seed=random.randrange(10**6), **SHAPE)


@pytest.fixture
def engine(shared_engine, trainer):
    """The shared engine, awake, with the trainer's weights."""
    try:
        shared_engine.wake()
    except EngineDied:
        shared_engine.restart()
    sync(shared_engine, trainer)
    shared_engine.metrics()
    return shared_engine


@pytest.fixture(scope="module")
def tied_engine(tmp_path_factory, tokenizer):
    from rollout.vllm.engine import VLLMEngine

    model = make_model(tie_word_embeddings=True, sharpness=4.0, **SHAPE)
    engine = VLLMEngine(save(model, tokenizer, tmp_path_factory.mktemp("tied")), tokenizer, max_model_len=256)
    yield engine
    engine.close()


def test_is_an_engine(engine):
    assert isinstance(engine, Engine)


@pytest.mark.parametrize("temperature, top_p", [(0.6, 1.0), (0.8, 0.95), (1.3, 0.7)])
def test_logprobs_are_raw_and_equal_the_trainers(engine, trainer, forward_logprobs, temperature, top_p):
    batch = requests(8, sampling=SamplingParams(temperature, top_p, 16))
    for request, generation in zip(batch, engine.generate(batch), strict=True):
        expected = forward_logprobs(trainer, request.prompt_ids, generation.token_ids)
        torch.testing.assert_close(torch.tensor(generation.logprobs), expected, atol=2e-5, rtol=0)


def test_greedy_writes_what_the_hf_engine_writes(engine, trainer, tokenizer):
    batch = requests(6, sampling=SamplingParams(greedy=True, max_new_tokens=16))
    assert [g.token_ids for g in engine.generate(batch)] == [g.token_ids for g in HFEngine(trainer, tokenizer).generate(batch)]


def test_same_seeds_same_rollouts_and_a_group_differs(engine):
    batch = requests(6)
    assert [g.token_ids for g in engine.generate(batch)] == [g.token_ids for g in engine.generate(batch)]
    group = [GenerationRequest(batch[0].prompt_ids, request_seed(0, "n", g, 0, 0), batch[0].sampling) for g in range(8)]
    assert len({g.token_ids for g in engine.generate(group)}) > 1


def test_a_request_does_not_depend_on_its_batch(engine):
    batch = requests(5)
    assert [g.token_ids for g in engine.generate(batch)] == [engine.generate([r])[0].token_ids for r in batch]


def test_more_prompt_tokens_than_one_step_reads(engine):
    batch = requests(30, low=180, high=240, sampling=SamplingParams(0.8, 0.95, 4))
    assert sum(len(r.prompt_ids) for r in batch) > 4096
    out = engine.generate(batch)
    assert [g.token_ids for g in out[-3:]] == [g.token_ids for g in engine.generate(batch[-3:])]


def test_stop_tokens_length_limit_and_text(engine, trainer, tokenizer):
    with torch.no_grad():
        trainer.lm_head.weight.zero_()  # every token equally likely: the stop token comes soon
    sync(engine, trainer)
    out = engine.generate(requests(40, sampling=SamplingParams(1.0, 1.0, 120)))
    reasons = {g.finish_reason for g in out}
    assert reasons == {"stop", "length"}
    for generation in out:
        assert (generation.token_ids[-1] == 2) == (generation.finish_reason == "stop")
        assert 2 not in generation.token_ids[:-1] and len(generation.logprobs) == len(generation.token_ids)
        visible = generation.token_ids[:-1] if generation.finish_reason == "stop" else generation.token_ids
        assert generation.text == tokenizer.decode(visible) and len(generation.token_ids) <= 120


def test_five_updates_stay_within_the_bound(engine, trainer):
    for _ in range(5):
        shake(trainer)
        report = sync(engine, trainer)
        assert report.max_difference <= 1e-4 and engine.policy_version == report.version
    assert sync(engine, trainer).max_difference <= 1e-4, "the same weights twice"


def test_tied_embeddings_through_five_updates(tied_engine):
    trainer = make_model(seed=5, tie_word_embeddings=True, sharpness=4.0, **SHAPE)
    for _ in range(5):
        shake(trainer)
        assert sync(tied_engine, trainer).max_difference <= 1e-4
    assert mean(abs(v) for g in tied_engine.generate(PROBE.requests) for v in g.logprobs) > 0.1, "the probe can see"


def test_a_tied_head_that_is_not_sent_is_an_error_not_a_stale_head(tied_engine):
    trainer = make_model(seed=6, tie_word_embeddings=True, sharpness=4.0, **SHAPE)
    with pytest.raises(ValueError, match="1 parameters were not sent, lm_head.weight among them"):
        tied_engine.update_weights(trainer.named_parameters(), 9)
    with pytest.raises(EngineDied):
        tied_engine.generate(requests(1))
    tied_engine.restart()
    with pytest.raises(EngineStateError, match="update_weights first"):
        tied_engine.generate(requests(1))
    assert sync(tied_engine, trainer, 9).max_difference <= 1e-4


@pytest.mark.parametrize(
    "name",
    [
        "model.embed_tokens.weight",
        "model.layers.1.self_attn.q_proj.weight",
        "model.layers.0.mlp.up_proj.weight",
        "lm_head.weight",
    ],
)
def test_one_tampered_tensor_stops_the_run_with_both_numbers(engine, trainer, name):
    tampered = ((n, t + 0.5 * torch.randn_like(t) if n == name else t) for n, t in named_weights(trainer))
    with pytest.raises(SyncError, match=r"probe token log-probability -\d.*trainer -\d") as caught:
        sync_and_probe(engine, tampered, 99, PROBE, module_logprobs(trainer))
    assert abs(caught.value.engine_logprob - caught.value.trainer_logprob) > 1e-4


def test_the_probe_sees_a_prefix_cache_that_outlived_its_weights(engine, trainer, monkeypatch):
    """Without the reset, cached keys of the old policy are read: the probe has to notice."""
    monkeypatch.setattr(engine._llm, "reset_prefix_cache", lambda: True)
    shake(trainer)
    with pytest.raises(SyncError):
        sync(engine, trainer)
    monkeypatch.undo()
    assert sync(engine, trainer).max_difference <= 1e-4


def test_nothing_cached_survives_a_sync(engine, trainer):
    batch = requests(4, low=80)
    engine.generate(batch)
    engine.update_weights(named_weights(trainer), engine.policy_version + 1)
    engine.metrics()
    engine.generate(batch)
    assert engine.metrics()["cached_prompt_tokens"] == 0


def test_the_followers_of_a_group_read_their_common_prefix_from_the_cache(engine):
    """8 trajectories whose prompts share system prompt, roster and a part of the memory, and differ after it."""
    rng = random.Random(1)
    shared = tuple(rng.randrange(4, 340) for _ in range(137))
    tails = [tuple(rng.randrange(4, 340) for _ in range(20 + g)) for g in range(8)]
    sampling = SamplingParams(max_new_tokens=4)
    engine.generate([GenerationRequest(shared + tail, g, sampling) for g, tail in enumerate(tails)])
    metrics = engine.metrics()
    reusable = 7 * (len(shared) // BLOCK) * BLOCK
    assert metrics["cached_prompt_tokens"] >= 0.85 * reusable
    assert metrics["prefix_cache_hit_rate"] == metrics["cached_prompt_tokens"] / metrics["prompt_tokens"]


def test_a_real_group_reads_what_its_prompts_share_from_the_cache(tmp_path, tokenizer, engine, monkeypatch):
    """Prompts of the sampler itself: system prompt, roster, new messages, and memories that part at some record."""
    path = tmp_path / "writer.txt"
    path.write_text(PROMPT)
    prompt = WriterPrompt(tokenizer, PromptTemplate.load(path), 240)
    called = Recorder(engine, [add(f"Ana likes tea {g}") for g in range(8)])
    monkeypatch.setattr(engine._llm, "generate", called.seeing_cache(engine._llm.generate))
    sample_groups([network("chat", 3)], called, prompt, 8, SamplingParams(max_new_tokens=4), 0)
    assert len(called.prompts) == 3 and len(set(called.prompts[1])) > 1, "memories differ from position 1 on"
    for prompts, cached in zip(called.prompts, called.cached, strict=True):
        # The last prompt token is always computed: its logits start the completion.
        shared = min(len(os.path.commonprefix(prompts)), min(map(len, prompts)) - 1) // BLOCK * BLOCK
        assert shared >= BLOCK and sum(min(hit, shared) for hit in cached[1:]) >= 0.85 * 7 * shared


class Recorder:
    """The real engine's prompts and cache, and scripted texts, since random weights write no memory."""

    def __init__(self, engine, texts):
        self.engine, self.texts, self.policy_version = engine, texts, engine.policy_version
        self.prompts, self.cached = [], []

    def generate(self, requests):
        self.prompts.append([request.prompt_ids for request in requests])
        real = self.engine.generate(requests)
        return [replace(g, text=text, finish_reason="stop") for g, text in zip(real, self.texts, strict=True)]

    def seeing_cache(self, generate):
        def wrapped(*arguments, **keywords):
            outputs = generate(*arguments, **keywords)
            self.cached.append([output.num_cached_tokens for output in outputs])
            return outputs

        return wrapped


def test_a_prompt_over_the_context_is_refused_and_nothing_breaks(engine):
    sampling = SamplingParams(max_new_tokens=50)
    with pytest.raises(PromptTooLong, match="prompt of 256 tokens; the engine's max_model_len is 256"):
        engine.generate([GenerationRequest((5,) * 256, 0, sampling)])
    with pytest.raises(ValueError, match="empty prompt"):
        engine.generate([GenerationRequest((), 0, sampling)])
    out = engine.generate([GenerationRequest((5,) * 250, 0, sampling)])[0]
    assert len(out.token_ids) <= 6
    assert engine.generate([]) == []


def test_asleep_nothing_is_generated_or_loaded_and_sync_follows_wake(engine, trainer):
    batch = requests(3)
    before = engine.generate(batch)
    engine.sleep(), engine.sleep()
    with pytest.raises(EngineStateError, match="asleep"):
        engine.generate(batch)
    with pytest.raises(EngineStateError, match="asleep"):
        engine.update_weights(named_weights(trainer), 3)
    engine.wake(), engine.wake()
    assert engine.generate(batch) == before
    engine.sleep(), engine.wake()
    shake(trainer)
    assert sync(engine, trainer).max_difference <= 1e-4


def test_a_sleep_that_drops_the_weights_asks_for_a_sync(engine, trainer, monkeypatch):
    monkeypatch.setattr(engine, "_sleep_level", 2)
    engine.sleep(), engine.wake()
    with pytest.raises(EngineStateError, match="update_weights first"):
        engine.generate(requests(1))
    assert sync(engine, trainer).max_difference <= 1e-4


def test_an_engine_that_dies_restarts_and_repeats_the_round(engine, trainer, monkeypatch):
    batch = requests(4)
    before = [g.token_ids for g in engine.generate(batch)]
    version = engine.policy_version

    def crash(*args, **kwargs):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(engine._llm, "generate", crash)
    with pytest.raises(EngineDied, match="generate: the vLLM engine died .*illegal memory access.*restart"):
        engine.generate(batch)
    with pytest.raises(EngineDied, match="dead"):
        engine.generate(batch)
    engine.restart()
    with pytest.raises(EngineStateError, match="update_weights first"):
        engine.generate(batch)
    assert measure_after(sync(engine, trainer, version)) <= 1e-4
    assert [g.token_ids for g in engine.generate(batch)] == before


def measure_after(report):
    return report.max_difference


def test_a_dead_engine_gives_its_memory_back_before_it_is_restarted(engine, trainer):
    """The error's frames hold the model; on a GPU a second engine beside the first would not fit."""
    model = engine._llm.apply_model(lambda module: module)[0]
    weights = [weakref.ref(parameter) for parameter in model.parameters()]

    def crash(*args, **kwargs):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    model.model.layers[1].mlp.forward = crash
    del model
    with pytest.raises(EngineDied, match="illegal memory access") as caught:
        engine.generate(requests(2))
    assert not engine.alive and caught.value.__cause__ is not None
    assert not any(reference() is not None for reference in weights)
    engine.restart()
    assert engine.alive and sync(engine, trainer).max_difference <= 1e-4


def test_a_broken_engine_that_can_not_shut_down_in_order_is_dead_like_any_other(engine, trainer, monkeypatch):
    core = type(engine._llm.llm_engine.engine_core)
    shut_down = core.shutdown

    def clumsy(self):
        shut_down(self)
        raise RuntimeError("CUDA error: the device is gone")

    monkeypatch.setattr(core, "shutdown", clumsy)
    monkeypatch.setattr(engine._llm, "generate", lambda *a, **k: 1 / 0)
    with pytest.raises(EngineDied, match="ZeroDivisionError"):
        engine.generate(requests(2))
    monkeypatch.setattr(core, "shutdown", shut_down)
    engine.restart()
    assert sync(engine, trainer).max_difference <= 1e-4


def test_a_transfer_that_breaks_off_is_never_served(engine, trainer, tied_engine):
    """And it leaves the process's other engine alone, with which vLLM shares rotary embeddings."""

    def interrupted():
        yield from list(named_weights(trainer))[:5]
        raise OSError("link down")

    batch = requests(3)
    others = tied_engine.generate(batch)
    with pytest.raises(EngineDied, match="link down"):
        engine.update_weights(interrupted(), 7)
    assert tied_engine.generate(batch) == others
    engine.restart()
    with pytest.raises(EngineStateError):
        engine.generate(requests(1))
    sync(engine, trainer)
    assert measure(engine, PROBE, module_logprobs(trainer)).max_difference <= 1e-4


def test_this_vllm_knows_every_argument_that_only_gpus_are_given(monkeypatch):
    from vllm.engine.arg_utils import EngineArgs

    from rollout.vllm.arguments import gpu_arguments

    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    alone, shared = gpu_arguments(0.4, 2.5, 1, True), gpu_arguments(0.4, None, 2, True)
    assert alone["device_ids"] == [3] and "device_ids" not in shared
    assert alone["kv_cache_memory_bytes"] == 2.5 * 2**30 and "kv_cache_memory_bytes" not in shared
    assert {*alone, *shared} <= {field.name for field in fields(EngineArgs)}


def test_the_trainers_random_state_and_threads_are_kept(engine):
    random.seed(3), np.random.seed(3), torch.manual_seed(3)
    expected = random.random(), np.random.rand(), torch.rand(1)
    threads, set_num_threads = torch.get_num_threads(), torch.set_num_threads
    random.seed(3), np.random.seed(3), torch.manual_seed(3)
    engine.restart()
    assert (random.random(), np.random.rand(), torch.rand(1)) == expected
    assert torch.set_num_threads is set_num_threads and torch.get_num_threads() == threads
    assert set_num_threads.__module__ != "vllm.v1.worker.cpu_worker"


@pytest.mark.parametrize("tied", [False, True])
def test_bfloat16_agrees_within_its_bound(tmp_path, tokenizer, tied):
    """After an update, with the same weights twice, and after a sleep; a corrupt tensor is still seen."""
    from rollout.vllm.engine import VLLMEngine

    bound = BOUNDS[torch.bfloat16]
    trainer = make_model(seed=3, sharpness=4.0 if tied else 10.0, tie_word_embeddings=tied, **SHAPE).to(torch.bfloat16)
    engine = VLLMEngine(save(trainer, tokenizer, tmp_path), tokenizer, max_model_len=256, dtype="bfloat16")
    try:
        for _ in range(2):
            shake(trainer)
            for _ in range(2):
                report = sync_and_probe(engine, named_weights(trainer), 1, PROBE, module_logprobs(trainer), bound=bound)
                assert 0 < report.max_difference <= bound
            engine.sleep(), engine.wake()
        corrupt = ((n, torch.randn_like(t) if "q_proj.weight" in n else t) for n, t in named_weights(trainer))
        with pytest.raises(SyncError):
            sync_and_probe(engine, corrupt, 2, PROBE, module_logprobs(trainer), bound=bound)
    finally:
        engine.close()


def test_structured_output_is_always_an_action_list(tmp_path, tokenizer):
    from memory_env import parse_completion
    from rollout.vllm.engine import VLLMEngine

    folder = save(make_model(seed=4, sharpness=5.0, **SHAPE), tokenizer, tmp_path)
    engine = VLLMEngine(folder, tokenizer, max_model_len=512, structured_output=True)
    try:
        out = engine.generate(requests(6, sampling=SamplingParams(1.0, 1.0, 400)))
    finally:
        engine.close()
    finished = [g for g in out if g.finish_reason == "stop"]
    assert finished, "some output closes its JSON within the limit"
    for generation in finished:
        parsed = parse_completion(generation.text)
        assert parsed.valid and parsed.actions
        assert all(action["action"] in ("ADD", "UPDATE", "NOOP") for action in parsed.actions)
        assert json.loads(generation.text, strict=False).keys() == {"actions"}


def test_a_call_can_be_ended_between_steps_and_the_engine_goes_on(engine, trainer):
    sync(engine, trainer)
    asked = requests(6, sampling=SamplingParams(temperature=0.8, top_p=0.95, max_new_tokens=24))
    expected = [made.token_ids for made in engine.generate(asked)]
    passed = []

    def end_at_the_third():
        passed.append(0)
        if len(passed) == 3:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"), engine.interruptible(end_at_the_third):
        engine.generate(asked)
    assert len(passed) == 3
    assert [made.token_ids for made in engine.generate(asked)] == expected
