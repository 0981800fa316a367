# SPDX-License-Identifier: Apache-2.0
"""The words of Teams's HTML copy of a message: some clients send nothing else.

Pure, and it never raises, whatever the HTML holds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import unescape

_LONGEST = 120_000
"""Characters that are read; a message of Teams has some 100 KB at most."""
_BLOCKS = re.compile(r"blockquote|d[dlt]|div|h[1-6r]|li|[ou]l|p|pre|t(able|[dhr])")
_SKYPE = "http://schema.skype.com/"
_SPACES = re.compile(r"[ \t\r\n\f\xa0]+")
# Nothing but the end of the text is looked for beyond the next `<`: linear, which html.parser is not.
_PIECE = re.compile(
    r"""<(?P<end>/?)(?P<tag>[A-Za-z][A-Za-z0-9]{0,20})\b(?P<attributes>(?:[^<>"']|"[^"<]*"|'[^'<]*')*)>"""
    r"""|<[!?/][^<>]*>|(?P<words>[^<]+|<)"""
)
_ATTRIBUTE = re.compile(r"""\b(itemtype|alt)\s{0,9}=\s{0,9}(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
_MENTION = re.compile(r"<at\b[^<>]{0,200}>([^<>]{0,200})</at>", re.IGNORECASE)
_AT = re.compile(r"</?at\b[^<>]{0,200}>", re.IGNORECASE)


def words(html: str, mentions: Sequence[tuple[str, str]] = ()) -> str:
    """What a reader sees of `html`, its entities decoded, without the message that it quotes.

    Each of `mentions`, such as `<at>Ada</at>`, is written as its second part.
    """
    reader = _Reader(mentions)
    for piece in _PIECE.finditer(html[:_LONGEST]):
        tag = (piece["tag"] or "").lower()
        if piece["words"]:
            reader.read(unescape(piece["words"]))
        elif tag and piece["end"]:
            reader.close(tag)
        elif tag:
            found = _ATTRIBUTE.findall(piece["attributes"])
            reader.open(tag, {name.lower(): unescape(one or other) for name, one, other in found})
    return re.sub(r"(?<! ) +\n", "\n", reader.text()).strip()


def named(text: str, mentions: Sequence[tuple[str, str]]) -> str:
    """Plain `text` with those `mentions` as well that are written otherwise there: `<at id="0">Ada</at>`."""
    known = {_name(unescape(shown)): instead for shown, instead in reversed(mentions)}
    return _MENTION.sub(lambda found: known.get(_name(unescape(found[1])), found[0]), text)


class _Reader:
    def __init__(self, mentions: Sequence[tuple[str, str]]) -> None:
        self._mentions = [(_name(unescape(text)), instead) for text, instead in mentions]
        self._parts: list[str] = []
        self._pre = 0
        self._within = ""
        """The tag of the quotation or mention that is being read, and how deep we are in such tags."""
        self._depth = 0
        self._mention: list[str] | None = None

    def text(self) -> str:
        self._leave()
        return "".join(self._parts)

    def open(self, tag: str, given: Mapping[str, str]) -> None:
        if self._within:
            self._depth += tag == self._within
            return
        kind = given.get("itemtype", "").removeprefix(_SKYPE)
        if tag in ("img", "emoji") and (kind == "Emoji" or tag == "emoji"):
            self._parts.append(given.get("alt", ""))
        elif tag == "at" or kind == "Mention":
            self._within, self._depth, self._mention = tag, 1, []
        elif kind == "Reply" or tag in ("script", "style"):
            self._within, self._depth = tag, 1
        elif tag == "br":
            self._parts.append("\n")
        elif _BLOCKS.fullmatch(tag):
            self._new_line()
            self._pre += tag == "pre"

    def close(self, tag: str) -> None:
        if self._within:
            self._depth -= tag == self._within
            if not self._depth:
                self._leave()
        elif _BLOCKS.fullmatch(tag):
            self._new_line()
            self._pre = max(self._pre - (tag == "pre"), 0)

    def read(self, data: str) -> None:
        if self._mention is not None:
            self._mention.append(data)
        elif not self._within:
            data = data.replace("\xa0", " ") if self._pre else _SPACES.sub(" ", data)
            spaced = not self._parts or self._parts[-1].endswith((" ", "\n"))
            data = data.lstrip(" ") if spaced and not self._pre else data
            self._parts += [data] if data else []

    def _new_line(self) -> None:
        if self._parts and not self._parts[-1].endswith("\n"):
            self._parts.append("\n")

    def _leave(self) -> None:
        """A quotation or a mention ends; of two people with one name, the first comes first."""
        if self._mention is not None:
            name = _name("".join(self._mention))
            found = [n for n, (text, _) in enumerate(self._mentions) if text == name]
            shown = self._mentions[found[0]][1] if found else name
            if len(found) > 1:
                del self._mentions[found[0]]
            self._parts += [shown] if shown else []
        self._within, self._mention = "", None


def _name(text: str) -> str:
    """Whom a mention's text names: `<at id="0">Ada</at>` is Ada."""
    return " ".join(_AT.sub("", text).split())
