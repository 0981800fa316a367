# SPDX-License-Identifier: Apache-2.0
"""What `serve` works with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from goodbot.api.sampler import GivenAnswer, Sampled, SampleRequest, ThinksAloud, TokenizedTurn
from goodbot.base.errors import GoodbotError
from goodbot.base.worded_parts import parts_of

from goodbot_training.job.types import as_mapping, data_error, parse_filters, parse_messages
from goodbot_training.process import autopsy


class Out(Protocol):
    """Where answers go."""

    def emit(self, *events: dict[str, Any]) -> None:
        """Write them; return when they are written."""
        ...

    def offer(self, *events: dict[str, Any]) -> None:
        """Write them, or what goes, without waiting for whoever reads; the rest goes with the next call."""
        ...


@runtime_checkable
class ReadsAhead(Protocol):
    """A sampler that can read an adapter's files while another thread has it write."""

    def read_adapter(self, directory: Path) -> object:
        """What `keep_adapter` takes. Raises AdapterError."""
        ...

    def keep_adapter(self, version: int, adapter: object) -> None:
        """Both are `load_adapter`."""
        ...


@runtime_checkable
class DropsAdapters(ReadsAhead, Protocol):
    """One that keeps as many adapters in memory as fit, and reads the others again when they are wanted."""

    def lacking_adapter(self, version: int) -> Path | None:
        """Where the files of a version lie that would have to be read first; None: nothing would."""
        ...

    def note_adapter(self, version: int, directory: Path) -> None:
        """As `load_adapter`, without reading anything yet. Raises AdapterError."""
        ...

    def unload_adapter(self, version: int) -> None:
        """See `Sampler.unload_adapter`."""
        ...


def request_in(line: bytes) -> dict[str, Any]:
    """What a line asks for; its id is None where it asks for nothing."""
    try:
        request = as_mapping(autopsy.heard(json.loads(line)), "A request")
        if not isinstance(request.get("id"), int | str):
            raise data_error("A request needs an id.")
    except (ValueError, GoodbotError):
        request = {"id": None}
    return {"op": "", **request}


def aloud(sampler: object) -> list[dict[str, Any]]:
    """The events of what was thought since this was asked last."""
    told = sampler.thoughts() if isinstance(sampler, ThinksAloud) else ()
    return [{"id": identity, "event": "thought", "text": text} for identity, text in told]


def done(answer: Sampled, version: int) -> dict[str, Any]:
    """The event with which an answer ends."""
    at = answer.thought_tokens
    return {
        "event": "done",
        "text": answer.text,
        "version": version,
        "finish": answer.finish,
        "thought": answer.thought,
        "thought_tokens": at,
        "prompt_tokens": [*answer.prompt, *answer.tokens[:at]],
        "tokens": answer.tokens[at:],
        "logprobs": answer.logprobs[at:],
        "lifts": answer.lifts[at:],
    }


def asked(request: Mapping[str, Any]) -> SampleRequest:
    """What a `generate` asks for. Raises TrainingError."""
    return SampleRequest(
        messages=parse_messages(request.get("messages"), "The request"),
        max_tokens=max(1, int(request.get("max_tokens") or 256)),
        temperature=max(0.0, float(request.get("temperature", 0.8))),
        seed=abs(int(request.get("seed") or 0)),
        thinking=bool(request.get("thinking")),
        filters=parse_filters(request.get("filters"), "The request"),
        conversation=str(request.get("conversation") or ""),
    )


def given(request: Mapping[str, Any]) -> GivenAnswer:
    """What a `score` is about. Raises TrainingError."""
    prompt, tokens = (tuple(map(int, request.get(name) or ())) for name in ("prompt_tokens", "tokens"))
    return GivenAnswer(
        messages=parse_messages(request.get("messages"), "The request"),
        response=str(request.get("response") or ""),
        thought=str(request.get("thought") or ""),
        tokens=TokenizedTurn(prompt=prompt, response=tokens) if prompt and tokens else None,
    )


def version_of(request: Mapping[str, Any]) -> int:
    """The version that a request names. Raises TrainingError."""
    version = request.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        raise data_error("version must be a whole number.")
    return version


def unknown(request: Mapping[str, Any]) -> dict[str, Any]:
    """Raise TrainingError: nobody knows what this asks for."""
    raise data_error("There is no such operation.")


def cancelled(version: int) -> dict[str, Any]:
    """The event of an answer that was not wanted any more before it began."""
    return done(Sampled(prompt=(), tokens=(), logprobs=(), text="", finish="cancelled"), version)


def failure(reason: str, kind: str = "error") -> dict[str, Any]:
    """The event of a request that failed."""
    return {"event": "error", "kind": kind, "reason": reason, **parts_of(reason)}
