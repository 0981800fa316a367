# SPDX-License-Identifier: Apache-2.0
"""Exported answers without who said it: people and places get numbers, keys and tokens become `***`.

What people wrote about themselves stays: nobody can tell a name in a sentence from any other word.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from goodbot.api.events import Message
from goodbot.api.export import ExportedAnswer, ExportedPair
from goodbot.base.redact import redact
from goodbot.store.exporting import Identities

_PLACE = ("place", "thread")
_LEAST = 5
"""Characters of an id that is looked for in what was said: a shorter one may be any word or number."""
_MENTION = re.compile(r"<([@#&!]{1,3})([^<>\s|]{1,100})(?:\|[^<>\n]{0,100})?>")
"""As platforms write it, with the name or without: also of somebody who has never been here."""
_NUMBER = re.compile(r"(?:person|account|place|thread)-\d+")
_WORD = re.compile(r"\w+")
_OWN = "owner"
"""The id that goodbot gives who uses its terminal: a word like any other."""
_KEPT = ("role", "type", "id", "tool_call_id")
"""What must be the same in two places of a prompt, or is the server's own word."""


class Masker:
    """Gives each person, with all their accounts, the same number throughout one export, and each place one.

    It knows everybody beforehand, in the order in which they first came: who is named before they say
    something themselves is masked there, too.
    """

    def __init__(self, known: Identities) -> None:
        self._people: dict[str, str] = {}
        self._numbered = 0
        self._places: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        self._begin: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        """By the first word of an id: where in it that stands, and the id."""
        for account, identity in known.people:
            number = self._person(identity)
            for who in (identity, account):
                self._people[who] = number
                self._learn(who, number)
                self._learn(who.partition(":")[2], number)
        for name, id_ in known.places:
            number = self._place(name, id_)
            if any(sign.isdigit() for sign in id_):  # else it is a word, as `local` is
                self._learn(id_, number)
        for ids in self._begin.values():
            ids.sort(key=lambda one: -len(one[1]))  # one may be the beginning of another

    def _learn(self, id_: str, number: str) -> None:
        word = _WORD.search(id_)
        if word and len(id_) >= _LEAST and id_ not in self._ids and id_ != _OWN:
            self._ids[id_] = number
            self._begin[word[0]].append((word.start(), id_))

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
        return [cast("Message", self._each(message)) for message in messages]

    def _person(self, who: str) -> str:
        if who not in self._people:
            self._numbered += 1
            self._people[who] = f"person-{self._numbered}"
        return self._people[who]

    def _place(self, name: str, id_: str) -> str:
        return id_ and self._places.setdefault(f"{name}:{id_}", f"{name}-{len(self._places) + 1}")

    def _text(self, text: str) -> str:
        """One pass, by whole words: an id is no part of another word, and no number is masked again."""
        text, parts, done = redact(text), list[str](), 0
        for word in _WORD.finditer(text):
            for lead, id_ in self._begin.get(word[0], ()):
                start = word.start() - lead
                end = start + len(id_)
                alone = not (_wordy(text[start - 1 : start]) or _wordy(text[end : end + 1]))
                if start >= done and alone and text.startswith(id_, start):
                    parts += [text[done:start], self._ids[id_]]
                    done = end
                    break
        return _MENTION.sub(self._mention, "".join([*parts, text[done:]]))

    def _mention(self, found: re.Match[str]) -> str:
        """It stays where it is a number already."""
        return f"<{found[1]}{found[2]}>" if _NUMBER.fullmatch(found[2]) else "<somebody>"

    def _each(self, value: Any) -> Any:
        """The value with every text in it masked, and what a tool was called with."""
        match value:
            case str():
                return self._text(value)
            case dict():
                fields = cast("dict[str, Any]", value)
                kept = (*_KEPT, "name") if "arguments" in fields else _KEPT
                return {
                    key: one if key in kept else self._called(one) if key == "arguments" else self._each(one)
                    for key, one in fields.items()
                }
            case list():
                return [self._each(one) for one in cast("list[Any]", value)]
            case _:
                return value

    def _called(self, arguments: Any) -> Any:
        """A tool's arguments, as JSON or as a mapping: numbers and keys may be ids there."""
        if not isinstance(arguments, str):
            return self._deep(arguments)
        try:
            found = json.loads(arguments)
        except (ValueError, RecursionError):
            return self._text(arguments)
        masked = self._deep(found)
        return arguments if masked == found else json.dumps(masked, ensure_ascii=False)

    def _deep(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return self._ids.get(str(value), value)
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            return {self._text(key): self._deep(one) for key, one in fields.items()}
        return [self._deep(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value


def _wordy(sign: str) -> bool:
    return sign.isalnum() or sign == "_"
