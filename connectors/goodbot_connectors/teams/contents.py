"""What a message of somebody holds: its words without our name, what it answers, what came with it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from goodbot.text import clean

from goodbot_connectors.fields import Json, items, string, sub

_FILES = 10
_MENTIONS = 50
_NAME = 80
_FILE = "application/vnd.microsoft.teams.file.download.info"
_QUOTE = 'itemtype="http://schema.skype.com/Reply" itemid="'
"""How Teams's HTML copy of a message begins the quotation of the one that it answers."""


def text(activity: Json, me: str) -> tuple[str, bool]:
    """The words of a message without our mention, and whether we were mentioned.

    A mention of somebody else is their name; what stands for a quoted message is left out.
    """
    words, mentioned = _plain(activity), False
    for quoted in _quoted(activity):
        words = words.replace(f'<quoted messageId="{quoted}"/>', "")
    for entity in islice(items(activity, "entities"), _MENTIONS):
        shown = _plain(entity)
        if string(entity, "type").casefold() != "mention" or not shown:
            continue
        whose = sub(entity, "mentioned")
        ours = bool(me) and string(whose, "id") == me
        mentioned = mentioned or ours
        words = words.replace(shown, "" if ours else clean(string(whose, "name")))
    return words.strip(" ,:\r\n\t") if mentioned else words.strip(), mentioned


def _plain(json: Json) -> str:
    """The text of a message, or of a mention in it, with ordinary spaces: Teams puts others around names."""
    return clean(string(json, "text")).replace("&nbsp;", " ").replace("\xa0", " ")


def replied(activity: Json) -> Iterator[str]:
    """The messages that this one may answer, as its different clients say it."""
    yield string(activity, "replyToId")
    yield from _quoted(activity)
    for attachment in items(activity, "attachments"):
        if string(attachment, "contentType") == "text/html":
            _, found, rest = string(attachment, "content").partition(_QUOTE)
            if found:
                yield rest.partition('"')[0]


def _quoted(activity: Json) -> Iterator[str]:
    for entity in items(activity, "entities"):
        if string(entity, "type") == "quotedReply":
            yield string(sub(entity, "quotedReply"), "messageId")


def attachments(activity: Json) -> tuple[str, ...]:
    """What came with a message, as names: `image`, `file report.pdf`. Nothing is fetched."""
    found: list[str] = []
    for attachment in items(activity, "attachments"):
        kind = string(attachment, "contentType")
        if kind.startswith("image/"):
            found.append("image")
        elif kind == _FILE:
            name = " ".join(clean(string(attachment, "name")).split())[:_NAME]
            found.append(f"file {name}" if name else "file")
    return tuple(found[:_FILES])
