# SPDX-License-Identifier: Apache-2.0
"""Tinker's protocol: a model on a server, its passes and steps, each a question and then its result.

Nothing is done twice: what changes a model (a pass with a gradient, a step) is asked again only where the
server has said that it did not begin with it. Where nobody knows, the round goes on from its last checkpoint,
on a model that is made anew (`TrainingError` of kind `died`). What only reads is asked again.
"""

from __future__ import annotations

import math
import string
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, cast

from goodbot.api.manners import parsed, said, short
from goodbot.api.sampler import TokenizedTurn
from goodbot.base.clock import growing
from goodbot.base.errors import TrainingError
from goodbot.base.worded import Worded

from goodbot_training.backends.asking import AskServer, RemoteReply, UnansweredError

Row = Sequence[float]

_API = "/api/v1/"
_TRIES = 8
_LONGEST_WAIT = 600.0
"""Seconds that the server may ask us to stay away."""
_PATIENCE = 3600.0
"""Seconds that it may take for one result."""
_POLLS = (0.1, 5.0)
"""Seconds between two looks for a result, first and at most."""
_NOT_BEGUN = (425, 429, 503)
_PENDING = 408
_GONE = (404, 410)
_IN_NAMES = frozenset(string.ascii_letters + string.digits + "_.-")
_KEPT_SECONDS = 7 * 86400
"""What is saved in the middle of a round; what a later round goes on from stays."""


def _sleep(seconds: float) -> None:
    threading.Event().wait(seconds)


