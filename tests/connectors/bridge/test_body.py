# SPDX-License-Identifier: Apache-2.0
"""Bodies that may hold anything: bounds, one meaning, linear time."""

from __future__ import annotations

import json
from typing import Any

import pytest
from goodbot_connectors.kit.bridge import body
from goodbot_connectors.kit.bridge.body import HttpError, parsed

from tests.support import within


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"a": None, "b": [1, 2.5, True, "é", {"c": []}]},
        {"n": -(2**63), "m": 2**63 - 1},
        {"emoji": "👍", "zero": -0.0, "small": 5e-324},
        {str(n): n for n in range(8192)},
    ],
)
def test_what_is_fine_comes_back_as_it_was(value: dict[str, Any]) -> None:
    assert parsed(json.dumps(value).encode()) == value
    assert parsed(json.dumps(value, ensure_ascii=False).encode()) == value


def nested(depth: int) -> bytes:
    return b'{"a":' * (depth - 1) + b"{}" + b"}" * (depth - 1)


def test_how_deep_it_may_be() -> None:
    parsed(nested(128))
    parsed(b'{"a":' + b"[" * 127 + b"]" * 127 + b"}")
    for deep in (nested(129), b'{"a":' + b"[" * 128 + b"]" * 128 + b"}", nested(100_000), b"[" * 10**6):
        with within(2), pytest.raises(HttpError, match="nested more than 128 deep"):
            parsed(deep)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is no JSON"),
        (b"{", r"is no JSON \(at character 2\)"),
        (b"{}{}", "is no JSON"),
        (b"[]", "one JSON object"),
        (b'"text"', "one JSON object"),
        (b"null", "one JSON object"),
        (b'{"a": 1, "a": 2}', "names a key twice"),
        (b'{"x": [{"a": 1, "a": 1}]}', "a key twice"),
        (b'{"a": NaN}', "NaN is no JSON number"),
        (b'{"a": -Infinity}', "no JSON number"),
        (b'{"a": 1e400}', "no JSON number"),
        (b'{"a": [[-1e999]]}', "no JSON number"),
        (b'{"a": 9223372036854775808}', "more than 64 bits"),
        (b'{"a": ' + b"9" * 5000 + b"}", "no JSON"),
        (b'{"a": "\xff"}', "no UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "no UTF-8"),
        (b'\xef\xbb\xbf{"a": 1}', "no JSON"),
        (rb'{"a": "\ud800"}', "half a character"),
        (rb'{"\uDFFF": 1}', "half a character"),
        (rb'{"a": ["\ud83d", "\ude00"]}', "half a character"),
        (b"{'a': 1}", "no JSON"),
        (b'{"a": 01}', "no JSON"),
        (b'{"a": "\n"}', "no JSON"),
    ],
)
def test_what_is_refused_and_why(data: bytes, why: str) -> None:
    with pytest.raises(HttpError, match=why) as refused:
        parsed(data)
    assert (refused.value.status, refused.value.type) == (400, "invalid_request")


def test_a_whole_pair_is_a_character() -> None:
    assert parsed(rb'{"a": "\ud83d\ude00"}') == {"a": "😀"}


def test_how_many_it_may_be() -> None:
    many = {str(n): 0 for n in range(8193)}
    with pytest.raises(HttpError, match="more than 8192 keys"):
        parsed(json.dumps(many).encode())
    with pytest.raises(HttpError, match="more than 8192 keys"):
        parsed(json.dumps({str(n): 0 for n in range(10**5)}).encode())
    parsed(json.dumps({"a": [0] * (body.VALUES - 1)}).encode())
    with pytest.raises(HttpError, match="more than 250000 values"):
        parsed(json.dumps({"a": [0] * body.VALUES}).encode())


def test_a_body_as_large_as_it_may_be_is_read_in_linear_time() -> None:
    for data in (b'{"a":"' + b"\\u00e9" * 170_000 + b'"}', b'{"a":[' + b"[]," * 100_000 + b"[]]}"):
        with within(2):
            parsed(data)
