# SPDX-License-Identifier: Apache-2.0
"""What lies on Ollama's disk: blobs by their digest, and models, each a manifest that names some."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from goodbot_fakes.ollama import gguf
from goodbot_fakes.policy import Policy

LAYER = "application/vnd.ollama.image."


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelManifest:
    """One model: its layers, as `(kind, digest)`, and its config."""

    layers: tuple[tuple[str, str], ...]
    config: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """Of the whole; what `/api/tags` calls the model's digest (without `sha256:`)."""
        return digest([self.layers, dict(self.config)])

    def of(self, kind: str) -> tuple[str, ...]:
        """Digests of the layers of a kind: `model`, `adapter`, `template`."""
        return tuple(found for layer, found in self.layers if layer == LAYER + kind)

    @property
    def policy(self) -> Policy:
        return Policy(self.of("model")[0], self.of("adapter"))


@dataclass(kw_only=True, slots=True)
class BlobStore:
    """The models directory."""

    blobs: dict[str, bytes] = field(default_factory=dict[str, bytes])
    models: dict[str, ModelManifest] = field(default_factory=dict[str, ModelManifest])

    def base(
        self,
        name: str,
        *,
        weights: str = "",
        form: str = "gguf",
        family: str = "llama",
        template: str = "{{ .Prompt }}",
        **config: Any,
    ) -> ModelManifest:
        """A model as `ollama pull` leaves it. Other `weights`: the same name, pulled anew."""
        model = self.put(
            gguf.written(general_architecture=family, general_name=weights or name)
            if form == "gguf"
            else f"safetensors {weights or name}".encode()
        )
        layers = ((LAYER + "model", model), (LAYER + "template", self.put(template.encode())))
        config = {
            **config,
            "model_format": form,
            "model_family": family,
            "model_type": "596.05M",
            "file_type": "Q4_K_M" if form == "gguf" else "int4",
        }
        self.models[whole(name)] = made = ModelManifest(layers=layers, config=config)
        return made

    def put(self, blob: bytes) -> str:
        key = f"sha256:{hashlib.sha256(blob).hexdigest()}"
        self.blobs[key] = blob
        return key

    def prune(self) -> None:
        """Blobs that no model names go, as when Ollama starts."""
        named = {found for model in self.models.values() for _, found in model.layers}
        self.blobs = {key: blob for key, blob in self.blobs.items() if key in named}


def whole(name: str) -> str:
    """A model's name with its tag."""
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
