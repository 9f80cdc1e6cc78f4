"""What tells a message from every other, across exports of one chat."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from memory_env.ingest.chat import ChatMessage


def message_keys(messages: Sequence[ChatMessage]) -> list[bytes]:
    """What tells a message from every other, 16 bytes each: its id, else speaker, time and text with a running number.

    The running number tells "ok" and "ok" of one speaker in one minute apart; it counts in the export's order.
    """
    seen: dict[bytes, int] = {}
    keys = []
    for message in messages:
        if message.message_id:
            key = _digest("id", message.channel_id or message.channel, message.message_id)
        else:
            channel, speaker = message.channel_id or message.channel, message.speaker_id or message.speaker
            key = _digest("said", channel, speaker, message.ts, message.content)
            seen[key] = number = seen.get(key, 0) + 1
            if number > 1:
                key = _digest("again", str(number), channel, speaker, message.ts, message.content)
        keys.append(key)
    return keys


def _digest(*parts: str) -> bytes:
    # A tuple's repr joins its parts unambiguously.
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).digest()
