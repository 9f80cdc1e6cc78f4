"""Reading weights back out of vLLM: fused, tied, padded, packed into CPU kernels, and cut over workers."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from rollout.checksum import added, differing, named_checksums
from rollout.sync import SyncError, module_logprobs, sync_and_probe
from rollout.vllm.worker import model_checksums
from rollout.weights import named_weights
from tests.rollout.conftest import make_model
from tests.rollout.vllm.test_engine import PROBE, SHAPE, save

HIDDEN, HEADS, SIZE, VOCABULARY = 8, 4, 2, 10


class Layer(nn.Module):
    """What vLLM's parallel layers say of themselves."""

    def __init__(self, weight, **said):
        super().__init__()
        self.weight = nn.Parameter(weight.clone(), requires_grad=False)
        for name, value in said.items():
            setattr(self, name, value)


def whole_model(kv_heads):
    """Hugging Face names and tensors of one layer."""
    draw = torch.Generator().manual_seed(3)
    shapes = {
        "embed.weight": (VOCABULARY, HIDDEN),
        "attn.q_proj.weight": (HEADS * SIZE, HIDDEN),
        "attn.k_proj.weight": (kv_heads * SIZE, HIDDEN),
        "attn.v_proj.weight": (kv_heads * SIZE, HIDDEN),
        "attn.o_proj.weight": (HIDDEN, HEADS * SIZE),
        "norm.weight": (HIDDEN,),
    }
    return {name: torch.randn(shape, generator=draw) for name, shape in shapes.items()}


def worker(whole, rank, size, kv_heads):
    """Worker `rank` of `size`: its share of the tensors, laid out as vLLM lays them out."""
    copies = max(1, size // kv_heads)

    def rows(name, parts=size, index=rank):
        return whole[name].chunk(parts)[index]

    keys = [rows(f"attn.{part}_proj.weight", size // copies, rank // copies) for part in "kv"]
    fused = torch.cat([rows("attn.q_proj.weight"), *keys])
    padded = torch.cat([whole["embed.weight"], torch.zeros(12 - VOCABULARY, HIDDEN)]).chunk(size)[rank]
    start = rank * 12 // size
    indices = SimpleNamespace(org_vocab_start_index=start, org_vocab_end_index=min(VOCABULARY, start + 12 // size))
    model = nn.Module()
    model.packed_modules_mapping = {"qkv_proj": ["q_proj", "k_proj", "v_proj"]}
    model.embed = Layer(padded, shard_indices=indices)
    model.attn = nn.Module()
    model.attn.qkv_proj = Layer(fused, tp_rank=rank, tp_size=size, num_kv_head_replicas=copies)
    model.attn.o_proj = Layer(whole["attn.o_proj.weight"].chunk(size, dim=1)[rank], tp_rank=rank, tp_size=size)
    model.norm = Layer(whole["norm.weight"])
    return model


@pytest.mark.parametrize(("size", "kv_heads"), [(1, 2), (2, 2), (2, 4), (4, 2), (4, 1)])
def test_the_parts_of_all_workers_add_up_to_the_whole(size, kv_heads):
    whole = whole_model(kv_heads)
    shapes = {name: tuple(tensor.shape) for name, tensor in whole.items()}
    workers = [worker(whole, rank, size, kv_heads) for rank in range(size)]
    found = added(model_checksums(model, shapes, torch.float32, rank) for rank, model in enumerate(workers))
    assert found == named_checksums(whole.items())
    with torch.no_grad():
        workers[-1].attn.qkv_proj.weight[0, 0] += 1
    changed = added(model_checksums(model, shapes, torch.float32, rank) for rank, model in enumerate(workers))
    assert differing(named_checksums(whole.items()), changed) == ["attn.q_proj.weight"]


@pytest.mark.vllm
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_real_engine_computes_with_the_trainers_bits(tmp_path, tokenizer, monkeypatch, tied, dtype):
    from rollout.vllm.engine import VLLMEngine

    torch_dtype = getattr(torch, dtype)
    trainer = make_model(seed=5, tie_word_embeddings=tied, **SHAPE).to(torch_dtype)
    engine = VLLMEngine(
        save(make_model(tie_word_embeddings=tied, **SHAPE), tokenizer, tmp_path), tokenizer, dtype=dtype, max_model_len=256
    )

    def proven(pairs, version):
        return sync_and_probe(
            engine, pairs, version, PROBE, module_logprobs(trainer), bound=1.0,
            trainer_checksums=lambda: named_checksums(named_weights(trainer), torch_dtype),
        )  # fmt: skip

    try:
        assert differing(named_checksums(named_weights(trainer)), engine.weight_checksums()), "other weights to begin with"
        assert proven(named_weights(trainer), 1).tensors == len(dict(named_weights(trainer)))
        for name in dict(named_weights(trainer)):
            if name.endswith(
                ("0.self_attn.k_proj.weight", "1.mlp.up_proj.weight", "o_proj.weight", "lm_head.weight", "norm.weight")
            ):
                with pytest.raises(SyncError, match="embed" if tied and name == "lm_head.weight" else f"1 of .*{name} first"):
                    proven(flipped(named_weights(trainer), name), 2)
        proven(named_weights(trainer), 3)
        with torch.no_grad():
            trainer.model.norm.weight[0] += 2.0**-7
        monkeypatch.setattr(engine._llm, "collective_rpc", ignoring_reloads(engine._llm.collective_rpc))
        with pytest.raises(SyncError, match="1 of .*model.norm.weight first"):
            proven(named_weights(trainer), 4)
    finally:
        engine.close()


def flipped(pairs, name):
    for found, tensor in pairs:
        if found == name:
            tensor = tensor.clone()
            tensor.view({2: torch.int16, 4: torch.int32}[tensor.element_size()]).view(-1)[-1] ^= 1
        yield found, tensor


def ignoring_reloads(rpc):
    """vLLM as it is, but a transfer does nothing."""

    def call(method, kwargs=None, **options):
        if method == "reload_weights":
            return [None for _ in kwargs["weights_iterator"]]
        return rpc(method, kwargs=kwargs, **options)

    return call
