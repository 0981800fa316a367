# SPDX-License-Identifier: Apache-2.0
"""Whose bot it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from goodbot.api.setup import ConnectorSetup
from goodbot.api.texts.terminal import phrase
from goodbot.base.errors import StoreError
from goodbot.cli.connector_setup import wrong_id
from goodbot.cli.setup.asked import needs_owner, setup_of
from goodbot.cli.setup.dialogue import Choice, Dialogue, Refused
from goodbot.cli.setup.draft import Draft, StateFound
from goodbot.config.layout import DATABASE
from goodbot.store import inspection, people


def ask_owner(dialogue: Dialogue, place: StateFound, draft: Draft) -> None:
    """A code that the owner sends to the bot, or their user id if they know it."""
    draft.pair, draft.owners = False, ()
    if not needs_owner(place, draft):
        return
    spec = place.connector(draft.platform)
    named = place.config.connector(draft.platform, spec.settings)[0].owners
    owners = sorted({*named, *asyncio.run(_paired(place, draft.platform))})
    choices = [
        Choice(value="pair", label=dialogue.phrase("setup_pair"), note=dialogue.phrase("setup_pair_note")),
        Choice(value="id", label=dialogue.phrase("setup_know_id")),
    ]
    if owners:
        as_it_is = dialogue.phrase("setup_as_it_is", what=", ".join(owners))
        choices.insert(0, Choice(value="keep", label=as_it_is))
    how = "id" if dialogue.has("--owner") else dialogue.choose("", choices, choices[0].value)
    draft.pair = how == "pair"
    draft.owners = named
    if how == "id":
        draft.owners = (_asked_id(dialogue, place, draft),)


def _asked_id(dialogue: Dialogue, place: StateFound, draft: Draft) -> str:
    question, check = dialogue.phrase("setup_user_id"), _user_id(setup_of(place, draft))
    return dialogue.text("--owner", question, check)


async def _paired(place: StateFound, platform: str) -> list[str]:
    """The ids of the platform's owners who have sent a code before."""
    try:
        async with inspection.look(place.config.home / DATABASE) as db:
            grants = await people.grants(db) if await inspection.current(db) else []
    except StoreError:  # there is none yet
        return []
    found = [grant.person.partition(":") for grant in grants if grant.role == "owner"]
    return [id_ for connector, _, id_ in found if connector == platform]


def _user_id(setup: type[ConnectorSetup] | None) -> Callable[[str], str]:
    def check(answer: str) -> str:
        if wrong := wrong_id(setup, answer):
            raise Refused(phrase("setup_or_pair", why=wrong))
        return answer

    return check
