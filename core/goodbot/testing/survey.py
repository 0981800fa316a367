# SPDX-License-Identifier: Apache-2.0
"""What every survey of a model server must do. Subclass `SurveyContract` and give it two fixtures.

::

    from goodbot.testing import SurveyContract

    class TestMine(SurveyContract):
        @pytest.fixture
        def survey(self):
            return MineSurvey()

        @pytest.fixture
        def answers(self):
            return {"/v1/models": {"data": [{"id": "tiny", "owned_by": "mine"}]}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from goodbot.api.setup import Check
from goodbot.api.survey import MODELS, Ask, FoundServer, Survey

ALONE = 5
"""The highest priority of a survey that knows its server by OpenAI's API alone."""
LONGEST, MOST = 200, 200
"""Characters of a name, and models."""
HOSTILE = "x$(reboot)`id`;\n\x1b[2J" + "y" * 1000
ODD: tuple[Any, ...] = (
    None,
    0,
    [],
    "text",
    {"data": None},
    [{"id": HOSTILE, "name": HOSTILE, "root": HOSTILE}, 7, None] * 300,
)
"""Whatever listens on a port may answer so."""
_URL = "http://127.0.0.1:9999"
_LINE = '[serving] server = "mine"'


class SurveyContract:
    """Its own server is known, others are not, and no answer does harm."""

    @pytest.fixture
    def survey(self) -> Survey:
        """What `ServerSpec.survey` names, made."""
        raise NotImplementedError("override the fixture `survey`")

    @pytest.fixture
    def answers(self) -> Mapping[str, Any]:
        """What a server of the kind answers to each of `questions`, and to what else is asked."""
        raise NotImplementedError("override the fixture `answers`")

    @pytest.fixture
    def found(self, survey: Survey, answers: Mapping[str, Any]) -> FoundServer:
        """The server, as it was recognized."""
        found = survey.recognize(_URL, _said(survey, answers))
        assert found is not None, "it does not know its own server"
        return found

    def test_what_it_asks_is_harmless(self, survey: Survey) -> None:
        assert survey.questions
        for path in survey.questions:
            assert path.startswith("/")
            assert path.isprintable()
            assert " " not in path

    def test_it_knows_its_own_server(self, survey: Survey, found: FoundServer) -> None:
        assert (found.survey, found.url) == (survey, _URL)
        assert found.kind
        assert found.title
        assert found.models
        assert all(model.name for model in found.models)

    def test_it_knows_nothing_of_a_server_that_answers_nothing(self, survey: Survey) -> None:
        assert survey.recognize(_URL, _said(survey, {})) is None

    def test_it_leaves_the_servers_of_others_to_them(self, survey: Survey) -> None:
        other = {MODELS: {"data": [{"id": "m", "owned_by": "somebody-else"}]}}
        if survey.recognize(_URL, _said(survey, other)):
            assert survey.priority <= ALONE, "it would take a server of another kind for its own"

    @pytest.mark.parametrize("odd", ODD)
    async def test_odd_answers_do_no_harm(
        self, survey: Survey, answers: Mapping[str, Any], odd: object
    ) -> None:
        for key in ("data", "models", "version", "model_path"):
            said = {path: {**said, key: odd} for path, said in _said(survey, answers).items()}
            found = survey.recognize(_URL, said)
            if found is None:
                continue
            assert len(found.models) <= MOST
            for model in found.models:
                told = (model.name, model.root, model.parent)
                assert all(isinstance(one, str) and len(one) <= LONGEST for one in told)
            assert isinstance(survey.adapts(found), bool)
            _proper(await survey.examine(_answering({key: odd}), found, _LINE, 8), found)

    async def test_doctor_gets_one_line_of_it(
        self, survey: Survey, found: FoundServer, answers: Mapping[str, Any]
    ) -> None:
        for ask in (_asked(answers), _answering({}), _silent):
            _proper(await survey.examine(ask, found, _LINE, 8), found)
        assert survey.adapts(found) or survey.otherwise(found)

    async def test_the_origin_of_a_model_is_a_list_of_names(
        self, survey: Survey, found: FoundServer, answers: Mapping[str, Any]
    ) -> None:
        for ask in (_asked(answers), _answering({}), _silent):
            names = await survey.origin(ask, found, found.models[0].name)
            assert isinstance(names, list)
            assert all(isinstance(name, str) and name for name in names)


def _said(survey: Survey, answers: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {path: dict(answers.get(path, {})) for path in survey.questions}


def _proper(check: Check, found: FoundServer) -> None:
    assert isinstance(check, Check)
    assert check.part == found.part
    assert check.text
    assert "\n" not in check.text
    assert HOSTILE[:12] not in check.fix, "a name of the server's stands in what a person is told to type"


def _answering(answer: Mapping[str, Any]) -> Ask:
    async def ask(path: str, body: object = None) -> tuple[int, dict[str, Any]]:
        return 200, dict(answer)

    return ask


def _asked(answers: Mapping[str, Any]) -> Ask:
    async def ask(path: str, body: object = None) -> tuple[int, dict[str, Any]]:
        return (200, dict(answers[path])) if path in answers else (404, {})

    return ask


async def _silent(path: str, body: object = None) -> tuple[int, dict[str, Any]]:
    return 0, {}
