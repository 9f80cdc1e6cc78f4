"""What WhatsApp writes by itself into an exported chat, in the languages of its commoner exports.

English, German, Spanish, French, Portuguese, Italian, Dutch, Russian, Turkish, Indonesian, Chinese, Japanese, Korean. A phrase
that is missing here stays an ordinary text: nothing is lost.
"""

from __future__ import annotations

import re


def _any(*phrases: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{phrase})" for phrase in phrases), re.IGNORECASE)


DELETED = _any(
    r"This message was deleted(?: by admin.*)?|You deleted this message(?: as admin)?",
    r"Diese Nachricht wurde gelöscht|Du hast diese Nachricht gelöscht",
    r"Se eliminó este mensaje|Este mensaje fue eliminado|Eliminaste este mensaje",
    r"Ce message a été supprimé|Vous avez supprimé ce message",
    r"Mensagem apagada|Esta mensagem foi apagada|Você apagou esta mensagem",
    r"Questo messaggio è stato eliminato|Hai eliminato questo messaggio",
    r"Dit bericht is verwijderd|(?:Je|U) hebt dit bericht verwijderd",
    r"(?:Данное )?Сообщение удалено|Вы удалили данное сообщение",
    r"Bu mesaj silindi|Bu mesajı sildiniz",
    r"Pesan ini (?:telah )?dihapus|Anda menghapus pesan ini",
    r"此消息已删除|您已删除此消息|このメッセージは削除されました|삭제된 메시지입니다",
    r"تم حذف هذه الرسالة|حذفت هذه الرسالة|این پیام حذف شده است|הודעה זו נמחקה|מחקת את ההודעה הזו|Αυτό το μήνυμα διαγράφηκε",
    r"Ta wiadomość została usunięta|Usunięto tę wiadomość|Tato zpráva byla (?:odstraněna|smazána)|Це повідомлення видалено",
    r"(?:Detta )?meddelandet? (?:har )?raderats?|(?:Detta )?meddelandet? raderades|Denne besked blev slettet",
    r"Denne meldingen ble slettet|Tämä viesti poistettiin",
    r"(?:Ez az|Az) üzenet törölve lett|Acest mesaj a fost șters|Tin nhắn này đã bị xóa|Mesej ini telah dipadamkan",
    r"ข้อความนี้ถูกลบ(?:แล้ว)?|यह संदेश (?:मिटाया|हटाया) गया(?: था)?",
)

_EDITED = (
    "This message was edited", r"Diese Nachricht wurde bearbeitet\.?", r"Se editó este mensaje\.?", "Ce message a été modifié",
    "Mensagem editada", "Questo messaggio è stato modificato", "Dit bericht is bewerkt", "Сообщение изменено",
    "Bu mesaj düzenlendi", "Pesan ini diedit", "消息已编辑", "このメッセージは編集されました",
)  # fmt: skip
EDITED = re.compile(rf"\s*<(?:{'|'.join(_EDITED)})>$", re.IGNORECASE)

# A line of its own: a file that was left out, and what was to be seen once.
MEDIA = _any(
    "<Media omitted>|<View once voice message omitted>|null",
    r"(?P<kind>image|video|audio|sticker|GIF|document|Contact card|video note) omitted",
    "<Medien ausgeschlossen>|<Multimedia omitido>|<Archivo omitido>|<Médias omis>|<Mídia oculta>|<Arquivo de mídia oculto>",
    "<Media omessi>|<Media weggelaten>|<Без медиафайлов>|<Medya dahil edilmedi>|<Media tidak disertakan>",
    "<省略多媒体文件>|<媒體已省略>|<メディアは含まれていません>|<미디어 파일을 제외한 내보내기>",
)
# The same on iOS in other languages: short words that people write too, so only behind the mark that iOS sets.
MARKED_MEDIA = _any(
    r"(?P<kind>[^\W\d_]+(?: [^\W\d_]+)?) (?:weggelassen|ausgelassen|omitid[oa]|absente?|omise?|ocultad[oa]|omess[oa]|weggelaten)",
    r"[^\W\d_]+ отсутству(?:ет|ют)|(?:图像|视频|音频|贴图|文件)已忽略|(?:画像|動画|音声|ステッカー|文書)は含まれていません",
)
MARKED_FILE = re.compile(r"(?P<name>.+\.\w{2,5})(?: \([^()]+\)| • .+)")

ATTACHED = _any(
    r"<(?:attached|Anhang|adjunto|pièce jointe|anexado|allegato|bijgevoegd|вложение): (?P<ios>.+)>",
    r"(?P<android>.+\.\w{2,5}) \((?:file attached|Datei angehängt|archivo adjunto|fichier joint|arquivo anexado|file allegato"
    r"|bestand bijgevoegd|файл добавлен|dosya ekli|file terlampir|文件附件|ファイル添付)\)",
)

# What stands where a speaker would, before a ": " that belongs to the name of a group.
SYSTEM = re.compile(
    r" (changed (the|this) (subject|group)|created (this )?group|changed their phone number|added|removed) |"
    r"^(Messages and calls are|Messages to this|You're now|This chat is)"
)

# What iOS writes under a member's or the group's name, behind its mark.
EVENT = _any(
    "end-to-end encrypted|Ende-zu-Ende-verschlüsselt|cifrad[oa]s? de extremo|chiffrés de bout en bout|criptografia de ponta",
    "crittografi[ac]|end-to-end versleuteld|сквозным шифрованием",
    r"created (?:this )?group|changed (?:the|this) (?:group|subject)|changed their phone number|changed to \+|security code",
    r"disappearing messages|joined (?:using|from|via)|\badded\b|\bremoved\b|\bleft$|You're now an admin|pinned a message",
    "missed (?:voice|video|group)|is a contact|deleted this group",
)

JOINED = re.compile(
    r" added\b|joined (using|from|via)|was added\b|hinzugefügt|ist .*beigetreten|añadió|agregó|a ajouté|adicionou|ha aggiunto"
    r"|toegevoegd|добавил"
)
LEFT = re.compile(
    r" left$| removed | was removed|hat die Gruppe verlassen|hat .* entfernt|salió|eliminó a|a quitté|a retiré|saiu$|removeu"
    r"|ha abbandonato|ha rimosso|heeft de groep verlaten|покинул|удалил"
)
