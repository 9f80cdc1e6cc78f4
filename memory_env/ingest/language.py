"""A guess at the language of a text, good enough to notice that a teacher writes in another one than the chat."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable

_COMMON = {
    "English": "the and is to of it that for was with have this be are not you they he she on at will has but what from",
    "Italian": "il lo la gli le di che non per con una del della sono ha anche più come questo ma nel alla dei si",
    "Spanish": "el los las de que no por con una del es para como pero más su al lo esta ha muy sí también se",
    "French": "le les des est une que pas pour dans avec qui sur ce il elle nous vous mais plus au du être sont je",
    "German": "der die das und ist nicht ein eine zu mit von für auf den dem sich auch wir ich aber wie bei war hat",
    "Portuguese": "o os as de que não por com uma do da é para como mas mais seu ao em no na também muito se",
    "Dutch": "de het een en is niet van op te dat met voor zijn maar ook aan er naar bij om wij ik heeft nog",
}
_WORDS = {language: frozenset(words.split()) for language, words in _COMMON.items()}
_SCRIPTS = {
    "CJK": "Chinese", "HIRAGANA": "Japanese", "KATAKANA": "Japanese", "HANGUL": "Korean",
    "CYRILLIC": "Russian or another in Cyrillic", "ARABIC": "Arabic", "GREEK": "Greek",
    "HEBREW": "Hebrew", "THAI": "Thai", "DEVANAGARI": "Hindi or another in Devanagari",
}  # fmt: skip
LEAST_WORDS = 20
LEAST_LEAD = 1.3


def guess_language(texts: Iterable[str]) -> str:
    """The language of `texts`; "" where there is too little text or no clear leader.

    Example:
        guess_language(["il cane è nel giardino e la casa non è lontana"] * 5) == "Italian"
    """
    words: Counter[str] = Counter()
    scripts: Counter[str] = Counter()
    for text in texts:
        words.update(word.strip(".,!?;:()\"'") for word in text.lower().split())
        scripts.update(_script(character) for character in text[:500] if character.isalpha())
    letters = sum(scripts.values())
    if not letters:
        return ""
    # Japanese mixes kana with CJK characters, so any real share of kana decides.
    if scripts["Japanese"] > 0.1 * letters:
        return "Japanese"
    script, count = max(scripts.items(), key=lambda item: item[1])
    if script and count > 0.5 * letters:
        return script
    scores = sorted(((sum(words[word] for word in common), language) for language, common in _WORDS.items()), reverse=True)
    (best, language), (second, _) = scores[:2]
    return language if best >= LEAST_WORDS and best >= LEAST_LEAD * second else ""


def _script(character: str) -> str:
    if character < "\u0250":
        return ""
    name = unicodedata.name(character, "").split(" ")[0]
    return _SCRIPTS.get(name, "")
