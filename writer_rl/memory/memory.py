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
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from memory_env.conversation import Question
from memory_env.datafile import DataError
from memory_env.ingest import ReadOptions
from memory_env.ingest.sessions import GAP_HOURS, MOST_MESSAGES
from memory_env.ingest.text_stream import well_formed
from memory_env.provenance import Provenance
from memory_env.records import GROUP, Record
from memory_env.state import MemoryState
from memory_env.store.changes import Changes, former_names, keep_former_names, rename
from memory_env.store.deletion import Forgotten
from memory_env.store.drafts import NOBODY
from memory_env.store.exports import take_in
from memory_env.store.forget import allow_again, forget_chat, forget_member, forget_messages, forget_records
from memory_env.store.intake import WINDOW, arrive
from memory_env.store.lock import writing
from memory_env.store.store import MemoryStore
from memory_env.store.tombstones import admitted
from writer_rl.memory import rewriting
from writer_rl.memory.answers import Answered, answered
from writer_rl.memory.live import LiveMessages
from writer_rl.memory.moment import moment
from writer_rl.memory.remembering import Remembered, write_segments
from writer_rl.memory.sources import Message, as_message, as_messages, read_chats

if TYPE_CHECKING:
    from memory_env.query.living import LivingRetrieval
    from memory_env.query.protocol import Answerer
    from memory_env.query.retrieve.dense import Embedder
    from writer_rl.evaluation.writers import Writer

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
            chats = None
            if isinstance(source, (str, Path)):
                chats = read_chats(source, format, options or ReadOptions(), result.counts)
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
                changes = Changes()
                rename(self.store, messages, changes)
                result.notes += changes.notes()
                arrived = arrive(self.store, messages, window, gap_hours, most)
                result.known = len(messages) - sum(len(segment.sources) for segment in arrived)
            result.new = sum(len(segment.sources) for segment in arrived)
            before = self.store.next_position()
            if arrived:
                write_segments(self.store, self._open_writer(), self._provenance, arrived, result, on_segment)
            for chat in chats or ():
                keep_former_names(self.store, chat.former_names)
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
            now = [name for name, names in former_names(self.store).items() if owner in names]
            known = ", ".join(state.roster) or "nobody"
            hint = f"is now called {' or '.join(now)}" if now else f"is no member; the memory knows {known}, and GROUP"
            raise DataError(f"{owner!r} {hint}")
        return [state.chain(record.entry_id) for record in state.heads(owner)]
