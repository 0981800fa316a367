# SPDX-License-Identifier: Apache-2.0
"""The drivers that ship with goodbot, for the plugin host."""

from __future__ import annotations

from dataclasses import dataclass

from goodbot.api.hookspecs import hookimpl
from goodbot.api.server import AdapterFormat, ServerSpec
from goodbot.inference.servers.ollama_tags import OllamaSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class NoSettings:
    """A driver that has nothing to set."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VllmSettings:
    """`[serving.settings]` of vLLM."""

    sleep: bool = False
    """Send it to sleep while a training needs the memory. Whoever else asks it has to wait, too; it is
    started with VLLM_SERVER_DEV_MODE=1 and --enable-sleep-mode."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LlamaCppSettings:
    """`[serving.settings]` of llama.cpp."""

    model: str = ""
    """The base model as a GGUF file."""
    binary: str = "llama-server"
    """The program, by its name or its path."""
    context: int = 0
    """Tokens of one conversation; 0: what the model can, at most 8192."""
    parallel: int = 4
    """Answers at the same time."""
    gpu_layers: int = -1
    """Layers on the GPU; -1: as llama.cpp decides."""
    threads: int = 0
    """0: as llama.cpp decides."""


SPECS = (
    ServerSpec(
        name="embedded",
        factory="goodbot.inference.servers.embedded:EmbeddedServer",
        settings=NoSettings,
        adapters=AdapterFormat.PEFT,
    ),
    ServerSpec(
        name="vllm",
        factory="goodbot.inference.servers.vllm:VllmServer",
        settings=VllmSettings,
        adapters=AdapterFormat.PEFT,
        url="http://127.0.0.1:8000",
        survey="goodbot.inference.surveys.vllm:VllmSurvey",
    ),
    ServerSpec(
        name="sglang",
        factory="goodbot.inference.servers.sglang:SglangServer",
        settings=NoSettings,
        adapters=AdapterFormat.PEFT,
        url="http://127.0.0.1:30000",
        survey="goodbot.inference.surveys.sglang:SglangSurvey",
    ),
    ServerSpec(
        name="ollama",
        factory="goodbot.inference.servers.ollama:OllamaServer",
        settings=OllamaSettings,
        adapters=AdapterFormat.GGUF,
        requires=("gguf",),
        extra="gguf",
        url="http://127.0.0.1:11434",
        survey="goodbot.inference.surveys.ollama:OllamaSurvey",
    ),
    ServerSpec(
        name="llamacpp",
        factory="goodbot.inference.servers.llamacpp:LlamaCppServer",
        settings=LlamaCppSettings,
        adapters=AdapterFormat.GGUF,
        requires=("gguf",),
        extra="gguf",
        survey="goodbot.inference.surveys.llamacpp:LlamaCppSurvey",
    ),
    ServerSpec(
        name="mlx",
        factory="goodbot.inference.servers.mlx_server:MlxServer",
        settings=NoSettings,
        adapters=AdapterFormat.MLX,
        url="http://127.0.0.1:8080",
        survey="goodbot.inference.surveys.openai:MlxSurvey",
    ),
    ServerSpec(
        name="openai",
        factory="goodbot.inference.servers.openai:OpenAIServer",
        settings=NoSettings,
        adapters=AdapterFormat.NONE,
        url="http://127.0.0.1:8080",
        survey="goodbot.inference.surveys.openai:OpenAISurvey",
    ),
)
WITHOUT_DRIVER = {"lmstudio": "goodbot.inference.surveys.lm_studio:LmStudioSurvey"}
"""Servers that are found on this machine although none of them can answer while goodbot learns."""


@hookimpl
def register_server() -> tuple[ServerSpec, ...]:
    return SPECS
