# SPDX-License-Identifier: Apache-2.0
"""A platform's own settings and secrets: secrets are typed unseen, checked there, kept in one place."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from goodbot.api.sentences import sentence
from goodbot.api.setup import Check, CheckState, ConnectorSetup, Identity
from goodbot.api.texts import joined, reworded
from goodbot.base.errors import GoodbotError, RetriableError, UsageError
from goodbot.base.packages import install_line
from goodbot.cli.connector_setup import prepared
from goodbot.cli.setup.asked import ask_settings, needs_token, settings_of, setup_of
from goodbot.cli.setup.dialogue import Choice, Dialogue, Refused
from goodbot.cli.setup.draft import Draft, StateFound
from goodbot.cli.setup.manifest import show_manifest
from goodbot.config.secrets import Secrets, keyring_usable

_SECONDS = 30.0
"""Checking a token takes no longer."""


def ask_token(dialogue: Dialogue, place: StateFound, draft: Draft) -> None:
    """The platform's questions and secrets, and where to keep new ones."""
    draft.tokens = {}
    if not needs_token(place, draft):
        return
    setup = setup_of(place, draft)
    if setup is None:
        dialogue.say(dialogue.phrase("setup_token_later"))
        return
    names = place.connector(draft.platform).needs(settings_of(place, draft))
    stored = place.secrets.environment(names)
    fresh = not all(stored.get(name) for name in names) and not dialogue.has("--token")
    if fresh:
        show_manifest(dialogue, place, draft, _made(place, draft, setup, {}))
        dialogue.guide(setup)
    ask_settings(dialogue, place, draft, setup)
    if not (fresh or dialogue.has("--token")):
        where = place.secrets.where(names[0])
        kept = {name: stored[name] for name in names}
        if _checked(dialogue, place, draft, setup, kept) and _goes_on(dialogue, where):
            draft.keep = where
            return
    typed = _typed(dialogue, names, setup)
    while not _checked(dialogue, place, draft, setup, typed):
        typed = _typed(dialogue, names, setup)
    draft.tokens = typed
    show_manifest(dialogue, place, draft, _made(place, draft, setup, typed), of_account=True)
    draft.keep = _where_to_keep(dialogue, names, draft.keep or place.secrets.where(names[0]))


def _made(
    place: StateFound, draft: Draft, setup: type[ConnectorSetup], values: Mapping[str, str]
) -> ConnectorSetup:
    spec = place.connector(draft.platform)
    return prepared(setup, Secrets(spec.secrets, values), settings_of(place, draft), place.config)


def _goes_on(dialogue: Dialogue, where: str) -> bool:
    places = {"file": "setup_use_file", "keyring": "setup_use_keyring"}
    choices = [
        Choice(value="keep", label=dialogue.phrase(places.get(where, "setup_use_here"))),
        Choice(value="new", label=dialogue.phrase("setup_other_token")),
    ]
    return dialogue.choose("", choices, "keep") == "keep"


def _typed(dialogue: Dialogue, names: tuple[str, ...], setup: type[ConnectorSetup]) -> dict[str, str]:
    values: dict[str, str] = {}
    for number, name in enumerate(names, 1):

        def check(answer: str, name: str = name) -> str:
            if wrong := setup.malformed(name, answer):
                raise Refused(wrong)
            return answer

        if not dialogue.asks and not dialogue.has(_flag(number)):
            raise UsageError(dialogue.phrase("setup_token_needed", name=name))
        called = setup.called(name)
        question = dialogue.phrase("setup_token") if called == name else called
        values[name] = dialogue.secret(_flag(number), question, check)
    return values


def _flag(number: int) -> str:
    return f"--token{number if number > 1 else ''}"


def _checked(
    dialogue: Dialogue,
    place: StateFound,
    draft: Draft,
    setup: type[ConnectorSetup],
    values: Mapping[str, str],
) -> bool:
    """Ask the platform whose secrets these are and what they may; False: others must be typed."""
    draft.identity = None
    for topic in ("token", "account"):
        draft.missing.pop(topic, None)
    while True:
        dialogue.hint(dialogue.phrase("setup_asking", title=setup.title))
        try:
            draft.identity, found = asyncio.run(_ask(place, draft, setup, values))
        except (RetriableError, TimeoutError) as error:
            silent = dialogue.phrase("setup_no_answer", title=setup.title)
            dialogue.say(sentence(reworded(error, dialogue.language) or silent, dialogue.language))
            missing = {"token": dialogue.phrase("setup_unchecked")}
        except GoodbotError as error:
            for number in range(1, len(values) + 1):
                dialogue.forget(_flag(number))
            dialogue.trouble(reworded(error, dialogue.language))
            return False
        else:
            dialogue.say(dialogue.phrase("setup_belongs", name=draft.identity.name))
            for check in found:
                fix = sentence(check.fix, dialogue.language) if check.fix else ""
                dialogue.say(joined(dialogue.language, sentence(check.text, dialogue.language), fix))
            failed = [check.text for check in found if check.state is CheckState.FAIL]
            if not failed:
                return True
            missing = {"account": "; ".join(failed)}
        if (answer := _again(dialogue)) != "again":
            draft.missing.update(missing)
            return answer == "unchecked"


async def _ask(
    place: StateFound, draft: Draft, setup: type[ConnectorSetup], values: Mapping[str, str]
) -> tuple[Identity, list[Check]]:
    """Whose they are, and what is not in order there."""
    asked = _made(place, draft, setup, values)
    async with asyncio.timeout(_SECONDS):
        identity = await asked.identify()
        checks = await asked.examine()
    return identity, [check for check in checks if check.state is not CheckState.OK]


def _again(dialogue: Dialogue) -> str:
    choices = [
        Choice(value="again", label=dialogue.phrase("setup_try_again")),
        Choice(value="new", label=dialogue.phrase("setup_other_token")),
        Choice(value="unchecked", label=dialogue.phrase("setup_go_on")),
    ]
    return dialogue.choose("", choices, "again" if dialogue.asks else "unchecked")


def _where_to_keep(dialogue: Dialogue, names: tuple[str, ...], before: str) -> str:
    choices = [
        Choice(value="file", label=dialogue.phrase("setup_in_file"), note=dialogue.phrase("setup_file_note")),
        Choice(
            value="environment",
            label=dialogue.phrase("setup_nowhere"),
            note=dialogue.phrase("setup_nowhere_note", names=", ".join(names)),
        ),
    ]
    if keyring_usable():
        label, note = dialogue.phrase("setup_in_keyring"), dialogue.phrase("setup_keyring_note")
        choices.insert(1, Choice(value="keyring", label=label, note=note))
    elif dialogue.answer("--keep-token") == "keyring":
        dialogue.forget("--keep-token")
        dialogue.trouble(dialogue.phrase("setup_no_keyring", line=install_line("keyring")))
    dialogue.hint(f"\n{dialogue.phrase('setup_keep')}")
    known = {choice.value for choice in choices}
    return dialogue.choose("--keep-token", choices, before if before in known else "file")
