# SPDX-License-Identifier: Apache-2.0
"""What a platform asks that is on or off: yes or no for a person, `true` or `false` for a script."""

from __future__ import annotations

import io
from collections.abc import Mapping

import pytest
from goodbot.api.setup import Question
from goodbot.base.errors import UsageError
from goodbot.cli.setup import asked
from goodbot.cli.setup.dialogue import Dialogue, PutQuestion

LOUD = Question(key="loud", text="Shall it be loud?", optional=True)
FLAG = "--set loud="


class Typing(Dialogue):
    """A person who types one thing."""

    def __init__(self, types: str, given: Mapping[str, str] | None = None) -> None:
        super().__init__(given or {}, asks=True, out=io.StringIO())
        self.types, self.put_to = types, list[PutQuestion]()

    def put(self, asked: PutQuestion) -> str:
        self.put_to.append(asked)
        return self.types or asked.default


@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize(("given", "on"), [({}, None), ({FLAG: "true"}, True), ({FLAG: "false"}, False)])
def test_a_script_changes_only_what_it_names(given: Mapping[str, str], on: bool | None, is_on: bool) -> None:
    dialogue = Dialogue(given, asks=False, out=io.StringIO())
    assert asked._decided(dialogue, LOUD, is_on) is (is_on if on is None else on)


def test_what_is_neither_is_refused() -> None:
    with pytest.raises(UsageError, match="true, false"):
        asked._decided(Dialogue({FLAG: "loud"}, asks=False, out=io.StringIO()), LOUD, False)
    person = Typing("y", {FLAG: "loud"})
    assert asked._decided(person, LOUD, False)
    assert [one.text for one in person.put_to] == ["Shall it be loud?"], "a person is asked"


@pytest.mark.parametrize(
    ("types", "is_on", "on"), [("", True, True), ("", False, False), ("yes", False, True), ("n", True, False)]
)
def test_a_person_answers_yes_or_no_or_leaves_it(types: str, is_on: bool, on: bool) -> None:
    person = Typing(types)
    assert asked._decided(person, LOUD, is_on) is on
    assert person.put_to[0].kind == "confirm"
