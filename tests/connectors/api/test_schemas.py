# SPDX-License-Identifier: Apache-2.0
"""What we check by hand is what the published schemas say: held against a validator of somebody else's."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from goodbot_connectors.api import schemas, table
from goodbot_connectors.api.check import checker
from goodbot_connectors.kit.bridge.body import HttpError
from hypothesis import given, settings
from hypothesis import strategies as st

SCALARS: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    1.0,
    0.5,
    -2,
    2**31,
    2**31 - 1,
    "",
    " ",
    "good",
    "rate",
    "outcome",
    "main",
    "side",
    "x" * 65,
]
KEYS = sorted(
    {
        *schemas.MAIN["properties"],
        *schemas.RATE["properties"],
        *schemas.OUTCOME["properties"],
        *schemas.COMMAND["properties"],
        "role",
        "content",
        "id",
        "logprob",
        "more",
    }
)
VALUES = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=8,
)
GOOD: dict[str, dict[str, Any]] = {
    "turn": {
        "messages": [{"role": "user", "content": "?"}],
        "response": "!",
        "tokens": [{"id": 1, "logprob": 0}],
    },
    "side": {"messages": [{"role": "user"}], "response": "", "kind": "side"},
    "feedback": {"turn": "t", "score": 1, "comment": "c", "kind": "rate"},
    "outcome": {"turn": "t", "score": "good", "kind": "outcome"},
    "command": {"name": "status", "args": ""},
}
PARTS = {
    "turn": schemas.MAIN,
    "side": schemas.SIDE,
    "feedback": schemas.RATE,
    "outcome": schemas.OUTCOME,
    "command": schemas.COMMAND,
}
SCHEMAS = {
    "turn": schemas.TURN,
    "side": schemas.TURN,
    "outcome": schemas.FEEDBACK,
    "feedback": schemas.FEEDBACK,
    "command": schemas.COMMAND,
}


def refuses(value: Any, schema: Any) -> str:
    try:
        checker(schema)(value)
    except HttpError as error:
        return f"{error.status} {error}"
    return ""


@pytest.mark.parametrize("name", SCHEMAS)
@settings(max_examples=80, derandomize=True)
@given(data=st.data())
def test_both_say_the_same(name: str, data: st.DataObject) -> None:
    schema = SCHEMAS[name]
    value = {**GOOD[name]}
    for key in data.draw(st.lists(st.sampled_from([*PARTS[name]["properties"], "more"]), max_size=3)):
        if data.draw(st.booleans()):
            value[key] = data.draw(VALUES)
        else:
            value.pop(key, None)
    fits = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert (refuses(value, schema) == "") is fits, value


@pytest.mark.parametrize("schema", [*SCHEMAS.values()])
def test_they_are_schemas(schema: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)


def test_every_route_of_the_table_is_published_with_all_that_it_may_answer() -> None:
    published = table.document("http://127.0.0.1:8321", "1")
    told = {(m.upper(), p) for p, methods in published["paths"].items() for m in methods}
    assert told == {(route.method, route.path) for route in table.ROUTES}
    for route in table.ROUTES:
        statuses = published["paths"][route.path][route.method.lower()]["responses"]
        assert {"401", "403", "429", "503", str(route.status)} <= set(statuses)


def test_a_wrong_part_is_named() -> None:
    value = {"messages": [{"role": "user"}, {"content": "x"}], "response": ""}
    assert refuses(value, schemas.TURN) == "422 `messages[1]` needs `role`."
    value = {"messages": [{"role": "user"}], "response": "", "tokens": [{"id": 1}]}
    assert refuses(value, schemas.TURN) == "422 `tokens[0]` needs `logprob`."
