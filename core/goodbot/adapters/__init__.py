"""Adapter versions: immutable directories, a manifest with hashes, and one active pointer."""

from goodbot.adapters.manifest import Manifest, publish, verify
from goodbot.adapters.registry import AdapterRegistry

__all__ = ["AdapterRegistry", "Manifest", "publish", "verify"]
