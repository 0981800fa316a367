# SPDX-License-Identifier: Apache-2.0
"""The contract between the core and what samples a model; `backend` has that of what trains it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from goodbot.api.events import Message
from goodbot.base.sampling import UNFILTERED, Filters, unlifted


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizedTurn:
    """One tokenized rollout."""

    prompt: tuple[int, ...]
    response: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleRequest:
    """What to sample. `seed` makes the answer repeatable on one machine.

    Temperature 0 takes the likeliest token each time; its log-probs are those at temperature 1.
    """

    messages: Sequence[Message]
    max_tokens: int = 256
    temperature: float = 0.8
    seed: int = 0
    thinking: bool | None = False
    """Whether it thinks first, where the template lets one choose; None: it does not at all."""
    filters: Filters = UNFILTERED
    """What is done to the distribution beside the temperature."""
    conversation: str = ""
    """What it belongs to, opaque: what is kept of an answer serves the next one of the same conversation
    only. Empty: nothing is kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampled:
    """One sampled answer, as token ids; the end token is part of `tokens` when it was sampled.

    `logprobs` are the sampler's own, fp32, one a token: of the distribution that it was drawn from, at its
    temperature, filtered. By `lifts` the filters made a token likelier (nats); empty where nothing was
    filtered.
    """

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    """Of the answer, without the thought."""
    finish: str
    """`stop`, `length` or `cancelled`."""
    thought: str = ""
    thought_tokens: int = 0
    """So many of the first `tokens` are the thought's."""
    lifts: tuple[float, ...] = ()

    @property
    def own_logprobs(self) -> tuple[float, ...]:
        """The policy's own at the temperature, before anything was filtered: what training compares."""
        return unlifted(self.logprobs, self.lifts)

    @property
    def answer_at(self) -> int:
        """The first of `tokens` that is judged: the answer's, or the last where there is no answer."""
        return min(self.thought_tokens, max(0, len(self.tokens) - 1))

    @property
    def turn(self) -> TokenizedTurn:
        """The answer after all that it was written after."""
        begun, said = self.tokens[: self.answer_at], self.tokens[self.answer_at :]
        return TokenizedTurn(prompt=self.prompt + begun, response=said)


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenAnswer:
    """An answer that was given, as it is to be looked at."""

    messages: Sequence[Message]
    response: str
    thought: str = ""
    tokens: TokenizedTurn | None = None
    """As it was written; None: nobody knows, and it is tokenized anew."""


class Sampler(Protocol):
    """A loaded model that answers; adapters are swapped in place, the base stays loaded."""

    def load_adapter(self, version: int, directory: Path) -> None:
        """Read an adapter (PEFT layout) and keep it ready as `version`. Raises AdapterError.

        In the place of what was loaded under that number.
        """
        ...

    def activate(self, version: int) -> None:
        """Answer with `version` from the next request on; 0 is the base model.

        Raises AdapterError for a version that is not loaded. It puts the version in the place of
        the adapter that the backend holds.
        """
        ...

    def unload_adapter(self, version: int) -> None:
        """Forget `version`; unknown ones are ignored.

        AdapterError for the active one, and for one that an answer is being written by.
        """
        ...

    def sample(self, request: SampleRequest, on_text: Callable[[str], bool] | None = None) -> Sampled:
        """Sample one answer.

        `on_text(new text)` is called once a token (the text may be empty, and never ends inside a
        character); returning False cancels the answer. The pieces add up to `Sampled.text`.
        """
        ...

    def sample_many(self, requests: Sequence[SampleRequest]) -> list[Sampled]:
        """One answer a request, in order; each as if it were sampled alone, up to rounding."""
        ...

    def start(
        self,
        key: Hashable,
        request: SampleRequest,
        version: int,
        on_text: Callable[[str], bool] | None = None,
    ) -> None:
        """Begin an answer by a loaded version, beside those that are being written.

        `step` writes it, as `sample` would; `activate` and `load_adapter` do not disturb it.

        Args:
            key: Names the answer in what `step` returns.
            request: What to answer, and how.
            version: The version that writes it; 0 is the base model.
            on_text: As in `sample`. It may ask for `ThinksAloud.thoughts`, while `step` runs.

        Raises:
            AdapterError: The version is not loaded.
            ServerError: The prompt is longer than the model's context.
        """
        ...

    def step(self) -> Sequence[tuple[Hashable, Sampled | Exception]]:
        """Write a token on every answer that has begun; those that have ended, by their keys.

        An exception is why one could not be written; the others go on.
        """
        ...

    def cancel(self, key: Hashable) -> None:
        """End an answer that has begun at the next `step`, with `finish` `cancelled`."""
        ...

    def writes(self, version: int | None = None) -> bool:
        """Whether an answer by this version (by any) has begun and was not given back by `step`."""
        ...

    def first_tokens(self, messages: Sequence[Message], *, version: int, top: int) -> dict[str, float]:
        """Say how an answer of a loaded version may begin, as `TrainingBackend.first_tokens`.

        Args:
            messages: The prompt, oldest message first.
            version: The version; 0 is the base model.
            top: How many first tokens to tell.

        Returns:
            The log-probability of each, at temperature 1 in nats, by its text.

        Raises:
            AdapterError: The version is not loaded.
        """
        ...


@runtime_checkable
class ThinksAloud(Protocol):
    """A sampler that tells what its model thinks while it does."""

    def thoughts(self) -> Sequence[tuple[Hashable, str]]:
        """Tell what was thought since this was asked last, by the keys of the answers.

        It is asked after each `step`, and within one: by the `on_text` of an answer that begins to say
        something, in the same thread, and so while `step` works on its own state. It must be safe then, and
        must not call `step`.
        """
        ...


@runtime_checkable
class ScoresAnswers(Protocol):
    """A sampler that can say how likely an answer is."""

    def score(self, given: GivenAnswer, *, version: int) -> list[tuple[str, float]]:
        """Say how likely a loaded version finds each token of an answer that was given.

        Args:
            given: The answer.
            version: The version; 0 is the base model.

        Returns:
            The text of each token and its log-probability, at temperature 1 in nats. The texts add up to the
            answer; tokens that make one character together are one.

        Raises:
            AdapterError: The version is not loaded.
            ServerError: It is too long to look at.
        """
        ...
