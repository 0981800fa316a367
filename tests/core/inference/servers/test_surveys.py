# SPDX-License-Identifier: Apache-2.0
"""How goodbot finds servers keeps the contract that plugins are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from goodbot.api.survey import Survey
from goodbot.inference.surveys.llamacpp import LlamaCppSurvey
from goodbot.inference.surveys.lm_studio import LmStudioSurvey
from goodbot.inference.surveys.ollama import OllamaSurvey
from goodbot.inference.surveys.openai import MlxSurvey, OpenAISurvey
from goodbot.inference.surveys.sglang import SglangSurvey
from goodbot.inference.surveys.vllm import VllmSurvey
from goodbot.testing import SurveyContract


def models(owner: str = "", **more: Any) -> dict[str, Any]:
    """An answer to `/v1/models`."""
    return {"/v1/models": {"data": [{"id": "tiny", **({"owned_by": owner} if owner else {}), **more}]}}


class Own(SurveyContract):
    kind: ClassVar[type[Survey]]
    told: ClassVar[Mapping[str, Any]]

    @pytest.fixture
    def survey(self) -> Survey:
        return self.kind()

    @pytest.fixture
    def answers(self) -> Mapping[str, Any]:
        return self.told


class TestVllm(Own):
    kind, told = VllmSurvey, models("vllm", root="org/tiny") | {"/version": {"version": "0.11.0"}}


class TestSglang(Own):
    kind, told = SglangSurvey, models("sglang") | {"/server_info": {"version": "0.5", "enable_lora": True}}


class TestLlamaCpp(Own):
    kind, told = (
        LlamaCppSurvey,
        models("llamacpp") | {"/props": {"build_info": "b1", "model_path": "/m.gguf"}},
    )


class TestOllama(Own):
    kind = OllamaSurvey
    told: ClassVar = {
        "/api/version": {"version": "0.34.1"},
        "/api/tags": {"models": [{"name": "tiny:1b", "details": {"parent_model": ""}}]},
        "/api/show": {"model_info": {"general.basename": "tiny"}},
    }


class TestLmStudio(Own):
    kind = LmStudioSurvey
    told: ClassVar = {"/api/v0/models": {"data": [{"id": "tiny", "type": "llm", "state": "loaded"}]}}


class TestMlx(Own):
    kind, told = MlxSurvey, models()


class TestOpenAI(Own):
    kind, told = OpenAISurvey, models("somebody")
