# SPDX-License-Identifier: Apache-2.0
"""What a message of somebody holds: its words without our name, what it answers, what came with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from goodbot.base.text import clean

from goodbot_connectors.kit.fields import Json, items, string, sub
from goodbot_connectors.teams import markup

_FILES = 10
_MENTIONS = 50
_NAME = 80
_FILE = "application/vnd.microsoft.teams.file.download.info"
_BLANK = " \t\r\n\u200b\u200c\u200d\u2060\ufeff"
"""What nobody sees: some clients send it in place of a text."""
_QUOTE = 'itemtype="http://schema.skype.com/Reply" itemid="'
"""How Teams's HTML copy of a message begins the quotation of the one that it answers."""


def text(activity: Json, me: str) -> tuple[str, bool]:
    """The words of a message without our mention, and whether we were mentioned.

    A mention of somebody else is their name; what stands for a quoted message is left out. Some
    clients send no words in the text but an HTML copy: its words count then.
    """
    told = list(_mentions(activity, me))
    mentioned = any(ours for _, _, ours in told)
    names = [(shown, "" if ours else name) for shown, name, ours in told]
    formatted = string(activity, "textFormat").casefold() == "xml"
    words = "" if formatted else _written(activity, names)
    if not words.strip(_BLANK):
        copies = (*([_plain(activity)] if formatted else []), *_html(activity))
        read = (markup.words(html, names).strip(_BLANK) for html in copies)
        words = next(filter(None, read), "")
    return words.strip(" ,:\r\n\t") if mentioned else words.strip(), mentioned


def _written(activity: Json, names: Sequence[tuple[str, str]]) -> str:
    """The words of the text itself."""
    words = _plain(activity)
    for quoted in _quoted(activity):
        words = words.replace(f'<quoted messageId="{quoted}"/>', "")
    for shown, name in names:
        words = words.replace(shown, name)
    return markup.named(words, names)


def _mentions(activity: Json, me: str) -> Iterator[tuple[str, str, bool]]:
    """Each mention: how the text writes it, whose name it is, and whether it is us."""
    for entity in islice(items(activity, "entities"), _MENTIONS):
        shown, whose = _plain(entity), sub(entity, "mentioned")
        if string(entity, "type").casefold() == "mention" and shown:
            yield shown, clean(string(whose, "name")), bool(me) and string(whose, "id") == me


def _html(activity: Json) -> Iterator[str]:
    for attachment in items(activity, "attachments"):
        kind, _, _ = string(attachment, "contentType").partition(";")
        if kind.strip().casefold() == "text/html":
            yield clean(string(attachment, "content"))


def _plain(json: Json) -> str:
    """The text of a message, or of a mention in it, with ordinary spaces: Teams puts others around names."""
    return clean(string(json, "text")).replace("&nbsp;", " ").replace("\xa0", " ")


def replied(activity: Json) -> Iterator[str]:
    """The messages that this one may answer, as its different clients say it."""
    yield string(activity, "replyToId")
    yield from _quoted(activity)
    for html in _html(activity):
        _, found, rest = html.partition(_QUOTE)
        if found:
            yield rest.partition('"')[0]


def _quoted(activity: Json) -> Iterator[str]:
    for entity in items(activity, "entities"):
        if string(entity, "type") == "quotedReply":
            yield string(sub(entity, "quotedReply"), "messageId")


def attachments(activity: Json) -> tuple[str, ...]:
    """What came with a message, as names: `image`, `file report.pdf`. Nothing is fetched."""
    found = [_attached(one) for one in islice(items(activity, "attachments"), _MENTIONS)]
    return tuple(name for name in found if name)[:_FILES]


def _attached(attachment: Json) -> str:
    """Its name; empty for the HTML copy of the words."""
    kind = string(attachment, "contentType").partition(";")[0].strip().casefold()
    media, _, form = kind.partition("/")
    if not kind or kind == "text/html":
        return ""
    if media in ("image", "video", "audio"):
        return media
    if ".card." in form:
        return "card"
    name = " ".join(clean(string(attachment, "name")).split())[:_NAME] if kind == _FILE else ""
    return f"file {name}" if name else "file"
