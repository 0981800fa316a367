# SPDX-License-Identifier: Apache-2.0
"""Exported answers without who said it: people and places get numbers, keys and tokens become `***`.

What people wrote about themselves stays: nobody can tell a name in a sentence from any other word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from goodbot.api.events import Message
from goodbot.api.export import ExportedAnswer, ExportedPair
from goodbot.base.redact import redact
from goodbot.store.exporting import Identities

_PLACE = ("place", "thread")
_LEAST = 5
"""Characters of an id that is looked for in what was said: a shorter one may be any word or number."""
_MENTION = re.compile(r"<[@#&!]{1,3}[^<>\s]{1,100}>")
"""As platforms write it: also of somebody who has never been here."""
_TOKEN = re.compile(r"[\w:.@/+=-]+")
_WORD = re.compile(r"\w+")
_EDGES = ".:@/+=-"


class Masker:
    """Gives each person, with all their accounts, the same number throughout one export, and each place one.

    It knows everybody beforehand, in the order in which they first came: who is named before they say
    something themselves is masked there, too.
    """

    def __init__(self, known: Identities) -> None:
        self._people: dict[str, str] = {}
        self._places: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        identities: dict[str, str] = {}
        for who, identity in known.people:
            number = identities.setdefault(identity, f"person-{len(identities) + 1}")
            self._people[who] = number
            self._learn(who.partition(":")[2], number)
            self._learn(who, number)
        for name, id_ in known.places:
            self._learn(id_, self._place(name, id_))

    def _learn(self, id_: str, number: str) -> None:
        if len(id_) >= _LEAST:
            self._ids.setdefault(id_, number)

    def mask(self, answer: ExportedAnswer) -> ExportedAnswer:
        """The answer, its record and its pairs."""
        record = dict(answer.record)
        record["talker"] = self._person(f"{record['connector']}:{record['talker']}")
        for name in _PLACE:
            record[name] = self._place(name, record[name])
        record["ratings"] = {self._person(who): said for who, said in record["ratings"].items()}
        record["context"] = [[turn, self._person(who)] for turn, who in record["context"]]
        record["remarks"] = [
            {**one, "rater": self._person(one["rater"]), "text": self._text(one["text"])}
            for one in record["remarks"]
        ]
        record["choices"] = [self._choice(one) for one in record["choices"]]
        record["messages"] = self._messages(record["messages"])
        texts = {name: self._text(record[name]) for name in ("answer", "thought")}
        if texts != {name: record[name] for name in texts} or record["messages"] != answer.record["messages"]:
            record |= {"prompt_tokens": [], "tokens": [], "logprobs": [], "lifts": []}  # they spell it
        return replace(answer, record=record | texts, pairs=[self._pair(pair) for pair in answer.pairs])

    def _choice(self, choice: Mapping[str, Any]) -> dict[str, Any]:
        answers: list[dict[str, Any]] = []
        for one in choice["answers"]:
            text = self._text(one["text"])
            told: dict[str, Any] = {} if text == one["text"] else {"tokens": [], "logprobs": [], "lifts": []}
            answers.append({**one, **told, "text": text})
        return {**choice, "answers": answers, "by": self._person(choice["by"]), "prompt_tokens": []}

    def _pair(self, pair: ExportedPair) -> ExportedPair:
        return replace(
            pair,
            messages=self._messages(pair.messages),
            preferred=self._text(pair.preferred),
            other=self._text(pair.other),
        )

    def _messages(self, messages: Sequence[Message]) -> list[Message]:
        return [cast("Message", _each(self._text, message)) for message in messages]

    def _person(self, who: str) -> str:
        return self._people.setdefault(who, f"person-{len(set(self._people.values())) + 1}")

    def _place(self, name: str, id_: str) -> str:
        return id_ and self._places.setdefault(f"{name}:{id_}", f"{name}-{len(self._places) + 1}")

    def _text(self, text: str) -> str:
        """One pass, by whole words: an id is no part of another word, and no number is masked again."""
        return _MENTION.sub(self._mention, _TOKEN.sub(self._token, redact(text)))

    def _token(self, found: re.Match[str]) -> str:
        token = found[0]
        if (number := self._ids.get(token)) is not None:
            return number
        core = token.strip(_EDGES)
        if (number := self._ids.get(core)) is not None:
            return token.replace(core, number)
        return _WORD.sub(lambda word: self._ids.get(word[0], word[0]), token)

    def _mention(self, found: re.Match[str]) -> str:
        """It stays where it is a number already."""
        numbers = {*self._people.values(), *self._places.values()}
        return found[0] if found[0].strip("<>@#&!") in numbers else "<somebody>"


def _each(do: Callable[[str], str], value: Any) -> Any:
    """The value with this done to every text in it."""
    if isinstance(value, str):
        return do(value)
    if isinstance(value, dict):
        return {key: _each(do, one) for key, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_each(do, one) for one in cast("list[Any]", value)]
    return value
