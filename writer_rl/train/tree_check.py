"""Whether a model can be trained on prefix trees: asked of the real model at the start, never assumed.

A tree is right for a decoder whose only mixing of tokens is softmax attention over everything earlier. Windows, recurrent layers,
positions that are not given by ids, attention of a model's own making: each would silently compute something else. So the policy
(and the reference) score a small tree, once more with other tokens in one branch, and padded. The other branches must not change
by a single bit (in random weights a leak is smaller than rounding elsewhere), and the padded answer must be the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor, nn

from writer_rl.config import TrainerSection
from writer_rl.model.batching import ScoredBatch, collate
from writer_rl.train.backend import Backend
from writer_rl.train.tree_batch import TreeBatch

Scorer = Callable[[ScoredBatch], tuple[Tensor, Tensor | None]]
"""Called like a `Policy`."""

Settings = TypeVar("Settings", bound=TrainerSection)

TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.05, torch.float16: 0.02}
"""Mean difference of a log-probability that rounding explains, in nats; a token too many or too few moves it by far more."""


@dataclass(frozen=True, slots=True)
class CheckSample:
    """A sample of the check. Example: ``CheckSample((5, 6, 7), (8, 9))``."""

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]


def checked_packing(settings: Settings, backend: Backend, reference: Scorer | None = None) -> tuple[Settings, str | None]:
    """The settings with the packing that works, and a line that says why it is not the one asked for. Collective."""
    if settings.packing != "tree":
        return settings, None
    found = _dropout(backend.policy)
    scorers = [backend.logprobs] if reference is None else [backend.logprobs, reference]
    for scorer in scorers:
        found = found or tree_problem(scorer, backend.policy.head.weight, backend.device)
    problem = next((each for each in backend.world.gather(found) if each is not None), None)
    if problem is None:
        return settings, None
    line = f"trainer.packing: padded, no shared prefixes: {problem}"
    return settings.model_copy(update={"packing": "padded"}), line


@torch.no_grad()
def tree_problem(scorer: Scorer, weight: Tensor, device: torch.device) -> str | None:
    """Why this policy can't take trees, or None. weight: its output matrix, for vocabulary and dtype. Collective under ZeRO-3."""
    vocabulary = getattr(weight, "ds_shape", weight.shape)[0]
    probes = list(_probes(vocabulary))
    plain = collate(probes).to(device)
    expected = plain.per_sample(scorer(plain)[0])
    try:
        tree = TreeBatch.of(probes).to(device)
        scored = tree.per_sample(scorer(tree)[0])
        other, elsewhere = _another_branch(tree, vocabulary)
        changed = tree.per_sample(scorer(other)[0])
    except Exception as error:  # whatever a model says to a keyword or a layout that it does not know
        return next(iter(str(error).splitlines()), type(error).__name__)
    if not torch.equal(scored[elsewhere], changed[elsewhere]):
        return "this model's layers mix tokens of different samples"
    difference = (scored - expected)[plain.mask].abs().mean().item()
    if difference > TOLERANCE.get(weight.dtype, 1e-4):
        return f"this model's log-probabilities change by {difference:.2g} nats when prompts share their beginnings"
    return None


def _another_branch(tree: TreeBatch, vocabulary: int) -> tuple[TreeBatch, Tensor]:
    """The tree with other tokens below its first branch, and [B, C] where a completion has no token there."""
    branch = next(edge for edge in tree.edges if edge.parent >= 0)
    ids = tree.input_ids.clone()
    ids[0, branch.start : branch.end] = (ids[0, branch.start : branch.end] + 1) % vocabulary
    predictors = tree.states[tree.predictor_of]
    outside = (predictors < branch.start) | (predictors >= branch.end)
    return replace(tree, input_ids=ids), outside[tree.places] & tree.mask


def _probes(vocabulary: int) -> Iterator[CheckSample]:
    """Prompts and completions that part at every depth, one sample twice, one that begins another, one that shares nothing."""
    dice = random.Random(0)

    def ids(count: int) -> tuple[int, ...]:
        return tuple(dice.randrange(vocabulary) for _ in range(count))

    root = ids(7)
    for _ in range(2):
        stem = root + ids(9)
        said = ids(3)
        yield CheckSample(stem, said + ids(5))
        yield CheckSample(stem, said + ids(2))
        yield CheckSample(stem, said)
    yield CheckSample(stem, said)
    yield CheckSample(root, ids(4))
    yield CheckSample(ids(3), ids(6))


def _dropout(policy: nn.Module) -> str | None:
    if any(isinstance(each, nn.Dropout) and each.p > 0 for each in policy.modules()):
        return "dropout (model.lora.dropout) is drawn anew for every sample that a token stands in"
    return None
