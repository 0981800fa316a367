# SPDX-License-Identifier: Apache-2.0
"""A program of this machine that is to call us: what will be changed in its settings, and changing it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from goodbot.api.sentences import clause
from goodbot.api.setup import ConnectorSetup
from goodbot.api.texts import reworded
from goodbot.api.texts.terminal import here, phrase
from goodbot.base.errors import GoodbotError
from goodbot.cli.connector_setup import changes_a_program, prepared
from goodbot.cli.setup.asked import ask_settings, needs_token, settings_of, setup_of
from goodbot.cli.setup.dialogue import Choice, Dialogue
from goodbot.cli.setup.draft import Draft, StateFound
from goodbot.config.secrets import Secrets

_SECONDS = 60.0
_TOPIC = "program"


def needs_program(place: StateFound, draft: Draft) -> bool:
    """Whether the platform is a program here, whose settings are to be changed."""
    setup = setup_of(place, draft)
    return setup is not None and changes_a_program(setup)


def ask_program(dialogue: Dialogue, place: StateFound, draft: Draft) -> None:
    """Say what will be changed there; the last question asks whether to."""
    setup = setup_of(place, draft)
    assert setup is not None  # noqa: S101  the step would not be there
    if not needs_token(place, draft):
        dialogue.guide(setup)
        ask_settings(dialogue, place, draft, setup)
    draft.missing.pop(_TOPIC, None)
    while True:
        try:
            lines = asyncio.run(_look(place, draft, setup))
        except (GoodbotError, TimeoutError) as error:
            sentence = reworded(error, dialogue.language) or dialogue.phrase(
                "setup_no_answer", title=setup.title
            )
            dialogue.trouble(sentence)
            choices = [
                Choice(value="again", label=dialogue.phrase("setup_try_again")),
                Choice(value="unchecked", label=dialogue.phrase("setup_go_on_connect")),
            ]
            if dialogue.choose("", choices, "again") == "again":
                continue
            draft.missing[_TOPIC] = sentence
            return
        break
    if draft.identity:
        dialogue.say(dialogue.phrase("setup_it_is", name=draft.identity.name))
    dialogue.say(dialogue.phrase("setup_will_change" if lines else "setup_nothing_changes"))
    for line in lines:
        dialogue.say(line, indent=2)


def preview(dialogue: Dialogue, place: StateFound, draft: Draft) -> Sequence[str]:
    """What connecting would change, one line each; nothing is changed. Raises GoodbotError."""
    setup = setup_of(place, draft)
    own = [] if draft.platform in place.config.connectors else [f"[connectors.{draft.platform}]"]
    if setup is None or not changes_a_program(setup):
        return own
    ask_settings(dialogue, place, draft, setup)
    return [*own, *asyncio.run(_look(place, draft, setup))]


def install(place: StateFound, draft: Draft) -> Sequence[str]:
    """Change the program's settings, now that ours are stored; what was done, one line each.

    What did not go is in `draft.missing` then, with what to do.
    """
    setup = setup_of(place, draft)
    if setup is None or not changes_a_program(setup) or _TOPIC in draft.missing:
        return ()
    try:
        return asyncio.run(_install(_made(place, draft, setup), dry_run=False))
    except (GoodbotError, OSError, TimeoutError) as error:
        why = clause(reworded(error, here()) or phrase("too_slow"))
        draft.missing[_TOPIC] = phrase("setup_unchanged", title=setup.title, why=why, name=draft.platform)
        return ()


async def _look(place: StateFound, draft: Draft, setup: type[ConnectorSetup]) -> Sequence[str]:
    made = _made(place, draft, setup)
    async with asyncio.timeout(_SECONDS):
        draft.identity = await made.identify()
    return await _install(made, dry_run=True)


async def _install(setup: ConnectorSetup, *, dry_run: bool) -> Sequence[str]:
    async with asyncio.timeout(max(_SECONDS, setup.remove_seconds)):
        return await setup.install(dry_run=dry_run)


def _made(place: StateFound, draft: Draft, setup: type[ConnectorSetup]) -> ConnectorSetup:
    spec = place.connector(draft.platform)
    settings: Any = settings_of(place, draft)
    kept = {**place.secrets.environment(spec.secrets), **draft.tokens}
    return prepared(setup, Secrets(spec.secrets, kept), settings, place.config)
