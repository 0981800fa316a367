# SPDX-License-Identifier: Apache-2.0
"""What platforms make of a text, by their public documentation, written apart from our renderers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tests.support import require

_TAGS = ("html_block", "html_inline", "image")


def _tokens(markdown: str) -> Iterator[Any]:
    """CommonMark with tables, as markdown-it reads it (its port comes with schemathesis)."""
    parser = require("markdown_it").MarkdownIt("commonmark").enable(["table", "strikethrough"])
    for block in parser.parse(markdown):
        yield block
        yield from block.children or ()


def acting(markdown: str) -> list[tuple[str, str]]:
    """Tags, images, and links that hide where they lead."""
    found: list[tuple[str, str]] = []
    for token in _tokens(markdown):
        if token.type in _TAGS:
            found.append((token.type, token.content))
        elif token.type == "link_open" and token.info != "auto":
            found.append(("link", token.attrs["href"]))
    return found


def running(markdown: str) -> list[str]:
    """The words that are no code."""
    return [token.content for token in _tokens(markdown) if token.type == "text"]


# Discord's inline rules, in the order in which its clients try them at each place. Code blocks may stand
# anywhere; lists and quotations are read again by themselves, without their indent.
_ESCAPED = re.compile(r"\\[^0-9A-Za-z\s]")
_BLOCK = re.compile(r"```(?:([a-z0-9_+\-.#]+?)\n)?\n*([^\n][\s\S]*?)\n*```", re.IGNORECASE)
_INLINE = re.compile(r"(`+)([\s\S]*?[^`])\1(?!`)")
_ACTING = re.compile(
    r"@everyone|@here|<@!?\d+>|<@&\d+>|<#\d+>|</[^\n>]+:\d+>|<a?:\w+:\d+>|<id:\w+>"
    r"|\[[^\]]*\]\(\s*<?(?:https?|discord)://[^\s>)]+>?[^)]*\)"
)
_ITEM = re.compile(r"( *)(?:[-*]|\d+\.) (.*(?:\n+ \1.*)*)")
_QUOTED = re.compile(r"(?:> .*(?:\n|\Z))+")


def acting_on_discord(text: str) -> list[str]:
    """Mentions, emoji, commands, and links that hide where they lead."""
    found: list[str] = []
    at = 0
    while at < len(text):
        begins = at == 0 or text[at - 1] == "\n"
        if begins and (quoted := _QUOTED.match(text, at)):
            found += acting_on_discord(re.sub(r"^> ", "", quoted[0], flags=re.MULTILINE))
            at = quoted.end()
        elif begins and (item := _ITEM.match(text, at)):
            found += acting_on_discord(re.sub(rf"\n {{1,{len(item[1]) + 2}}}", "\n", item[2]))
            at = item.end()
        elif code := _ESCAPED.match(text, at) or _BLOCK.match(text, at) or _INLINE.match(text, at):
            at = code.end()
        elif act := _ACTING.match(text, at):
            found.append(act[0])
            at = act.end()
        else:
            at += 1
    return found


_MENTION = re.compile(r"(?<!\w)@[A-Za-z0-9_]{2,32}(?!\w)")


def mentions_on_telegram(text: str, entities: Iterable[Any]) -> Sequence[str]:
    """Names that the server finds in a text without a parse mode: not within `code` and `pre`."""
    wide = text.encode("utf-16-le")
    covered: list[tuple[int, int]] = []
    for entity in entities:
        start = len(wide[: 2 * entity["offset"]].decode("utf-16-le"))
        end = len(wide[: 2 * (entity["offset"] + entity["length"])].decode("utf-16-le"))
        covered.append((start, end))
    return [
        found[0]
        for found in _MENTION.finditer(text)
        if not any(start <= found.start() and found.end() <= end for start, end in covered)
    ]
