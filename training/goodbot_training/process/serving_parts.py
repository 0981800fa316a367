# SPDX-License-Identifier: Apache-2.0
"""What `serve` works with."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from goodbot.api.sampler import Sampled, ThinksAloud


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


def failure(reason: str, kind: str = "error") -> dict[str, Any]:
    """The event of a request that failed."""
    return {"event": "error", "kind": kind, "reason": reason}
