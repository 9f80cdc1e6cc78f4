"""A policy on a tree gives what it gives sample by sample: values, entropies, gradients, in every way it can be trained."""

import itertools
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.writer_rl.tiny_run import make_model, save_writer
from writer_rl.config import ModelSection
from writer_rl.grpo.samples import Sample
from writer_rl.model.batching import collate
from writer_rl.model.lora import add_adapter
from writer_rl.model.policy import Policy, load_policy
from writer_rl.train.tree_batch import TreeBatch


def sample(prompt, completion, trajectory=0, advantage=1.0):
    return Sample("n", trajectory, 0, tuple(prompt), tuple(completion), (-1.0,) * len(completion), advantage)


def sharing_samples(seed=0, groups=3, size=4):
    """Groups under one system text; siblings part in the prompt or in the completion; one twice; one that shares nothing."""
    dice = random.Random(seed)

    def ids(low, high):
        return [dice.randrange(22) for _ in range(dice.randrange(low, high))]

    system, drawn = ids(8, 9), []
    for _ in range(groups):
        shared, said = ids(4, 9), ids(1, 4)
        drawn += [sample(system + shared + ids(0, 3), said + ids(1, 8)) for _ in range(size - 1)]
        drawn.append(drawn[-1])
    drawn.append(sample(ids(3, 6), ids(3, 6)))
    numbered = [sample(s.prompt_ids, s.completion_ids, i, (-1.0) ** i * (1 + i / 4)) for i, s in enumerate(drawn)]
    return numbered


def test_the_documented_example():
    batch = TreeBatch.of([sample([5, 6], [8, 9]), sample([5, 6], [8, 4])])
    assert batch.input_ids.tolist() == [[5, 6, 8, 4, 9]]
    assert batch.position_ids.tolist() == [[0, 1, 2, 3, 3]]
    assert (batch.states.tolist(), batch.targets.tolist(), batch.predictor_of.tolist()) == ([1, 2], [8, 4, 9], [0, 1, 1])
    assert (batch.places.tolist(), batch.mask.tolist()) == ([[0, 2], [0, 1]], [[True, True], [True, True]])
    assert batch.per_sample(torch.tensor([1.0, 2.0, 3.0])).tolist() == [[1.0, 3.0], [1.0, 2.0]]


token_lists = st.lists(st.integers(0, 2), max_size=5)
drawn_samples = st.lists(st.builds(sample, token_lists.map(lambda ids: [1, *ids]), token_lists), min_size=1, max_size=8)


@given(drawn_samples)
def test_every_completion_token_finds_its_own_log_probability(drawn):
    """The state's prefix and the target, spelled out, are those of the sample."""
    batch = TreeBatch.of(drawn)
    known = {}
    for each in drawn:
        ids = [*each.prompt_ids, *each.completion_ids]
        known |= {tuple(ids[:i]): tuple(ids[: i + 1]) for i in range(len(each.prompt_ids), len(ids))}
    values = batch.per_sample(torch.arange(len(batch.targets), dtype=torch.float64))
    spelled = set()
    for row, each in enumerate(drawn):
        ids = [*each.prompt_ids, *each.completion_ids]
        assert batch.mask[row].sum() == len(each.completion_ids)
        for column in range(len(each.completion_ids)):
            place = int(values[row, column])
            at = len(each.prompt_ids) + column
            assert batch.targets[place] == ids[at]
            node = int(batch.states[batch.predictor_of[place]])
            assert (batch.position_ids[0, node], batch.input_ids[0, node]) == (at - 1, ids[at - 1])
            spelled.add(tuple(ids[: at + 1]))
    assert len(batch.targets) == len(spelled), "each distinct completion token is scored once"
    assert batch.predictor_of.tolist() == sorted(batch.predictor_of.tolist())


def test_a_sample_without_a_prompt_is_refused():
    with pytest.raises(ValueError, match="prompt"):
        TreeBatch.of([sample([], [1])])


@pytest.mark.parametrize("tied", [True, False])
def test_log_probabilities_and_entropies_are_those_of_each_sample_alone(tied):
    policy, drawn = Policy(make_model(tied=tied), logprob_chunk=5), sharing_samples()
    batch = TreeBatch.of(drawn)
    logprobs, entropies = policy(batch, entropy=True)
    assert batch.forwarded() < sum(len(s.prompt_ids) + len(s.completion_ids) for s in drawn) / 1.5
    for row, each in enumerate(drawn):
        expected, expected_entropies = policy(collate([each]), entropy=True)
        length = len(each.completion_ids)
        assert torch.allclose(batch.per_sample(logprobs)[row, :length], expected, atol=1e-5)
        assert torch.allclose(batch.per_sample(entropies)[row, :length], expected_entropies, atol=1e-5)


def gradient(policy, batch, weights):
    policy.zero_grad()
    (batch.per_sample(policy(batch)[0]) * weights).sum().backward()
    return torch.cat([p.grad.double().flatten() for p in policy.parameters() if p.grad is not None])


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    return save_writer(tmp_path_factory.mktemp("writer"), num_hidden_layers=3)


def trained(writer, lora, checkpointing, dtype="float32"):
    adapter = {"rank": lora, "target_modules": ["q_proj", "up_proj"]}
    settings = ModelSection(path=str(writer), gradient_checkpointing=checkpointing, dtype=dtype, lora=adapter)
    policy = add_adapter(load_policy(settings), settings)
    torch.manual_seed(2)
    for name, parameter in policy.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    return policy


@pytest.fixture(scope="module")
def batches():
    """The same samples padded and as a tree, and weights of their log-probabilities in a loss."""
    drawn = sharing_samples()
    plain, tree = collate(drawn), TreeBatch.of(drawn)
    torch.manual_seed(1)
    return plain, tree, torch.randn(plain.mask.shape) * plain.mask


@pytest.mark.parametrize(("lora", "checkpointing"), itertools.product([0, 4], [False, True]))
def test_gradients_are_those_of_the_padded_way(writer, batches, lora, checkpointing):
    plain, tree, weights = batches
    policy = trained(writer, lora, checkpointing)
    expected, found = (gradient(policy, batch, weights) for batch in (plain, tree))
    assert (found - expected).norm() < 1e-5 * expected.norm()


@pytest.mark.parametrize(("lora", "checkpointing"), [(0, True), (4, False)])
def test_in_bfloat16_they_are_as_near_the_exact_ones_as_the_padded_way(writer, batches, lora, checkpointing):
    plain, tree, weights = batches
    policy = trained(writer, lora, checkpointing, "bfloat16")
    found, padded = (gradient(policy, batch, weights) for batch in (tree, plain))
    exact = gradient(policy.float(), plain, weights)
    assert (found - exact).norm() < 1.5 * (padded - exact).norm() < 0.1 * exact.norm()


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gpt2", "phi3", "olmo2", "mixtral"])
def test_other_decoders(kind):
    from transformers import AutoConfig, AutoModelForCausalLM

    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 22}
    grouped = {} if kind == "gpt2" else {"num_key_value_heads": 2, "head_dim": 8}
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **sizes, **grouped, **special))
    policy, drawn = Policy(model).eval(), sharing_samples()
    plain, tree = collate(drawn), TreeBatch.of(drawn)
    assert torch.allclose(tree.per_sample(policy(tree)[0]), plain.per_sample(policy(plain)[0]), atol=1e-5)
