"""Which format a path holds, and reading it: the one entry to all readers."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path

from memory_env.datafile import DataError
from memory_env.ingest import (
    discord,
    evermem,
    groupmem,
    halumem,
    irc,
    locomo,
    longmemeval,
    matrix,
    memoryagentbench,
    messenger,
    plain_text,
    signal,
    slack,
    socialmem,
    speakermem,
    tabular,
    teams,
    telegram,
    whatsapp,
)
from memory_env.ingest.chat import Chat, ReadOptions, settle_channels, settle_forms
from memory_env.ingest.json_cursor import JsonCursor
from memory_env.ingest.sessions import GAP_HOURS, MOST_MESSAGES, slug, to_network
from memory_env.ingest.sources import Folder, read_jsonl, read_pieces
from memory_env.network import Network

CHATS = (
    "whatsapp", "telegram", "slack", "discord", "messenger", "matrix", "signal", "teams", "irc", "text", "csv", "jsonl", "json",
)  # fmt: skip
BENCHMARKS = (
    "socialmem", "groupmem", "evermem", "locomo", "longmemeval", "halumem", "memoryagentbench", "speakermem", "native",
)  # fmt: skip
FORMATS = CHATS + BENCHMARKS
_JSON_READERS = (
    ("discord", discord), ("messenger", messenger), ("matrix", matrix), ("teams", teams), ("signal", signal),
    ("telegram", telegram), ("longmemeval", longmemeval), ("locomo", locomo), ("speakermem", speakermem), ("json", tabular),
)  # fmt: skip
_OWN_READERS = {
    "telegram": telegram, "slack": slack, "whatsapp": whatsapp, "messenger": messenger, "matrix": matrix, "teams": teams,
    "signal": signal, "irc": irc, "text": plain_text, "csv": tabular, "jsonl": tabular, "json": tabular,
}  # fmt: skip
CONVERT = (
    "convert it to CSV or JSONL with the columns speaker, content, ts (ISO 8601) and, where there are any, channel, id, "
    "speaker_id, reply_to"
)
_FIRST = 5
_FIRST_ROWS = 20


@dataclass
class Source:
    """What a path held: chats (for CHATS) or networks (for BENCHMARKS), and teacher files where the format has them."""

    format: str
    chats: list[Chat] = field(default_factory=list)
    networks: list[Network] = field(default_factory=list)
    trajectories: list[Path] = field(default_factory=list)


def read_source(path: str | Path, format: str = "auto", options: ReadOptions = ReadOptions()) -> Source:  # noqa: B008
    """Read a file, folder, zip archive or Hugging Face dataset name. DataError with file and place."""
    chosen = recognise(path) if format == "auto" else format
    source = Source(chosen)
    if chosen in _OWN_READERS:
        source.chats = _OWN_READERS[chosen].read(path, options)
    elif chosen == "discord":
        source.chats = _discord(Path(path), options)
    elif chosen == "socialmem":
        source.networks = socialmem.read(path)
    elif chosen == "groupmem":
        source.networks = groupmem.read(path)
    elif chosen == "evermem":
        source.networks = evermem.read(path)
    elif chosen in ("longmemeval", "halumem", "memoryagentbench"):
        reader = {"longmemeval": longmemeval, "halumem": halumem, "memoryagentbench": memoryagentbench}[chosen]
        source.networks = reader.read(path)
    elif chosen == "locomo":
        files = sorted(Path(path).glob("*.json")) if Path(path).is_dir() else [Path(path)]
        source.networks = [network for file in files for network in locomo.read(file)]
    elif chosen in ("speakermem", "native"):
        source.networks, source.trajectories = speakermem.read(path)
    else:
        raise DataError(f"--format {format}: there is no such format; there are {', '.join(FORMATS)}")
    for chat in source.chats:
        settle_forms(chat)
    if options.channel and chosen in CHATS:
        source.chats = [chat for chat in source.chats if options.channel in (chat.name, *_channels(chat))]
    if not any(chat.messages for chat in source.chats) and not source.networks:
        raise DataError(f"{path}: holds no message{f' in channel {options.channel!r}' if options.channel else ''}")
    return source


def read_networks(
    path: str | Path,
    format: str = "auto",
    options: ReadOptions = ReadOptions(),  # noqa: B008
    gap_hours: float = GAP_HOURS,
    most: int = MOST_MESSAGES,
) -> list[Network]:
    """What a path holds as networks; a chat is cut into sessions (`gap_hours` of silence, or `most` messages)."""
    return as_networks(read_source(path, format, options), gap_hours, most)


def as_networks(source: Source, gap_hours: float = GAP_HOURS, most: int = MOST_MESSAGES) -> list[Network]:
    """The networks of a source, its chats cut into sessions; chats whose names make the same id are numbered."""
    networks, taken = list(source.networks), {network.network_id for network in source.networks}
    for chat in source.chats:
        if chat.messages:
            name = base = slug(chat.name)
            number = 2
            while name in taken:
                name, number = f"{base}_{number}", number + 1
            taken.add(name)
            networks.append(to_network(chat, gap_hours, most, name))
    return networks


def recognise(path: str | Path) -> str:
    """The format of a path, from its names and first bytes. DataError if it is none that is known."""
    path = Path(path)
    if not path.exists():
        if str(path).count("/") == 1 and "socialmem" in str(path).lower():
            return "socialmem"
        raise DataError(f"{path}: no such file or folder")
    if path.is_dir() or path.suffix.lower() == ".zip":
        return _recognise_folder(path)
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        return "csv"
    if suffix in (".jsonl", ".ndjson"):
        return _lines_format(_first_lines(path))
    if suffix == ".parquet":
        return "memoryagentbench"
    if suffix == ".json":
        document = _sketch(path)
        for name, reader in _JSON_READERS:
            if reader.recognises(document):
                return name
        keys = ", ".join(list(document)[:6]) if isinstance(document, dict) else "a list"
        raise DataError(f"{path}: is JSON of no known layout ({keys}); {CONVERT}")
    head = next(read_pieces(path))
    for name, reader in (("whatsapp", whatsapp), ("irc", irc), ("text", plain_text)):
        if reader.recognises(head):
            return name
    raise DataError(f"{path}: is of no known format ({', '.join(CHATS)}); {CONVERT}")


def _lines_format(rows: list[object]) -> str:
    if signal.recognises(rows):
        return "signal"
    if halumem.recognises(rows):
        return "halumem"
    return "memoryagentbench" if any(memoryagentbench.recognises_row(row) for row in rows) else "jsonl"


def _first_lines(path: Path) -> list[object]:
    return [value for _, (_, value) in zip(range(_FIRST), read_jsonl(path), strict=False)]


def _sketch(path: Path) -> object:
    """A JSON document without what a reader can do without to know it: of a chat's messages the first five."""
    return _sketch_of(JsonCursor(read_pieces(path), str(path)))


