"""A usable memory of a group chat in ten lines.

from writer_rl import Memory

with Memory("family.db", writer="exports/writer") as memory:
    memory.remember("WhatsApp Chat with Family.txt")
    answer = memory.ask("What does Alice think of the new flat?")
    print(answer.text)
    for line in answer.evidence:
        print(line)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from memory_env.conversation import Question, Segment
from memory_env.datafile import DataError
from memory_env.ingest import Chat, ChatMessage, ReadOptions, read_source
from memory_env.ingest.sessions import GAP_HOURS, MOST_MESSAGES
from memory_env.ingest.text_stream import well_formed
from memory_env.ingest.times import TimeError, instant, parse_time
from memory_env.provenance import Provenance
from memory_env.records import GROUP, Record
from memory_env.state import MemoryState
from memory_env.step import step
from memory_env.store.deletion import Forgotten
from memory_env.store.drafts import NOBODY, note_unwritten
from memory_env.store.exports import take_in
from memory_env.store.forget import allow_again, forget_chat, forget_member, forget_messages, forget_records
from memory_env.store.intake import WINDOW, arrive
from memory_env.store.lock import writing
from memory_env.store.rows import Arrived, WrittenSegment
from memory_env.store.store import MemoryStore
from memory_env.store.timeline import settled
from memory_env.store.tombstones import admitted, allowed_output
from writer_rl.memory import rewriting
from writer_rl.memory.answers import Answered, answered
from writer_rl.memory.live import LiveMessages
from writer_rl.memory.sources import Message, as_message, as_messages

if TYPE_CHECKING:
    from memory_env.query.living import LivingRetrieval
    from memory_env.query.protocol import Answerer
    from memory_env.query.retrieve.dense import Embedder
    from writer_rl.evaluation.writers import Writer

COMMIT_MESSAGES = 1000
"""Without a Writer, so many messages share one commit."""


@dataclass
class Remembered:
    """What `Memory.remember` did.

    Example:
        Remembered(new=812, known=4031, segments=35, records=120, updates=9, invalid=2)
    """

    new: int = 0
    known: int = 0
    segments: int = 0
    records: int = 0
    updates: int = 0
    invalid: int = 0
    verbatim_only: int = 0
    held_back: int = 0
    put_back: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


ENDPOINT, SERVED = "endpoint:", "served:"


class Memory:
    """A memory file and what reads and writes it.

    path: the SQLite file; made if it is not there, unless `create` is false.
    writer: "none" (messages only), an exported Writer's folder, "served:MODEL" (a trained Writer behind a server),
        "endpoint:MODEL" (any language model), or a Writer (writer_rl.evaluation.writers). Loaded when first used.
    config: how a Writer is run (an EvaluationConfig); answerer: who answers (the offline reader).
    retrieval: "lexical" (words), "dense" (meaning), "fused" (both), or "auto": fused where all-MiniLM-L6-v2 is installed, else
        lexical; embedder: another embedder than that.
    provenance: how the messages behind a record are found; None: by shared words (memory_env.provenance).
    """

    def __init__(
        self,
        path: str | Path,
        writer: str | Writer = "none",
        *,
        create: bool = True,
        config: Any = None,
        base_url: str | None = None,
        answerer: Answerer | None = None,
        retrieval: str = "auto",
        embedder: Embedder | None = None,
        provenance: Provenance | None = None,
    ):
        made = not Path(path).exists()
        self.store = MemoryStore(path, create)
        # A new file is taken away again if the source that it was made for can't be read.
        self._made, self._in_vain = made, False
        self._source, self._config, self._base_url = writer, config, base_url
        self._writer: Writer | None = None
        self._live: LiveMessages[Remembered] | None = None
        self._answerer, self._provenance = answerer, provenance
        self._how, self._embedder = retrieval, embedder
        self._retrieval: LivingRetrieval | None = None
        self._known_state: tuple[tuple[Any, Any], MemoryState] | None = None

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and the Writer."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        leave_nothing = self._in_vain and not any(self.store.counts().values()) and not self.live.waiting()
        self.store.close()
        if leave_nothing:
            self.store.path.unlink(missing_ok=True)

    def remember(
        self,
        source: str | Path | Iterable[Message],
        format: str = "auto",
        options: ReadOptions | None = None,
        window: int = WINDOW,
        gap_hours: float = GAP_HOURS,
        on_segment: Callable[[int, int], None] | None = None,
    ) -> Remembered:
        """Read a chat export (or take messages) and write what is new into the memory. What it knows already stays as it is.

        Messages are dicts, tuples, ChatMessages or objects of your own, their times text or datetimes (writer_rl.memory.sources).

        Stopped at any moment, the file holds whole segments, and the same call goes on. `on_segment(messages done, of all)`.
        Raises DataError for a source that can't be read.
        """
        result = Remembered()
        most = max(MOST_MESSAGES, window)
        try:
            chats = _chats(source, format, options or ReadOptions(), result) if isinstance(source, (str, Path)) else None
        except DataError:
            self._in_vain = self._made
            raise
        with writing(self.store.path):
            if chats is not None:
                taken = take_in(self.store, chats, window, gap_hours, most)
                arrived, result.known, result.held_back = taken.arrived, taken.known, taken.held_back
                result.notes += taken.notes
            else:
                messages = as_messages(cast(Iterable[Message], source))
                messages, result.held_back = admitted(self.store.connection, messages)
                arrived = arrive(self.store, messages, window, gap_hours, most)
                result.known = len(messages) - sum(len(segment.sources) for segment in arrived)
            result.new = sum(len(segment.sources) for segment in arrived)
            before = self.store.next_position()
            if arrived:
                self._write(arrived, result, on_segment)
            if self._source != NOBODY:
                result.notes += rewriting.written_otherwise(self.store, self._writer_identity(), before)
        return result

    def retry(self, on_segment: Callable[[int, int], None] | None = None) -> rewriting.WritingSummary:
        """Let the Writer write what is kept word for word only: refused segments, and those remembered without a Writer."""
        return self._again(rewriting.retry, on_segment)

    def rewrite(self, on_segment: Callable[[int, int], None] | None = None) -> rewriting.WritingSummary:
        """Let the Writer write the derived track anew. The old one answers until the new one is whole; stopped, it goes on."""
        return self._again(rewriting.write_anew, on_segment)

    def _again(
        self, how: Callable[..., rewriting.WritingSummary], on_segment: Callable[[int, int], None] | None
    ) -> rewriting.WritingSummary:
        writer = self._open_writer()
        if writer.identity == NOBODY:
            raise DataError("writing again needs a Writer: name one (--writer)")
        with writing(self.store.path):
            return how(self.store, writer, self._provenance, on_segment)

    def forget(self, member: str = "", *, message: str = "", record: str = "", chat: str = "", redact: bool = False) -> Forgotten:
        """Forget a member, or one message or record by its id, or a chat; no byte of it stays in the file (docs/memory.md).

        redact: of a member, also the name where others say it. DataError for what the memory does not hold, or while another
        program reads the file.
        """
        if sum(map(bool, (member, message, record, chat))) != 1:
            raise DataError("forget one of: a member, message=ID, record=ID, chat=NAME")
        self._known_state, self._retrieval = None, None
        with writing(self.store.path):
            if member:
                return forget_member(self.store, member, redact)
            if message:
                return forget_messages(self.store, [message])
            return forget_records(self.store, [record]) if record else forget_chat(self.store, chat)

    def allow(self, name: str) -> bool:
        """Let a forgotten member's messages come in again; whether anyone was forgotten under that name."""
        with writing(self.store.path):
            return allow_again(self.store, name)

    def _write(self, arrived: list[Arrived], result: Remembered, on_segment: Callable[[int, int], None] | None) -> None:
        writer = self._open_writer()
        state, position = self.store.state(), self.store.next_position()
        counts = self.store.counts()
        sizes = [counts["messages"], counts["records"], counts["edges"]]
        waiting: list[WrittenSegment] = []
        noted = 0
        # Segments are let go once they are written: `arrived` may be a long export.
        todo, done = arrived[::-1], 0
        arrived.clear()
        while todo:
            part = todo.pop()
            part = replace(part, segment=replace(part.segment, position=position))
            written = self._one(writer, state, part, sizes, todo, result)
            if written is None:
                continue
            waiting.append(written[0])
            state, position = written[1], position + 1
            done += len(part.sources)
            if writer.identity != "none" or sum(len(one.messages) for one in waiting) >= COMMIT_MESSAGES:
                self.store.append(waiting)
                waiting = []
                note_unwritten(self.store, result.refused[noted:])
                noted = len(result.refused)
            if on_segment is not None:
                on_segment(done, result.new)
        if waiting:
            self.store.append(waiting)

    def _one(
        self,
        writer: Writer,
        state: MemoryState,
        part: Arrived,
        sizes: list[int],
        todo: list[Arrived],
        result: Remembered,
    ) -> tuple[WrittenSegment, MemoryState] | None:
        """A segment written, and the state after it; None if it was too long and its halves went back to `todo`."""
        made, refused = rewriting.written_or_refused(writer, state, part.segment)
        if refused.startswith(rewriting.TOO_LONG):
            if len(part.sources) > 1:
                todo += reversed(_halves(part))
                return None
            result.verbatim_only += 1
        elif refused:
            result.refused.append((part.segment.position, refused))
        name = NOBODY if refused else writer.identity
        output = allowed_output(self.store.connection, state, made.text)
        after, report = step(state, part.segment, output, hit_length_limit=made.hit_length_limit, provenance=self._provenance)
        records, edges = after.derived(sizes[1]), after.edges(sizes[2])
        written = WrittenSegment(part, name, output, report, after.verbatim(sizes[0]), records, edges)
        after, put_back = settled(after, report.created_ids)
        sizes[:] = [sizes[0] + len(part.sources), sizes[1] + len(records), sizes[2] + len(edges)]
        result.segments += 1
        result.records += len(records)
        result.updates += len(edges)
        result.put_back += put_back
        result.invalid += bool(report.errors)
        result.errors += report.errors
        return written, after

    def _writer_identity(self) -> str:
        """The Writer's identity; of one behind an endpoint that was not asked, how its identity begins."""
        if self._writer is None and isinstance(self._source, str) and self._source.startswith((ENDPOINT, SERVED)):
            return self._source
        return self._source.identity if not isinstance(self._source, str) else self._open_writer().identity

    def _open_writer(self) -> Writer:
        if self._writer is None:
            if isinstance(self._source, str):
                from writer_rl.memory.writers import open_own_writer

                self._writer = open_own_writer(self._source, self._config, self._base_url)
            else:
                self._writer = self._source
        return self._writer

    def say(self, speaker: str, content: str, ts: datetime | str | None = None, **more: str) -> bool:
        """Remember one live message, which was said just now unless `ts` says when. It is in the file when this returns.

        Messages are written in segments: `flush` writes what waits, and is called here when `window` messages wait or the
        last one is older than `silence` seconds. `more`: message_id, speaker_id, channel, reply_to. False if a message of its
        `message_id` is known already; without an id every call is a message of its own, also a second "ok" in one minute.
        """
        when = ts if ts is not None else datetime.now().astimezone().isoformat(timespec="seconds")
        return self.live.put(as_message({"speaker": speaker, "content": content, "ts": when, **more}))

    def flush(self) -> Remembered:
        """Write the live messages that wait as segments."""
        return self.live.flush()

    @property
    def live(self) -> LiveMessages[Remembered]:
        """The live messages that wait, and when they are written."""
        if self._live is None:
            self._live = LiveMessages(self)
        return self._live

    def ask(self, question: str, as_of: str | date | None = None) -> Answered:
        """The answer from the memory, or from the memory as it was at a time (ISO 8601; a date means its end).

        Without an `answerer` the offline reader quotes the memory: it is English and literal (memory_env.query.answer.reader).
        """
        from memory_env.query.answer.reader import Reader

        question = well_formed(question)
        if not question.strip():
            raise DataError("the question is empty")
        evidence = self.retrieval.evidence(question, None if as_of is None else moment(as_of))
        asked = Question(id="ask", category="", question=question, answer="")
        answer = (self._answerer or Reader()).answer(asked, evidence)
        return answered(question, answer.text, evidence, self.store)

    @property
    def retrieval(self) -> LivingRetrieval:
        """What finds the evidence; opened when it is first used."""
        if self._retrieval is None:
            from memory_env.query.living import LivingRetrieval

            self._retrieval = LivingRetrieval(self.store, self._how, self._embedder)
        return self._retrieval

    def state(self, as_of: str | date | None = None) -> MemoryState:
        """The memory state, now or at a time. Read again only when the file has grown."""
        version = self.store.version()
        if self._known_state is None or self._known_state[0] != (version, as_of):
            self._known_state = ((version, as_of), self.store.state(None if as_of is None else moment(as_of)))
        return self._known_state[1]

    def chains(self, owner: str, as_of: str | date | None = None) -> list[tuple[Record, ...]]:
        """What is recorded about a member (or GROUP): one chain per current record, oldest version first.

        DataError for a name that the memory does not know.
        """
        state = self.state(as_of)
        if owner != GROUP and owner not in state.roster:
            known = ", ".join(state.roster) or "nobody"
            raise DataError(f"{owner!r} is no member; the memory knows {known}, and GROUP")
        return [state.chain(record.entry_id) for record in state.heads(owner)]


