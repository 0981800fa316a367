# SPDX-License-Identifier: Apache-2.0
"""Exported answers without who said it: people and places get numbers, keys and tokens become `***`.

What people wrote about themselves stays: nobody can tell a name in a sentence from any other word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from goodbot.api.events import Message
from goodbot.api.export import ExportedAnswer, ExportedPair
from goodbot.base.redact import redact

_PLACE = ("place", "thread")
_LEAST = 5
"""Characters of an id that is looked for in what was said: a shorter one may be any word or number."""


class Masker:
    """Gives each person the same number throughout one export, in the order in which they appear."""

    def __init__(self) -> None:
        self._people: dict[str, str] = {}
        self._places: dict[str, str] = {}

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
        return self._people.setdefault(who, f"person-{len(self._people) + 1}")

    def _place(self, name: str, id_: str) -> str:
        return id_ and self._places.setdefault(f"{name}:{id_}", f"{name}-{len(self._places) + 1}")

    def _text(self, text: str) -> str:
        text = redact(text)
        for who, number in self._people.items():
            id_ = who.partition(":")[2]
            if len(id_) >= _LEAST and id_ in text:
                text = text.replace(id_, number)
        return text


def _each(do: Callable[[str], str], value: Any) -> Any:
    """The value with this done to every text in it."""
    if isinstance(value, str):
        return do(value)
    if isinstance(value, dict):
        return {key: _each(do, one) for key, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_each(do, one) for one in cast("list[Any]", value)]
    return value
