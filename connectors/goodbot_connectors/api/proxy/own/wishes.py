# SPDX-License-Identifier: Apache-2.0
"""What a program may wish of an answer of our model; all else is refused in a sentence, not left out."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Any, cast

from goodbot.api.sentences import sentence
from goodbot.base.sampling import FILTERS, checked

from goodbot_connectors.api.proxy.dialects.shapes import ChatRequest
from goodbot_connectors.kit.bridge.body import HttpError

_MOST = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_UNKNOWN = frozenset(
    {
        "typical_p",
        "top_a",
        "tfs",
        "tfs_z",
        "mirostat",
        "dynatemp_range",
        "xtc_probability",
        "dry_multiplier",
        "length_penalty",
        "early_stopping",
        "ignore_eos",
        "stop_token_ids",
        "no_repeat_ngram_size",
        "eta_cutoff",
        "epsilon_cutoff",
        "grammar",
        "json_schema",
        "prediction",
        "audio",
        "guided_decoding_backend",
        "truncation_strategy",
        "web_search_options",
    }
)
"""How an answer can be drawn elsewhere: to leave it out in silence would be another answer."""
_ALSO = {"repeat_penalty": "repetition_penalty", "num_predict": "max_tokens", "n_predict": "max_tokens"}

_ONES = ("typical_p", "tfs", "tfs_z", "length_penalty", "repeat_penalty")
"""Those that do nothing at 1."""
_HOTTEST = 100
_MESSAGES = 20_000
"""Of one request: an answer to more is not kept either."""
_STOPS, _LONGEST_STOP = 64, 1000
"""Each is looked for behind each piece of an answer."""


def check_count(body: Mapping[str, Any]) -> None:
    """Refuse what has more messages than are read. Raises HttpError (400)."""
    for name in ("messages", "input"):
        if isinstance(given := body.get(name), list):
            _check_count(cast("list[object]", given))


def _check_count(messages: Sized) -> None:
    if len(messages) > _MESSAGES:
        raise HttpError(400, f"There are more than {_MESSAGES} messages: send fewer.")


def check(body: Mapping[str, Any], asked: ChatRequest) -> None:
    """Refuse what no answer can be drawn with, and what is not done here. Raises HttpError (400)."""
    _check_count(asked.messages)  # one of a program's may be several
    last = asked.messages[-1]
    if last["role"] == "assistant" and (last["content"] or last.get("tool_calls")):
        raise HttpError(
            400,
            "The last message is the assistant's: goodbot's model begins its answers itself and goes on "
            "from none. End with a user's message.",
        )
    if len(asked.stops) > _STOPS or any(len(stop) > _LONGEST_STOP for stop in asked.stops):
        raise HttpError(400, f"An answer ends at {_STOPS} texts at most, of {_LONGEST_STOP} characters each.")
    given = {name: value for name, value in body.items() if value is not None}
    for name in _MOST:
        if not (isinstance(most := given.get(name, 1), int) and most >= 1):
            raise HttpError(400, f"{name} must be a whole number, at least 1.")
    if not (isinstance(warm := given.get("temperature", 1), int | float) and 0 <= warm <= _HOTTEST):
        raise HttpError(400, f"temperature must be a number from 0 to {_HOTTEST}.")
    for name, value in given.items():
        if value not in (False, 0, [], {}, "") and not (name in _ONES and value == 1):
            _check_name(name)
        if name in FILTERS:
            _check_filter(name, value)


def _check_name(name: str) -> None:
    if name in _ALSO:
        raise HttpError(400, f"{name} has another name here: {_ALSO[name]}.")
    if name in _UNKNOWN:
        raise HttpError(400, f"goodbot's model is not asked with {name}: leave it out.")


def _check_filter(name: str, value: Any) -> None:
    try:
        checked(name, value)
    except ValueError as error:
        raise HttpError(400, sentence(str(error))) from None
