"""What `serve` works with."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, runtime_checkable


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
