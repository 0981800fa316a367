# SPDX-License-Identifier: Apache-2.0
"""Trains on a server that speaks Tinker's protocol, and does all else here with torch.

Such a server offers a few fixed losses, and none of ours. So each step asks it twice: for the log-probs of
the answers, from which the objective's own loss and its slope by each log-prob are computed here, and then
for the gradient of `importance_sampling` with those slopes as advantages. At the weights of that moment
both losses have the same gradient, whatever the objective: its filters, bands and detached ratios, the KL
term to the base, words and plugins' losses. That holds

* at temperature 1, the only one that the server knows: answers that were drawn at another are read at that
  (the job says `unscored`, and who wrote them is asked anew). Any other in a batch is refused.
* up to how the server rounds: bf16 moves log-probs by hundredths of a nat, and the ratio by that.
* for AdamW with one rate and clipping by `grad_clip_norm`, where the server knows that word (SkyRL's does
  not, and clips nothing). A part of the rate for attention, and damping, are refused by the settings.

* for a loss that adds up over answers, as it is here; one that compares answers with the mean of their pass
  (`kto`, `bco`) sees the whole batch as one.

What comes back is believed only as far as it can be seen: before the first step the server's log-probs must
be those of the model here, and after the last those of the adapter that it has handed over.
"""

from __future__ import annotations

import math
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from goodbot.api.backend import LossFunction, OptimizerSettings, StepStats, TrainingBatch
from goodbot.base.errors import AdapterError, TrainingError
from goodbot.base.worded import Worded

from goodbot_training.backends.adapters import fit, read_adapter
from goodbot_training.backends.asking import AskServer
from goodbot_training.backends.pace import StepSize
from goodbot_training.backends.tinker import kept
from goodbot_training.backends.tinker.archive import unpack
from goodbot_training.backends.tinker.client import Row, TinkerClient
from goodbot_training.backends.torch.slopes import slopes
from goodbot_training.backends.torch.trainer import TorchBackend

if TYPE_CHECKING:
    from goodbot.api.step import Floats

APART = 0.1
"""Nats a token by which two computations of the same model may differ, on average; bf16 was seen at 0.03."""


