# SPDX-License-Identifier: Apache-2.0
"""A loaded model that answers: versions by number, and whoever is written to."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from goodbot.api.events import Message
from goodbot.api.sampler import GivenAnswer, Sampled, SampleRequest
from goodbot.base.errors import AdapterError, ServerError
from goodbot.base.worded import Worded

from goodbot_training.backends import row_adapters
from goodbot_training.backends.adapters import AdapterWeights, Shape, fit, read_adapter
from goodbot_training.backends.answers import By, ContinuousBatch, Ended
from goodbot_training.backends.chat import ChatTemplate
from goodbot_training.backends.decoding import Decoder, first_tokens
from goodbot_training.backends.generating import generate
from goodbot_training.backends.packing import pack
from goodbot_training.backends.residency import Residency, StoredAdapter
from goodbot_training.backends.row_adapters import RowAdapters

if TYPE_CHECKING:
    from goodbot.api.model_shape import Experts
    from goodbot.api.step import Floats

    from goodbot_training.backends.packing import Packed

SCORED = 1024
"""Tokens of a question and an answer that are looked at: whoever is written to waits for that long."""


class Model(Decoder, Protocol):
    """A loaded base model with LoRA on all its projections: what a framework must bring."""

    vocabulary: int
    experts: Experts

    @property
    def shapes(self) -> Mapping[str, Shape]:
        """Path → (out, in) of every adapted projection, (experts, out, in) of stacks of experts."""
        ...

    @property
    def enabled(self) -> bool:
        """Whether the adapter has its effect; the base speaks otherwise."""
        ...

    @enabled.setter
    def enabled(self, value: bool) -> None: ...

    def prepare(self, weights: AdapterWeights) -> Any:
        """The adapter as the framework's own arrays."""
        ...

    def assign(self, prepared: Any) -> None:
        """Put prepared weights in place; what was prepared stays as it is."""
        ...

    @property
    def row_adapters(self) -> RowAdapters:
        """For passes whose rows are of several adapters."""
        ...

    @property
    def mixes_versions(self) -> bool:
        """Whether there may be such passes; otherwise adapters are put in place one after another."""
        ...

    def batching(self, chat: ChatTemplate, by: By) -> ContinuousBatch[Any]:
        """Answers that come and go; `by` takes several versions at once where it `mixes_versions`."""
        ...

    def extract(self) -> AdapterWeights:
        """The weights in place."""
        ...

    def scores(self, packed: Packed, temperature: Sequence[float]) -> Floats:
        """fp32 log-probs of the targets, `(B, R)`, no gradient."""
        ...


