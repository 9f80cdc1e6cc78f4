"""The words that phones write beside a time: halves of the day, and what only joins a date to its time."""

from __future__ import annotations

import unicodedata

_MORNING = (
    "am", "πμ", "凌晨", "清晨", "早上", "上午", "午前", "오전",
    "ص", "قظ", "قبل دوپہر",  # Arabic, Persian, Urdu
    "öö", "pg", "sa", "de", "pd", "fm", "fh", "vm", "el", "dop", "prpiet", "priešpiet", "priekšp", "to", "утра",
    "претпл", "үө", "לפנהצ", "पूर्वाह्न", "मपू", "পূর্বাহ্ণ", "முற்பகல்", "ਪੂਦੁ", "పూర్వాహ్నం", "ಪೂರ್ವಾಹ್ನ",
    "පෙව", "ก่อนเที่ยง", "ກ່ອນທ່ຽງ", "နံနက်", "ព្រឹក", "ጥዋት", "կա",
)  # fmt: skip
_EVENING = (
    "pm", "μμ", "中午", "下午", "傍晚", "晚上", "午後", "오후",
    "م", "بظ", "بعد دوپہر",
    "ös", "ptg", "ch", "du", "md", "em", "eh", "nm", "pl", "odp", "pop", "popiet", "pēcp", "tk", "вечера",
    "попл", "үх", "אחהצ", "अपराह्न", "मउ", "অপরাহ্ণ", "பிற்பகல்", "ਬਾਦੁ", "అపరాహ్నం", "ಅಪರಾಹ್ನ",
    "පව", "หลังเที่ยง", "ຫຼັງທ່ຽງ", "ညနေ", "ល្ងាច", "ከሰዓት", "կհ",
)  # fmt: skip
_JOINING = (
    "", "à", "às", "at", "kl", "klo", "um", "в", "o", "u", "ob", "w", "alas", "lúc", "saat", "pukul", "г", "ч", "uhr", "h",
)  # fmt: skip


def _key(text: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFC", text).lower() if unicodedata.category(char)[0] in "LM")


_HALVES: dict[str, str] = {
    **{_key(word): "" for word in _JOINING},
    **{_key(word): "am" for word in _MORNING},
    **{_key(word): "pm" for word in _EVENING},
}


def half_day(text: str) -> str | None:
    """The half of the day that `text` beside a time means: "am", "pm", "" for none; None for words that are not known.

    Example:
        half_day(" p.\u202fm.") == "pm"; half_day(", ") == ""; half_day("hello") is None
    """
    known = _HALVES.get(text)
    return _HALVES.get(_key(text)) if known is None else known
