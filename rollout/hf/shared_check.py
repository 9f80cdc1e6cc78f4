"""Whether a model can read prompts as a prefix tree and decode on what they share: asked of the model itself, never assumed.

It is right for a decoder whose only mixing of tokens is softmax attention over everything earlier, through transformers' sdpa. A
small tree is read in two parts and goes on for two tokens; the log-probabilities must be those of the plain way, and other tokens
in one branch must leave the rows of the others as they are, to the bit.
"""

from __future__ import annotations

import random
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from rollout.hf.known_prompts import KnownPrompts
from rollout.hf.shared_rows import SharedRows

TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.05, torch.float16: 0.02}
"""Mean difference of a log-probability that rounding explains, in nats; a token too many or too few moves it by far more."""
STEPS = 2

Sequences = list[tuple[int, ...]]


@torch.no_grad()
def sharing_problem(module: Any, *, choose_logits: bool = True) -> str | None:
    """Why prompts can't share what they have in common in this model, in evaluation mode; None where they can."""
    kind = getattr(module.config, "_attn_implementation", None)
    if kind != "sdpa":
        return f"its attention is {kind}, not sdpa"
    try:
        if other := {type(layer).__name__ for layer in DynamicCache(config=module.config).layers} - {DynamicLayer.__name__}:
            return f"its cache has a {min(other)}"
        prompts, said = _probes(module.config.get_text_config().vocab_size)
        expected = torch.stack([_plain(module, prompt, tokens) for prompt, tokens in zip(prompts, said, strict=True)])
        found = _shared(module, prompts, said, choose_logits)
        changed = _shared(module, [*prompts[:-1], prompts[-1][:-1] + (prompts[0][0],)], said, choose_logits)
    except Exception as error:  # whatever a model says to a keyword or a layout that it does not know
        return next(iter(str(error).splitlines()), type(error).__name__)
    if not torch.equal(found[:-1], changed[:-1]):
        return "its layers mix tokens of different prompts"
    difference = (found - expected).abs().mean().item()
    if not difference <= TOLERANCE.get(next(module.parameters()).dtype, 1e-4):
        return f"its log-probabilities change by {difference:.2g} nats when prompts share their beginnings"
    return None


def _probes(vocabulary: int) -> tuple[Sequences, Sequences]:
    """Prompts that part at every depth, one twice, one that begins another, one that shares nothing; and tokens to go on with."""
    dice = random.Random(0)

    def ids(count: int) -> tuple[int, ...]:
        return tuple(dice.randrange(vocabulary) for _ in range(count))

    root = ids(7)
    stem = root + ids(9)
    prompts = [stem + ids(5), stem + ids(2), stem, stem, root + ids(4), ids(3), root + ids(6)]
    return prompts, [ids(STEPS) for _ in prompts]


def _shared(module: Any, prompts: Sequences, said: Sequences, choose_logits: bool) -> Tensor:
    """Log-probabilities [B, 1 + STEPS, V] after the prompts and each further token."""
    known = KnownPrompts()
    known.read(module, prompts[:2], choose_logits=choose_logits)
    rows = SharedRows(module, known, prompts, choose_logits=choose_logits)
    logits = [rows.logits]
    last = torch.full((len(prompts),), 1 << 30, device=logits[0].device)
    for step, tokens in enumerate(zip(*said, strict=True), start=1):
        logits.append(rows.step(torch.tensor(tokens, device=last.device), step, last))
    return torch.stack(logits, 1).log_softmax(-1)


def _plain(module: Any, prompt: tuple[int, ...], tokens: tuple[int, ...]) -> Tensor:
    ids = torch.tensor([[*prompt, *tokens]], device=next(module.parameters()).device)
    return module(input_ids=ids, use_cache=False).logits[0, len(prompt) - 1 :].float().log_softmax(-1)
