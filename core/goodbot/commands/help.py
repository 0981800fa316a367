# SPDX-License-Identifier: Apache-2.0
"""help: what this person may type here, first what fits a phone."""

from __future__ import annotations

from collections.abc import Sequence

from goodbot.api.commands import GROUPS, Command, Grant, allowed
from goodbot.api.events import ChannelKind
from goodbot.api.texts import commas, reworded, say
from goodbot.api.texts.terminal import instead
from goodbot.base.errors import UsageError
from goodbot.commands.base import Call, Result

ALL = "all"
LINES = 12
"""Of the short help, about as many as a phone shows at once."""


async def help_(call: Call) -> Result:
    """The commands that a newcomer needs; `all`, or the name of a group, explains more of them."""
    level = call.services.authorization.level(call.user)
    shared = call.event.channel.kind is ChannelKind.SHARED
    most = Grant.RATE if shared else Grant.ADMINISTER
    known = allowed(level, most=most)
    language = call.user.language
    here = [say("help_here", language)] if shared and level is Grant.ADMINISTER else []
    topic = " ".join(call.args).casefold()
    there = [group for group in GROUPS if any(one.group == group for one in known)]
    if not topic:
        return Result(text="\n".join([*_short(known, there, language), *here]))
    if topic != ALL and topic not in there:
        near = instead(topic, [ALL, *there], language)
        raise UsageError(say("help_knows", language, topic=repr(topic[:40]), instead=near))
    parts = [
        [
            reworded(heading, language),
            *(_in(language, one).explained("/rl ", fully=True) for one in known if one.group == group),
        ]
        for group, heading in GROUPS.items()
        if group in there and topic in (ALL, group)
    ]
    return Result(text="\n\n".join("\n".join(part) for part in (*parts, here) if part))


def _in(language: str, command: Command) -> Command:
    return command._replace(summary=reworded(command.summary, language))


def _short(known: Sequence[Command], groups: Sequence[str], language: str) -> list[str]:
    """All of it where that is short, else the first ones, and where the others are."""
    heading = say("help_rate" if any(one.rates for one in known) else "help_talk", language)
    first = known if len(known) < LINES else [one for one in known if "chat" in one.first]
    lines = [_in(language, one).explained("/rl ") for one in first]
    groups_ = commas(language, *groups)
    more = [say("help_more", language, groups=groups_)] if first != known else []
    return [heading, *lines, *more]
