"""New messages of a chat, cut into segments that continue what a memory already holds."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from memory_env.conversation import Message, Segment
from memory_env.ingest.chat import ChatMessage, name_form
from memory_env.ingest.sessions import GAP_HOURS, MOST_MESSAGES
from memory_env.ingest.times import instant
from memory_env.roster import canonical_names
from memory_env.store.rows import Arrived
from memory_env.store.store import MemoryStore

WINDOW = 25

_Window = list[tuple[Message, ChatMessage, bytes]]


class CanonicalNames:
    """Canonical names that stay as they are while members join: who is in the memory keeps their name."""

    def __init__(self, store: MemoryStore):
        self._names: dict[tuple[str, str], str] = {}  # by (form of the name, speaker id)
        self._by_id: dict[str, str] = {}
        for name, speaker, speaker_id in store.members():
            self._note(name, speaker, speaker_id)

    def _note(self, name: str, speaker: str, speaker_id: str) -> None:
        self._names[name_form(speaker), speaker_id] = name
        if speaker_id:
            self._by_id[speaker_id] = name

    def admit(self, messages: Iterable[ChatMessage]) -> None:
        """Give every new member a name of their own."""
        wanted: dict[tuple[str, str], tuple[str, str]] = {}
        for message in messages:
            form = name_form(message.speaker), message.speaker_id
            wanted.setdefault(form, (unicodedata.normalize("NFC", message.speaker), message.speaker_id))
        new = [member for form, member in wanted.items() if not self._known(form)]
        taken = [(name, "") for name in dict.fromkeys(self._names.values())]
        # An existing name is clean and listed first, so it is kept; a new one has to differ from all of them.
        listed = [*taken, *((speaker, speaker_id or "new") for speaker, speaker_id in new)]
        given = canonical_names(listed)
        for speaker, speaker_id in new:
            self._note(given[speaker, speaker_id or "new"], speaker, speaker_id)

    def _known(self, member: tuple[str, str]) -> bool:
        return member in self._names or (bool(member[1]) and member[1] in self._by_id)

    def of(self, message: ChatMessage) -> str:
        """The canonical name of a message's speaker."""
        return self._by_id.get(message.speaker_id) or self._names[name_form(message.speaker), message.speaker_id]


def arrive(
    store: MemoryStore,
    messages: Sequence[ChatMessage],
    window: int = WINDOW,
    gap_hours: float = GAP_HOURS,
    most: int = MOST_MESSAGES,
) -> list[Arrived]:
    """The segments of the messages that `store` does not hold yet: at most `window` messages each, in time.

    A session goes on where the channel's last one stopped, unless `gap_hours` have passed or it holds `most` messages.
    """
    return cut_segments(store, store.unseen(messages), window, gap_hours, most)


def cut_segments(
    store: MemoryStore, fresh: Sequence[tuple[ChatMessage, bytes]], window: int, gap_hours: float, most: int
) -> list[Arrived]:
    """New messages, with their keys, as segments."""
    if window < 1 or most < 1:
        raise ValueError(f"window and most must be at least 1, got {window} and {most}")
    names = CanonicalNames(store)
    names.admit(message for message, _ in fresh)
    by_channel: dict[str, list[tuple[ChatMessage, bytes]]] = {}
    for message, key in fresh:
        by_channel.setdefault(message.channel, []).append((message, key))
    cutter = _Cutter(store, names, window, gap_hours, most)
    cut = _merged([cutter.cut(channel, part) for channel, part in by_channel.items()])
    first = store.next_position()
    return [
        Arrived(
            Segment(first + place, part[0][0].session_id, part[0][0].ts, tuple(message for message, _, _ in part)),
            tuple(source for _, source, _ in part),
            tuple(key for _, _, key in part),
        )
        for place, part in enumerate(cut)
    ]


def _merged(channels: list[list[_Window]]) -> list[_Window]:
    """The windows of all channels in the order in which things were said; within a channel in the export's order."""
    dated: list[tuple[float, _Window]] = []
    for windows in channels:
        latest = float("-inf")
        for window in windows:
            latest = max(latest, instant(window[0][0].ts) or latest)
            dated.append((latest, window))
    dated.sort(key=lambda pair: pair[0])
    return [window for _, window in dated]


class _Cutter:
    def __init__(self, store: MemoryStore, names: CanonicalNames, window: int, gap_hours: float, most: int):
        self._store, self._names = store, names
        self._window, self._gap, self._most = window, gap_hours * 3600, most
        self._sessions = store.sessions()

    def cut(self, channel: str, fresh: list[tuple[ChatMessage, bytes]]) -> list[_Window]:
        """The windows of one channel."""
        session, turn, before = self._store.last_message(channel) or ("", -1, None)
        windows: list[_Window] = []
        for source, key in fresh:
            now = instant(source.ts)
            # What a newer export holds of an earlier time is another occasion too.
            silent = before is not None and now is not None and abs(now - before) > self._gap
            turn += 1
            if not session or silent or turn >= self._most:
                self._sessions += 1
                session, turn = f"s{self._sessions:05d}", 0
            if not windows or windows[-1][-1][0].session_id != session or len(windows[-1]) >= self._window:
                windows.append([])
            windows[-1].append((self._message(source, session, turn), source, key))
            before = before if now is None else now
        return windows

    def _message(self, source: ChatMessage, session: str, turn: int) -> Message:
        return Message(
            self._names.of(source), source.content, source.ts, source.message_id or f"{session}_t{turn:03d}", session, turn,
            source.speaker_id, source.reply_to,
        )  # fmt: skip
