"""What ends a completion, and what its text is. The same for every engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rollout.engine import RolloutInputError
from rollout.tokenizer import Tokenizer


def stop_token_ids(tokenizer: Tokenizer, *configs: Any) -> frozenset[int]:
    """The stop set: every ``eos_token_id`` of configurations (an id, a list, or none) and tokenizer together.

    A chat model often ends its turn with another token than its generation config's or tokenizer's first eos; listening
    to one of them only makes nearly every completion run to the length limit. Raises RolloutInputError when there is none.

    Example: Qwen2.5-Instruct: generation config [151645, 151643], tokenizer 151645 -> ``{151643, 151645}``.
    """
    ids: set[int] = set()
    for source in (*configs, tokenizer):
        eos = getattr(source, "eos_token_id", None)
        if eos is not None:
            ids.update(int(i) for i in (eos if isinstance(eos, Iterable) else [eos]))
    if not ids:
        raise RolloutInputError("neither generation config nor tokenizer names an eos token; set eos_token_id in either")
    return frozenset(ids)


def completion_text(tokenizer: Tokenizer, token_ids: Sequence[int], stop_ids: frozenset[int]) -> str:
    """The text of sampled ids without their final stop token.

    Other special tokens stay visible: a completion with one in its middle is malformed and has to look so.
    """
    ids = list(token_ids)
    if ids and ids[-1] in stop_ids:
        ids.pop()
    return tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
