"""The frozen reference in shards scores like the whole one; its hash tells retrained weights, and nothing else."""

import pytest
import torch

from tests.writer_rl.tiny_run import make_model
from tests.writer_rl.train.test_backend import ragged_samples
from writer_rl.config import GRPOTrainer, LoRASection, ModelSection
from writer_rl.model.batching import collate
from writer_rl.model.lora import add_adapter
from writer_rl.model.policy import Policy
from writer_rl.train.distributed import connect
from writer_rl.train.reference import ShardedReference, weights_digest


def frozen(seed=0, tied=True):
    return Policy(make_model(seed=seed, tied=tied)).requires_grad_(False).eval()


@pytest.mark.parametrize("tied", [True, False])
def test_in_shards_it_scores_as_it_does_whole(tied):
    world, batch = connect(threads=1), collate(ragged_samples())
    whole = frozen(tied=tied)
    with torch.no_grad():
        expected, entropy = whole(batch, entropy=True)
    digest = weights_digest(whole.model)
    sharded = ShardedReference(frozen(tied=tied), GRPOTrainer(zero_stage=3), world, "float32")
    assert all(hasattr(parameter, "ds_tensor") for parameter in sharded.model.parameters())
    for _ in range(2):  # what a pass gathered is released, and gathered again
        logprobs, entropies = sharded(batch, entropy=True)
        assert torch.equal(logprobs, expected) and torch.equal(entropies, entropy) and not logprobs.requires_grad
    assert weights_digest(sharded.model) == digest


def test_the_hash_tells_one_changed_bit_and_does_not_mind_an_adapter():
    policy = frozen()
    before = weights_digest(policy.model)
    assert weights_digest(frozen().model) == before != weights_digest(frozen(seed=1).model)
    adapted = add_adapter(frozen(), ModelSection(lora=LoRASection(rank=2)), seed=0)
    assert weights_digest(adapted.model) == before
    values = next(policy.model.parameters()).data.view(torch.int32)
    values[3, 1] ^= 1
    assert weights_digest(policy.model) != before