def moment(text: str | date) -> float:
    """Seconds since 1970 of a time; a date alone means its end. DataError for what is no time."""
    if isinstance(text, date):
        text = text.isoformat()
    if not isinstance(text, str):
        raise DataError(f"as_of: must be a datetime or text, not {type(text).__name__}")
    try:
        ts = parse_time(text)
    except TimeError as error:
        raise DataError(f"--as-of {text}: {error}; write it like 2025-03-01 or 2025-03-01T18:30") from None
    seconds = instant(ts)
    if seconds is None:
        raise DataError(f"--as-of {text}: can't be read; write it like 2025-03-01 or 2025-03-01T18:30")
    if len(ts) == len("2025-03-01"):
        # The last microsecond of the day; a day's end is a number even where no next day is a date.
        seconds += timedelta(days=1).total_seconds() - 1e-6
    return seconds


def _chats(source: str | Path, format: str, options: ReadOptions, result: Remembered) -> list[Chat]:
    read = read_source(source, format, options)
    for chat in read.chats:
        for what, count in chat.tally.items():
            result.counts[what] = result.counts.get(what, 0) + count
    # Benchmarks come as networks; their messages are remembered like any others.
    told = [
        Chat(
            network.network_id,
            [
                ChatMessage(
                    message.speaker,
                    message.content,
                    message.ts,
                    message.speaker_id,
                    message.turn_id,
                    network.network_id,
                    message.reply_to,
                )
                for message in network.messages
            ],
        )
        for network in read.networks
    ]
    for chat in told:
        chat.messages = [_well_formed(message) for message in chat.messages]
    return [*read.chats, *told]


def _well_formed(message: ChatMessage) -> ChatMessage:
    texts = {each.name: getattr(message, each.name) for each in fields(message) if each.type == "str"}
    whole: dict[str, Any] = {name: well_formed(text) for name, text in texts.items()}
    return message if whole == texts else replace(message, **whole)


def _halves(part: Arrived) -> tuple[Arrived, Arrived]:
    middle = len(part.sources) // 2
    messages = part.segment.messages

    def piece(first: int, last: int) -> Arrived:
        chosen = messages[first:last]
        segment = Segment(part.segment.position, part.segment.session_id, chosen[0].ts, chosen)
        return Arrived(segment, part.sources[first:last], part.keys[first:last])

    return piece(0, middle), piece(middle, len(messages))