class ModelSampler:
    """A sampler over a loaded model. Activating a version replaces the adapter weights in place."""

    def __init__(self, model: Model, chat: ChatTemplate) -> None:
        self._model, self._chat = model, chat
        self._versions = Residency(self._weights_in, self._in_use, self._dropped)
        self._ready: OrderedDict[int, Any] = OrderedDict()
        """As the framework's arrays, where each pass is of one version; who was used last is at the end."""
        self._active: int | None = None
        self._placed = 0
        self._batching = model.batching(chat, self._by)
        self._batching.admits = self._admits

    def load_adapter(self, version: int, directory: Path) -> None:
        """Keep an adapter ready as `version` (1 or more). Raises AdapterError."""
        self.keep_adapter(version, self.read_adapter(directory))

    def read_adapter(self, directory: Path) -> StoredAdapter:
        """The first half of `load_adapter`, for any thread: nothing changes. Raises AdapterError."""
        return StoredAdapter(directory=directory, weights=self._weights_in(directory))

    def keep_adapter(self, version: int, adapter: StoredAdapter) -> None:
        """The other half. Raises AdapterError."""
        _not_the_base(version)
        self._versions.keep(version, adapter)
        self._forget(version)

    def note_adapter(self, version: int, directory: Path) -> None:
        """As `load_adapter`, but its files are read when somebody asks for it. Raises AdapterError."""
        _not_the_base(version)
        self._versions.note(version, directory)
        self._forget(version)

    def lacking_adapter(self, version: int) -> Path | None:
        """Where the files of a version lie that is not in memory: whoever asks for it waits until they are
        read, unless they are read before and given to `keep_adapter`."""
        return self._versions.lacking(version)

    def activate(self, version: int) -> None:
        """Answer with `version`; 0 is the base. Raises AdapterError for one that is not loaded."""
        self._known(version)
        self._placed = 0  # whoever trains may have changed the weights in place
        self._place(version)
        self._active = version

    def unload_adapter(self, version: int) -> None:
        """Forget a version. Raises AdapterError for the active one."""
        if version and version == self._active:
            raise AdapterError(Worded("v{version} is active and cannot be unloaded", version=version))
        if version and self.writes(version):
            writes = "v{version} is writing an answer and cannot be unloaded"
            raise AdapterError(Worded(writes, version=version))
        self._versions.remove(version)
        self._forget(version)

    def sample(self, request: SampleRequest, on_text: Callable[[str], bool] | None = None) -> Sampled:
        """Sample one answer."""
        self._place(self._active)
        return generate(self._model, self._chat, [request], on_text)[0]

    def sample_many(self, requests: Sequence[SampleRequest]) -> list[Sampled]:
        """Sample an answer to each request."""
        self._place(self._active)
        return generate(self._model, self._chat, requests, abilities=self._batching.abilities)

    def start(
        self,
        key: Hashable,
        request: SampleRequest,
        version: int,
        on_text: Callable[[str], bool] | None = None,
    ) -> None:
        """Begin an answer; see `Sampler.start`."""
        self._known(version)
        if version:
            self._versions.weights(version)  # from here on it stays, also while the answer only waits
        self._batching.start(key, request, version, on_text)

    def step(self) -> list[Ended]:
        """Write on all answers; see `Sampler.step`."""
        return self._batching.step()

    def thoughts(self) -> list[tuple[Hashable, str]]:
        """What was thought since this was asked last."""
        return self._batching.thoughts()

    def cancel(self, key: Hashable) -> None:
        """End an answer at the next step."""
        self._batching.cancel(key)

    def writes(self, version: int | None = None) -> bool:
        """Whether an answer is under way."""
        return self._batching.writes(version)

    def first_tokens(self, messages: Sequence[Message], *, version: int, top: int) -> dict[str, float]:
        """How an answer by a version may begin; out of no cache."""
        self._known(version)
        with self._by([version]):
            return first_tokens(self._model, self._chat, messages, top)

    def score(self, given: GivenAnswer, *, version: int) -> list[tuple[str, float]]:
        """How likely a version finds an answer, token by token; see `ScoresAnswers.score`."""
        self._known(version)
        turn = given.tokens or self._chat.turn(given.messages, given.response, given.thought)
        if len(turn.prompt) + len(turn.response) > min(SCORED, self._model.context):
            long = "A question and its answer of more than {count} tokens are too long for that."
            raise ServerError(Worded(long, count=SCORED))
        with self._by([version]):
            (row,) = self._model.scores(pack([turn], vocabulary=self._model.vocabulary), [1.0])
        return self._chat.spelt(turn.response, [float(one) for one in row])

    def _known(self, version: int) -> None:
        if version and version not in self._versions:
            raise AdapterError(Worded("v{version} is not loaded", version=version))

    @contextmanager
    def _by(self, versions: Sequence[int]) -> Generator[None]:
        """Within this, the rows of a pass are written by these versions; a single one is all rows'."""
        if not self._model.mixes_versions:
            self._place(versions[0])
            yield
            return
        weights = {version: self._versions.weights(version) for version in {*versions} - {0}}
        with self._model.row_adapters.rows([weights.get(version) for version in versions]):
            yield

    def _admits(self, versions: Collection[int]) -> bool:
        """Whether answers by all of these can be written at the same time."""
        if not self._model.mixes_versions:
            return True
        return self._model.row_adapters.holds([self._versions.weights(one) for one in versions if one])

    def _place(self, version: int | None) -> None:
        """Put a version's weights into the model, unless they are there; None: leave it as it is."""
        if version is None:
            return
        if version and version != self._placed:
            self._model.assign(self._prepared(version))
            self._placed = version
        self._model.enabled = bool(version)

    def _prepared(self, version: int) -> Any:
        weights = self._versions.weights(version)
        if self._model.mixes_versions:
            return self._model.prepare(weights)  # seldom asked for: answers under way have slots
        if version not in self._ready:
            while (len(self._ready) + 1) * weights.nbytes > row_adapters.BYTES and len(self._ready) > 1:
                self._ready.popitem(last=False)
            self._ready[version] = self._model.prepare(weights)
        self._ready.move_to_end(version)
        return self._ready[version]

    # -- which versions are in memory

    def _weights_in(self, directory: Path) -> AdapterWeights:
        return fit(read_adapter(directory), self._model.shapes, directory)

    def _in_use(self) -> set[int]:
        return {*self._batching.versions(), self._active or 0}

    def _dropped(self, version: int, weights: AdapterWeights) -> None:
        self._model.row_adapters.forget(weights)
        self._ready.pop(version, None)

    def _forget(self, version: int) -> None:
        """What was made of what had this number before."""
        self._batching.forget(version)
        if version == self._placed:
            self._placed = 0


def _not_the_base(version: int) -> None:
    if version < 1:
        raise AdapterError(f"Version {version} cannot be loaded: 0 is the base model.")
