"""What stands in a message's text for a file, a poll or another thing without words: written alike by every reader."""

from __future__ import annotations

import re
from collections.abc import Iterable

KINDS = frozenset(
    ("media", "image", "photo", "video", "audio", "sticker", "gif", "document", "contact card", "video note", "voice message",
     "file", "attachment", "animation", "audio file", "video message", "video file", "view once")
)  # fmt: skip
# Kinds of files as WhatsApp names them in other languages.
_TRANSLATED = {
    "image": ("bild", "imagen", "imagem", "immagine", "afbeelding"),
    "video": ("vidéo", "vídeo"),
    "document": ("dokument", "documento", "document"),
    "contact card": ("kontaktkarte", "tarjeta de contacto", "fiche contact", "scheda contatto"),
}
_ENGLISH = {word: kind for kind, words in _TRANSLATED.items() for word in words}
_FILE = re.compile(r"\[(?:(?:file|attachment|document) )?[^\[\]]*\.\w{2,5}\]")
_POLL_VOTES = re.compile(r" \(\d+ [^()]*\)")


def media(kind: str | None) -> str:
    """The placeholder of a file of some kind, in English where the word is known.

    Example:
        media("Bild") == "[image]"; media(None) == "[media]"
    """
    word = (kind or "media").lower()
    return f"[{_ENGLISH.get(word, word if word in KINDS else 'media')}]"


def poll(question: str, options: Iterable[str]) -> str:
    """A poll with its options, as one line of text.

    Example:
        poll("Where?", ["Leeds (2 votes)", "York"]) == "[poll: Where? Options: Leeds (2 votes); York]"
    """
    listed = "; ".join(option.strip() for option in options if option.strip())
    return f"[poll: {question.strip()}{f' Options: {listed}' if listed else ''}]"


def without_votes(text: str) -> str:
    """`text` without the counts of votes of a poll, which grow from export to export."""
    return _POLL_VOTES.sub("", text) if "[poll:" in text else text


def split_media(text: str) -> tuple[str, int]:
    """(the text without the placeholders of files, how many they were).

    Example:
        split_media("[IMG-1.jpg]\\nthe view") == ("the view", 1); split_media("[sic] yes") == ("[sic] yes", 0)
    """
    if "[" not in text:
        return text, 0
    found = 0

    def gone(match: re.Match[str]) -> str:
        nonlocal found
        if match.group()[1:-1].lower() in KINDS or _FILE.fullmatch(match.group()) or match.group().startswith("[sticker"):
            found += 1
            return ""
        return match.group()

    rest = re.sub(r"\[[^\[\]\n]*\]", gone, text)
    return rest.strip(), found
