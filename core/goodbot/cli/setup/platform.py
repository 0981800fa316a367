# SPDX-License-Identifier: Apache-2.0
"""Where people talk to the bot."""

from __future__ import annotations

from goodbot.api.connector import ConnectorSpec
from goodbot.base.packages import install_line
from goodbot.base.suggest import TERMINAL
from goodbot.base.text import begun
from goodbot.cli.setup import extras
from goodbot.cli.setup.dialogue import Choice, Dialogue
from goodbot.cli.setup.draft import Draft, StateFound


def ask_platform(dialogue: Dialogue, place: StateFound, draft: Draft) -> None:
    """Every connector that can be set up, and the terminal, which needs nothing."""
    specs = place.plugins.connectors()
    choices = [
        Choice(
            value=name,
            label=begun(spec.title),
            note=dialogue.phrase("setup_already") if name in place.config.connectors else "",
        )
        for name, spec in sorted(specs.items(), key=_effort)
        if name != TERMINAL and spec.setup
    ]
    configured = [choice.value for choice in choices if choice.note]
    note = dialogue.phrase("setup_terminal_note")
    choices.append(Choice(value=TERMINAL, label=dialogue.phrase("setup_terminal"), note=note))
    default = draft.platform or (
        configured[0] if configured else TERMINAL if place.file.exists else choices[0].value
    )
    draft.platform = dialogue.choose("--platform", choices, default)
    take_platform(dialogue, place, draft)
    if draft.platform == TERMINAL:
        for name in configured:
            title = begun(specs[name].title)
            dialogue.say(dialogue.phrase("setup_stays", title=title, name=name))


def _effort(named: tuple[str, ConnectorSpec]) -> tuple[int, int, str]:
    """What is the least work is proposed first."""
    return -named[1].priority, len(named[1].secrets), named[0]


def take_platform(dialogue: Dialogue, place: StateFound, draft: Draft) -> None:
    """Begin with `draft.platform`: what was answered for another is gone, its packages are offered."""
    draft.tokens, draft.identity, draft.pair, draft.owners = {}, None, False, ()
    draft.settings = {}
    for topic in ("platform", "token", "account", "owner", "program"):
        draft.missing.pop(topic, None)
    if draft.platform == TERMINAL:
        return
    spec = place.connector(draft.platform)
    if not extras.offer(dialogue, begun(spec.title), spec.requires, spec.extra):
        line = install_line(spec.extra)
        draft.missing["platform"] = dialogue.phrase("setup_no_packages", name=draft.platform, line=line)
