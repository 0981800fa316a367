# SPDX-License-Identifier: Apache-2.0
"""A loopback Ollama, written after its OpenAPI description and its sources (0.30 to 0.34).

`FakeOllama` answers as `ollama serve` does, streams newline-delimited JSON, holds one runner a model file
and lets it go, and draws each answer from a distribution that depends on the adapter. Its faults can be
switched on.
"""

from __future__ import annotations

from goodbot_fakes.ollama.server import FakeOllama, Faults

__all__ = ["FakeOllama", "Faults"]