class TinkerBackend(TorchBackend):
    """A base here, to score, judge and answer with, and its adapter's steps there. Its device is torch's."""

    _server: TinkerClient | None = None
    _weights = ""
    """Where the server keeps the adapter that is in place here; empty: nowhere, or it is a fresh one."""
    _fresh = True
    _seen = False
    """Whether the server's model was laid beside the one here."""

    def connect(self, ask: AskServer, remote: Mapping[str, Any]) -> None:
        """See `goodbot_training.backends.asking.ComputesElsewhere`."""
        self._server = TinkerClient(ask, remote)

    def load_adapter(self, directory: Path | None) -> None:
        """Replace the adapter here, and remember where the server keeps it. Raises AdapterError."""
        super().load_adapter(directory)
        self._fresh, self._weights = directory is None, ""
        if directory is not None and self._server is not None:
            self._weights = kept.marked(directory, self._server.host)

    def save_adapter(self, directory: Path) -> None:
        """Write the adapter in PEFT's layout, with where its server keeps it."""
        super().save_adapter(directory)
        if self._server is not None and self._weights:
            kept.mark(directory, self._server.host, self._weights)

    def train(
        self,
        batches: Iterator[TrainingBatch],
        settings: OptimizerSettings,
        loss: LossFunction,
        *,
        checkpoint: Path | None = None,
    ) -> Iterator[StepStats]:
        """One step of the server a batch; after the last one the adapter is here. See the module.

        Raises TrainingError, and AdapterError for an adapter that is not what was trained.
        """
        server = self._server
        if server is None:  # a plan times the round as if it were trained here
            yield from super().train(batches, settings, loss, checkpoint=checkpoint)
            return
        self._pace = StepSize(settings=settings, weights=1)
        self._begin(server, checkpoint)
        batch: TrainingBatch | None = None
        for batch in batches:
            if not batch.teaches:
                yield StepStats.nothing()
                continue
            sums, now, slope = self._looked_at(server, batch, loss)
            size = float(np.linalg.norm(slope))
            if not all(map(math.isfinite, (*sums.values(), size))):
                odd = Worded("The loss on {host} is not a finite number.", host=server.host)
                raise TrainingError(odd, kind="nan")
            server.backward(batch.sequences, now, slope.tolist())
            rate, epsilon = self._pace.step(0.0)
            norm = server.step(
                rate=rate, epsilon=epsilon, decay=self._pace.weight_decay, clip=settings.max_grad_norm
            )
            if norm is not None and not math.isfinite(norm):
                odd = Worded("The gradient on {host} is not a finite number.", host=server.host)
                raise TrainingError(odd, kind="nan")
            yield StepStats.of(batch, sums, size if norm is None else norm)
        self._fetch(server, batch)
        server.end()

    def examine(self, batch: TrainingBatch, settings: OptimizerSettings, loss: LossFunction) -> StepStats:
        """A step that is not taken; the server tells no gradient, so the norm is that of the slopes."""
        if self._server is None:
            return super().examine(batch, settings, loss)
        sums, _, slope = self._looked_at(self._server, batch, loss)
        return StepStats.of(batch, sums, float(np.linalg.norm(slope)))

    def save_checkpoint(self, directory: Path) -> None:
        """A name on the server, and how many steps were taken."""
        if self._server is None:
            super().save_checkpoint(directory)
            return
        weights = self._server.save(_name(), for_good=False)
        kept.write_checkpoint(directory, weights, self._pace.state)

    def _begin(self, server: TinkerClient, checkpoint: Path | None) -> None:
        """A model there that is what is here, or what the checkpoint was."""
        if not (self._fresh or self._weights or checkpoint):
            other = (
                "The version that this training would go on from was not trained by {host} as it is now. "
                "Train here, or go back to the base model first."
            )
            raise TrainingError(Worded(other, host=server.host), kind="data")
        server.begin(rank=self._model.extract().rank, seed=self._seed)
        if checkpoint is not None:
            weights, self._pace.state = kept.read_checkpoint(checkpoint)
            server.load(weights, optimizer=True)
        elif self._weights:
            server.load(self._weights, optimizer=False)
        self._seen = checkpoint is not None

    def _looked_at(
        self, server: TinkerClient, batch: TrainingBatch, loss: LossFunction
    ) -> tuple[dict[str, float], list[Row], Floats]:
        """What the loss reports of a batch, all log-probs of its tokens, and the slopes by the response's."""
        if set(batch.temperature) != {1.0}:
            only = Worded("{host} can read answers at temperature 1 only.", host=server.host)
            raise TrainingError(only, kind="data")
        now, policy = _read(server, batch)
        if not self._seen and np.isfinite(policy).all() and self._apart(batch, policy) > APART:
            other = "{host} computes another model than the one here: see model under [training.remote]."
            raise TrainingError(Worded(other, host=server.host), kind="data")
        self._seen = True
        sums, slope = slopes(batch, policy, loss)
        return sums, now, slope

    def _apart(self, batch: TrainingBatch, policy: Floats) -> float:
        """Nats a token between the server's log-probs and those of the model here; infinite for NaN."""
        ours = self.logprobs(batch.sequences, temperature=batch.temperature, adapter=True)
        pairs = zip(ours, policy, strict=True)
        found = float(np.concatenate([abs(own - theirs[: len(own)]) for own, theirs in pairs]).mean())
        return found if math.isfinite(found) else math.inf

    def _fetch(self, server: TinkerClient, last: TrainingBatch | None) -> None:
        """Get the adapter, see that it is what was trained, and put it in place here."""
        name = _name()
        with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryFile() as archive:
            server.download(name, archive)
            archive.seek(0)
            unpack(archive, Path(scratch))
            found = read_adapter(Path(scratch))
            if found.rank != (wanted := self._model.extract().rank):
                other = "{host} gave an adapter of rank {rank}, not {wanted}."
                raise AdapterError(Worded(other, host=server.host, rank=found.rank, wanted=wanted))
            weights = fit(found, self._model.shapes, Path(scratch))
        self._model.assign(self._model.prepare(weights))
        self._model.enabled, self._fresh = True, False
        if last is not None and self._apart(last, _read(server, last)[1]) > APART:
            other = "{host} gave another adapter than the one that it has trained."
            raise AdapterError(Worded(other, host=server.host))
        self._weights = server.save(name, for_good=True)


def _read(server: TinkerClient, batch: TrainingBatch) -> tuple[list[Row], Floats]:
    """The log-probs of all tokens, and those of the responses as the batch has its arrays."""
    now = server.logprobs(batch.sequences)
    policy = np.zeros_like(batch.mask)
    for row, (turn, known) in enumerate(zip(batch.sequences, now, strict=True)):
        policy[row, : len(turn.response)] = known[len(turn.prompt) - 1 :]
    return now, policy


def _name() -> str:
    return f"goodbot-{uuid.uuid4().hex}"
