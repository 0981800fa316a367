# SPDX-License-Identifier: Apache-2.0
"""What a platform's set-up asks for, by the answers so far."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from goodbot.access.login import OWNER
from goodbot.api.setup import ConnectorSetup, Question
from goodbot.api.texts import commas, reworded
from goodbot.base.errors import UsageError
from goodbot.base.installed import missing_modules
from goodbot.base.suggest import TERMINAL
from goodbot.cli.connector_setup import setup_class
from goodbot.cli.setup.dialogue import Dialogue, Refused
from goodbot.cli.setup.draft import Draft, StateFound

_SET = "--set "
_SWITCHED = {"true": True, "false": False}


def setup_of(place: StateFound, draft: Draft) -> type[ConnectorSetup] | None:
    """The platform's set-up; None while its packages are missing, and for the terminal."""
    if draft.platform in ("", TERMINAL):
        return None
    spec = place.connector(draft.platform)
    return None if missing_modules(spec.requires) else setup_class(spec)


def settings_of(place: StateFound, draft: Draft) -> Any:
    """The settings of its section with the answers to its questions."""
    spec = place.connector(draft.platform)
    answers = {question.key: value for question, value in draft.settings.items()}
    return replace(place.config.connector(spec.name, spec.settings)[1], **answers)


def needs_token(place: StateFound, draft: Draft) -> bool:
    """Whether there is a secret to ask for; as long as no platform is chosen there may be."""
    if draft.platform in ("", TERMINAL):
        return not draft.platform
    return bool(place.connector(draft.platform).needs(settings_of(place, draft)))


def needs_owner(place: StateFound, draft: Draft) -> bool:
    """Whether somebody must be named or paired there; not where people log in from this machine."""
    setup = setup_of(place, draft)
    return draft.platform != TERMINAL and (setup is None or setup.pairs)


def known_owner(place: StateFound, draft: Draft) -> str:
    """Whose it is where nobody has to be asked; empty where somebody has."""
    setup = setup_of(place, draft)
    return "" if needs_owner(place, draft) or setup is None else setup.owner or OWNER


def ask_settings(dialogue: Dialogue, place: StateFound, draft: Draft, setup: type[ConnectorSetup]) -> None:
    """The platform's own questions, before its secrets; `--set KEY=VALUE` answers one."""
    draft.settings = {}
    known = [flag_of(question.key) for question in setup.questions]
    if unknown := [flag for flag in dialogue.flags() if flag.startswith(_SET) and flag not in known]:
        said = {"flag": unknown[0][:60], "title": setup.title}
        if not known:
            raise UsageError(dialogue.phrase("setup_no_setting", **said))
        asked = commas(dialogue.language, *known)
        raise UsageError(dialogue.phrase("setup_asks_for", **said, known=asked))
    for question in setup.questions:
        before = settings_of(place, draft)
        if isinstance(is_on := getattr(before, question.key), bool):
            draft.settings[question] = _decided(dialogue, question, is_on)
            continue

        def check(answer: str, before: Any = before, question: Question = question) -> str:
            none = question.optional and not answer
            if not none and (wrong := setup.wrong_setting(question.key, answer)):
                raise Refused(wrong)
            try:
                replace(before, **{question.key: answer})
            except ValueError as error:
                raise Refused(reworded(error, dialogue.language)) from error
            return answer

        flag = flag_of(question.key)
        now = str(getattr(before, question.key))
        if question.optional and not now and not dialogue.asks and not dialogue.has(flag):
            continue
        text = _put(dialogue, question) if question.optional and not now else question.text
        draft.settings[question] = dialogue.text(flag, text, check, now)


def _decided(dialogue: Dialogue, question: Question, is_on: bool) -> bool:
    """What may be on or off; a script that says neither leaves it as it is."""
    flag = flag_of(question.key)
    if (said := dialogue.answer(flag)) in _SWITCHED:
        return _SWITCHED[said]
    if said:
        dialogue.forget(flag)
        values = commas(dialogue.language, *_SWITCHED)
        dialogue.trouble(dialogue.phrase("setup_can_be", flag=flag, answer=said, values=values))
    text = reworded(question.text, dialogue.language)
    return dialogue.confirm(flag, text, default=is_on) if dialogue.asks else is_on


def _put(dialogue: Dialogue, question: Question) -> str:
    """A question that may be left without an answer."""
    if dialogue.at_terminal:
        return dialogue.phrase("setup_enter_none", question=question.text)
    return dialogue.phrase("setup_optional", what=question.text)


def flag_of(key: str) -> str:
    """The flag that answers the question after a setting."""
    return f"{_SET}{key}="
