# SPDX-License-Identifier: Apache-2.0
"""`compare v6 v7 PROMPT`: what two versions say to the same words."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from goodbot.api.sentences import clause_of
from goodbot.api.sentences import version as version_name
from goodbot.api.server import BASE, GenerateRequest
from goodbot.api.texts import say
from goodbot.base.errors import AdapterError, ServerError, UsageError
from goodbot.base.sampling import Sampling
from goodbot.base.worded import said_by
from goodbot.config import ServingConfig
from goodbot.inference import prompts
from goodbot.inference.prompts import Room, TooLongError
from goodbot.learning.adapters.registry import AdapterRegistry
from goodbot.learning.evaluation.idle import SpareTime

_SECONDS = 100.0
"""Less than a command's caller waits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionAnswer:
    """One version's answer."""

    version: int
    text: str


class SideBySide:
    """Asks two versions the same at the same seed; nobody else is delayed or disturbed by it."""

    def __init__(
        self,
        *,
        registry: AdapterRegistry,
        spare: SpareTime,
        config: ServingConfig,
        sampling: Sampling,
        room: Room,
    ) -> None:
        self._registry = registry
        self._spare = spare
        self._config = config
        self._sampling = sampling
        self._room = room

    async def ask(
        self, versions: tuple[int, int], words: str, language: str = ""
    ) -> tuple[VersionAnswer, VersionAnswer]:
        """Raises UsageError, AdapterError, ServerError with a sentence."""
        first, second = versions
        if first == second:
            raise UsageError(say("wrong_compare_same", language), english=say("wrong_compare_same"))
        for version in versions:
            if version != BASE and (why := (await self._registry.row(version)).tainted):
                told = clause_of(why, language)
                raise AdapterError(say("wrong_withdrawn", language, version=version, why=told))
        try:
            prompt = prompts.compose(self._config.system_prompt, [], words, self._room)
        except TooLongError as error:
            raise UsageError(said_by(error)) from error
        try:
            async with asyncio.timeout(_SECONDS), self._registry.beside(*versions):
                return await self._say(first, prompt), await self._say(second, prompt)
        except TimeoutError:
            raise ServerError(say("compare_busy", language)) from None

    async def _say(self, version: int, prompt: prompts.Prompt) -> VersionAnswer:
        config = self._config
        request = GenerateRequest(
            messages=list(prompt.messages),
            max_tokens=config.max_tokens,
            temperature=self._sampling.temperature,
            filters=self._sampling.filters,
            seed=config.seed,
            version=version,
        )
        return VersionAnswer(version=version, text=(await self._spare.answer(request)).text)


def shown(answers: tuple[VersionAnswer, VersionAnswer], language: str = "") -> str:
    """Both answers under their names."""
    empty = say("no_answer", language)
    return "\n\n".join(
        f"{version_name(one.version, language)}:\n{one.text.strip() or empty}" for one in answers
    )