class TinkerClient:
    """One model on one server at a time."""

    def __init__(
        self,
        ask: AskServer,
        remote: Mapping[str, Any],
        *,
        sleep: Callable[[float], None] = _sleep,
        patience: float = _PATIENCE,
    ) -> None:
        """`remote` is the job's: `host`, `model` (the base's name there) and `loss`."""
        self.host, self._base = str(remote.get("host")), str(remote.get("model"))
        self._mean = remote.get("loss") == "mean"
        self._ask, self._sleep, self._patience = ask, sleep, patience
        self._session = self._model = ""
        self._asked = 0

    def begin(self, *, rank: int, seed: int) -> None:
        """Make a model with a fresh adapter. Raises TrainingError, as all that follows."""
        self.end()
        about = {"tags": ["goodbot"], "sdk_version": "goodbot", "type": "create_session"}
        self._session = self._name(self._post("create_session", about).get("session_id"))
        self._asked = 0
        lora = {"rank": rank, "seed": seed, "train_attn": True, "train_mlp": True, "train_unembed": False}
        model = {"base_model": self._base, "lora_config": lora, "model_seq_id": 0, "type": "create_model"}
        made, result = self._done("create_model", {"session_id": self._session, **model})
        self._model = self._name(result.get("model_id") or made.get("model_id"))

    def load(self, weights: str, *, optimizer: bool) -> None:
        """Put weights in place that `save` has kept; `optimizer`: its state too (SkyRL always does)."""
        self._step_of("load_weights", {"path": weights, "optimizer": optimizer})

    def logprobs(self, turns: Sequence[TokenizedTurn]) -> list[Row]:
        """Of all tokens of each but the first, at temperature 1, by the model as it is now."""
        self._alive()
        data = [_datum(turn, {"weights": [1.0] * (_length(turn) - 1)}) for turn in turns]
        given = {"forward_input": {"data": data, "loss_fn": "cross_entropy"}}
        found = self._step_of("forward", given, pure=True).get("loss_fn_outputs")
        rows = [_numbers(one) for one in cast("list[Any]", found)] if isinstance(found, list) else []
        if [len(row) for row in rows] != [_length(turn) - 1 for turn in turns]:
            raise self._foreign()
        return rows

    def backward(self, turns: Sequence[TokenizedTurn], now: Sequence[Row], slopes: Sequence[Row]) -> None:
        """Add the gradient of a loss whose slopes by the response's log-probs are these.

        `now` is what `logprobs` has just told. `importance_sampling` is -Σ exp(log p - now) · A, so with
        A = -slope its gradient is that of any loss, at the weights that `now` is of: exactly, but for what
        the server rounds otherwise in two passes.
        """
        data: list[dict[str, Any]] = []
        for turn, known, slope in zip(turns, now, slopes, strict=True):
            times = (_length(turn) - 1) * len(turns) if self._mean else 1
            before = len(turn.prompt) - 1
            advantages = [0.0] * before + [-times * float(one) for one in slope[: len(turn.response)]]
            known = [one if math.isfinite(one) else 0.0 for one in known]  # of a prompt, where A is 0
            data.append(_datum(turn, {"logprobs": known, "advantages": advantages}))
        self._step_of(
            "forward_backward", {"forward_backward_input": {"data": data, "loss_fn": "importance_sampling"}}
        )

    def step(self, *, rate: float, epsilon: float, decay: float, clip: float) -> float | None:
        """One step of AdamW on what `backward` has added up; the gradient's norm, if it is told."""
        adam: dict[str, float] = {"learning_rate": rate, "beta1": 0.9, "beta2": 0.999, "eps": epsilon}
        adam |= {"weight_decay": decay, "grad_clip_norm": clip}
        metrics = self._step_of("optim_step", {"adam_params": adam}).get("metrics")
        told: Mapping[str, Any] = cast("Any", metrics) if isinstance(metrics, Mapping) else {}
        norms = [value for name, value in told.items() if name.endswith(("grad_norm", "grad_norm:mean"))]
        return next((float(one) for one in norms if isinstance(one, int | float)), None)

    def save(self, name: str, *, for_good: bool) -> str:
        """Keep weights and optimizer there; the path to `load` them by."""
        kept = {} if for_good else {"ttl_seconds": _KEPT_SECONDS}
        return self._saved("save_weights", {"path": name, **kept})

    def download(self, name: str, file: BinaryIO) -> None:
        """The adapter as it is now, as an archive."""
        path = self._saved("save_weights_for_sampler", {"path": name})
        run, _, rest = path.removeprefix("tinker://").partition("/")
        refused: RemoteReply | None = None
        for place in dict.fromkeys((rest, rest.rpartition("/")[2])):  # SkyRL knows it by its last name
            where = f"{_API}training_runs/{run}/checkpoints/{place}/archive"
            reply = self._patiently("GET", where, None, file=file, pure=True)
            if reply.status == 200:
                return
            refused = refused or reply
        raise self._refused(refused or RemoteReply(status=404))

    def end(self) -> None:
        """Give the model up, if it can be done at once."""
        if self._model:
            body = {"model_id": self._model, "type": "unload_model"}
            try:
                self._ask("POST", f"{_API}unload_model", body)
            except UnansweredError:
                return
            self._model = ""

    def _alive(self) -> None:
        """A session that nobody speaks of ends."""
        self._post("session_heartbeat", {"session_id": self._session, "type": "session_heartbeat"}, pure=True)

    def _saved(self, what: str, body: Mapping[str, Any]) -> str:
        path = self._step_of(what, body).get("path")
        parts = path.removeprefix("tinker://").split("/") if isinstance(path, str) else []
        if len(parts) < 2 or not all(part and set(part) <= _IN_NAMES for part in parts):
            raise self._foreign()
        return str(path)

    def _step_of(self, what: str, body: Mapping[str, Any], *, pure: bool = False) -> Mapping[str, Any]:
        """The result of one request about the model. By its number the server knows it again."""
        self._asked += 1
        about = {"model_id": self._model, "seq_id": self._asked, "type": what}
        return self._done(what, {**about, **body}, pure=pure)[1]

    def _done(
        self, what: str, body: Mapping[str, Any], *, pure: bool = False
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """What was said at once, and the result."""
        made = self._post(what, body, pure=pure)
        wanted = made.get("request_id")
        if not isinstance(wanted, str | int):
            raise self._foreign()
        until, looks = time.monotonic() + self._patience, 0
        while True:
            reply = self._patiently("POST", f"{_API}retrieve_future", {"request_id": str(wanted)}, pure=True)
            found = parsed(reply.text)
            if reply.status == 200 and found.get("type") != "try_again":
                if "error" in found:
                    raise self._said(Worded("{host} has failed", host=self.host), found)
                return made, found
            if reply.status not in (200, _PENDING):
                raise self._refused(reply)
            if time.monotonic() >= until:
                late = "{host} has not come to a result of {what} in {minutes} minutes."
                minutes = f"{self._patience / 60:g}"
                told = Worded(late, host=self.host, what=what, minutes=minutes)
                raise TrainingError(told, kind="died")
            self._sleep(growing(looks, first=_POLLS[0], most=_POLLS[1]))
            looks += 1

    def _post(self, what: str, body: Mapping[str, Any], *, pure: bool = False) -> Mapping[str, Any]:
        reply = self._patiently("POST", _API + what, body, pure=pure)
        if not 200 <= reply.status < 300:
            raise self._refused(reply)
        return parsed(reply.text)

    def _patiently(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        *,
        pure: bool,
        file: BinaryIO | None = None,
    ) -> RemoteReply:
        """The answer, asked for again while the server is busy. Raises TrainingError."""
        reply: RemoteReply = RemoteReply(status=0)
        why: UnansweredError | None = None
        for tries in range(1, _TRIES + 1):
            if file is not None:
                file.seek(0)
                file.truncate()
            reply, why = RemoteReply(status=0), None
            try:
                reply = self._ask(method, path, body, file)
            except UnansweredError as error:
                why = error
                if error.forbidden or not (pure or error.unsent):
                    kind = "error" if error.forbidden else "died"
                    raise TrainingError(Worded("{why}.", why=why), kind=kind) from error
            busy = reply.status in _NOT_BEGUN or (pure and reply.status >= 500)
            if not (busy or why):
                return reply
            if tries < _TRIES:
                self._sleep(self._wait(reply, tries))
        if why:
            raise TrainingError(Worded("{why}.", why=why), kind="died")
        raise self._refused(reply)

    def _wait(self, reply: RemoteReply, tries: int) -> float:
        """How long to stay away, by its own word where it gives one."""
        try:
            told = float(reply.retry_after)
        except ValueError:
            return growing(tries - 1, most=_LONGEST_WAIT)
        if not 0 <= told <= _LONGEST_WAIT:
            late = Worded("{host} is busy, and asks to come back much later.", host=self.host)
            if math.isfinite(told):
                busy = "{host} is busy, and asks to come back in {minutes} minutes."
                late = Worded(busy, host=self.host, minutes=f"{told / 60:.0f}")
            raise TrainingError(late)
        return told

    def _refused(self, reply: RemoteReply) -> TrainingError:
        if reply.status in (401, 403):
            key = "{host} refuses the key: put yours into {name}."
            return TrainingError(Worded(key, host=self.host, name="GOODBOT_TRAINING_KEY"))
        found, host, status = parsed(reply.text), self.host, reply.status
        if reply.status in _GONE or reply.status >= 500:
            lost = Worded("{host} has lost the training: status {status}", host=host, status=status)
            return self._said(lost, found, "died")
        return self._said(Worded("{host} refuses with status {status}", host=host, status=status), found)

    def _said(self, what: Worded, found: Mapping[str, Any], kind: str = "error") -> TrainingError:
        """With the server's own words, where it has any."""
        words = short(said(found)).rstrip(".")
        whole = Worded("{what}.", what=what)
        if words:
            whole = Worded("{what}: {words}.", what=what, words=words)
        return TrainingError(whole, kind=kind)

    def _foreign(self) -> TrainingError:
        foreign = "{host} answers with something that is not Tinker's protocol."
        return TrainingError(Worded(foreign, host=self.host))

    def _name(self, found: object) -> str:
        if not isinstance(found, str) or not found or not set(found) <= _IN_NAMES | {":"}:
            raise self._foreign()
        return found


def _length(turn: TokenizedTurn) -> int:
    return len(turn.prompt) + len(turn.response)


def _datum(turn: TokenizedTurn, inputs: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """All tokens but the last are read, all but the first are what is expected after each."""
    tokens = [*turn.prompt, *turn.response]
    size = [len(tokens) - 1]
    numbers = {name: {"data": [*row], "dtype": "float32", "shape": size} for name, row in inputs.items()}
    targets = {"data": tokens[1:], "dtype": "int64", "shape": size}
    return {
        "model_input": {"chunks": [{"type": "encoded_text", "tokens": tokens[:-1]}]},
        "loss_fn_inputs": {"target_tokens": targets, **numbers},
    }


def _numbers(output: object) -> Row:
    """The log-probs of one answer; what is no number is NaN."""
    found: Any = cast("Mapping[str, Any]", output).get("logprobs") if isinstance(output, Mapping) else None
    data: Any = cast("Mapping[str, Any]", found).get("data") if isinstance(found, Mapping) else found
    if not isinstance(data, list):
        return []
    return [float(one) if isinstance(one, int | float) else math.nan for one in cast("list[Any]", data)]