def _sketch_of(cursor: JsonCursor) -> object:
    if cursor.next_kind() == "[":
        # The rest of a long list tells no more.
        return [cursor.value() for _, _ in zip(range(_FIRST_ROWS), cursor.elements(), strict=False)]
    if cursor.next_kind() != "{":
        return cursor.value()
    sketch: dict[str, object] = {}
    for key in cursor.members():
        kind = cursor.next_kind()
        if key == "messages" and kind == "[":
            sketch[key] = first = []
            for _ in cursor.elements(key):
                first.append(cursor.value())
                if len(first) == _FIRST:
                    if any(reader.recognises(sketch) for _, reader in _JSON_READERS):
                        return sketch
                elif len(first) > _FIRST:
                    first.pop()
        elif key == "chats" and kind == "{":
            for inner in cursor.members(key):
                if inner == "list":
                    return {**sketch, key: {"list": []}}
                cursor.value()
        else:
            sketch[key] = cursor.value()
    cursor.end()
    return sketch


def _recognise_folder(path: Path) -> str:
    folder = Folder(path)
    names = folder.names()
    folders = (
        ("slack", slack), ("groupmem", groupmem), ("socialmem", socialmem), ("evermem", evermem),
        ("memoryagentbench", memoryagentbench),
    )  # fmt: skip
    for name, reader in folders:
        if reader.recognises(names):
            return name
    if telegram.find_members(names):
        return "telegram"
    if whatsapp.find_members(folder):
        return "whatsapp"
    # Files that were sent in a chat lie deeper than the chat, and may be anything.
    for name in sorted((name for name in names if name.lower().endswith(".json")), key=lambda name: (name.count("/"), name)):
        found = _format_of(folder, name)
        if found and (path.is_dir() or found in CHATS):
            return found
    raise DataError(f"{path}: holds no known format ({', '.join(CHATS)}); {CONVERT}")


def _format_of(folder: Folder, name: str) -> str:
    """The format of one JSON file of a folder; "" for none that is known."""
    try:
        document = _sketch_of(JsonCursor(folder.pieces(name), name))
    except DataError:
        return ""
    return next((format for format, reader in _JSON_READERS if format != "json" and reader.recognises(document)), "")


def _discord(path: Path, options: ReadOptions) -> list[Chat]:
    """One channel, or every channel of a folder or archive."""
    if not (path.is_dir() or path.suffix.lower() == ".zip"):
        return [discord.read(path, options)]
    folder = Folder(path)
    names = [name for name in folder.names() if name.lower().endswith(".json") and _format_of(folder, name) == "discord"]
    chats = [discord.parse(JsonCursor(folder.pieces(name), f"{path}/{name}"), options) for name in names]
    settle_channels(chats)
    return chats


def _channels(chat: Chat) -> Set[str]:
    return {message.channel for message in chat.messages}
