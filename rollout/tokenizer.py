"""What this project asks of a tokenizer; those of transformers have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Tokenizer(Protocol):
    """Text to token ids and back.

    Example: ``tokenizer("likes tea", add_special_tokens=False)["input_ids"]`` is ``[17, 204]``.
    """

    chat_template: Any
    eos_token_id: Any
    pad_token_id: Any
    name_or_path: str

    @property
    def all_special_ids(self) -> list[int]: ...

    @property
    def all_special_tokens(self) -> list[str]: ...

    @property
    def added_tokens_decoder(self) -> Mapping[int, Any]: ...

    def __call__(self, text: Any, *, add_special_tokens: bool = True) -> Mapping[str, Any]: ...

    def apply_chat_template(
        self, conversation: Any, *, tokenize: bool = True, add_generation_prompt: bool = False, **template_arguments: Any
    ) -> Any: ...

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False, **options: Any) -> Any: ...

    def save_pretrained(self, save_directory: Any) -> Any: ...
