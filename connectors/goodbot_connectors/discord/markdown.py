# SPDX-License-Identifier: Apache-2.0
"""Discord's Markdown, as people's messages arrive in it → plain words for the model."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from goodbot.base.text import clean

from goodbot_connectors.discord.snowflake import identifier
from goodbot_connectors.kit.fields import Json, string

# No class overlaps its neighbour: linear in the text, which may be 4,000 characters long.
_SPECIAL = re.compile(
    r"<@!?([0-9]{1,20})>|<(@&|#)([0-9]{1,20})>|<a?:([A-Za-z0-9_]{1,64}):[0-9]{1,20}>", re.ASCII
)

_FOLLOWS = re.compile(r"\A[ ,\n]*(?::\s+)?")
"""What stands between the mention of us and the words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageText:
    """What somebody wrote."""

    text: str
    """Without the mention of us; people by their names."""
    ids: str
    """The same with people by their ids, as commands want them."""
    to_others: bool
    """Whether it begins by mentioning somebody else."""


def read(raw: str, me: str, mentions: Iterable[Json]) -> MessageText:
    """`raw` in plain words."""
    raw = clean(raw).replace("\x00", "")
    names = {
        id_: clean(string(one, "global_name") or string(one, "username"))
        for one in mentions
        if (id_ := identifier(one.get("id")))
    }
    opening = _SPECIAL.match(raw.lstrip())
    first = opening[1] if opening else None
    return MessageText(
        text=_plain(raw, me, names), ids=_plain(raw, me, {}), to_others=first is not None and first != me
    )


def _plain(raw: str, me: str, names: dict[str, str]) -> str:
    def plain(found: re.Match[str]) -> str:
        user, sign, other, emoji = found.groups()
        if user == me:
            return "\x00"
        if user:
            return f"@{names[user]}" if names.get(user) else user
        return f":{emoji}:" if emoji else f"{'@' if sign == '@&' else '#'}{other}"

    before, *rest = _SPECIAL.sub(plain, raw).split("\x00")
    for after in rest:
        before = f"{before.rstrip(' ')} {after.lstrip(' ')}"
    return _FOLLOWS.sub("", before, count=1).rstrip(" ,\n") if rest else before
