# SPDX-License-Identifier: Apache-2.0
"""Adapter versions: immutable directories, a manifest with hashes, and one active pointer.

`manifest` (the files), `weights` (what a foreign file may be), `base` (what it was trained on) and
`files` need no database: children that load an adapter import them, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from goodbot.api.adapters.manifest import AdapterManifest, publish, verify

if TYPE_CHECKING:
    from goodbot.learning.adapters.registry import AdapterRegistry

__all__ = ["AdapterManifest", "AdapterRegistry", "publish", "verify"]


def __getattr__(name: str) -> Any:
    if name == "AdapterRegistry":
        from goodbot.learning.adapters.registry import AdapterRegistry

        return AdapterRegistry
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
