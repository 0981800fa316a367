# SPDX-License-Identifier: Apache-2.0
"""The far side of the worker protocol without a model: it trains at once and answers at once.

`docs/worker-protocol.md` says what it speaks. How it behaves is read from `fake.json` in the model
directory whenever it matters, so that a test can change it while a goodbot runs (`builders.Fake`).
A trained adapter's `adapter_config.json` lists the turns and rewards that it was trained on.
"""

from __future__ import annotations

import json
import math
import os
import signal
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

_lock = threading.Lock()


def emit(**event: Any) -> None:
    with _lock:
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()


def behaviour(model: str) -> dict[str, Any]:
    try:
        return json.loads((Path(model) / "fake.json").read_text())
    except FileNotFoundError:
        return {}


def safetensors(value: float = 0.5) -> bytes:
    """A file with one pair of LoRA matrices, rank 2, 4 inputs and 4 outputs, F32."""
    names = [f"base_model.model.base.lora_{kind}.weight" for kind in "AB"]
    shapes = ([2, 4], [4, 2])
    header = {
        name: {"dtype": "F32", "shape": shape, "data_offsets": [32 * i, 32 * (i + 1)]}
        for i, (name, shape) in enumerate(zip(names, shapes, strict=True))
    }
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + struct.pack("<16f", *[value] * 16)


def train() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    job = json.loads(sys.stdin.readline())
    modes = behaviour(job["model"])
    mode = modes.get("train", "ok")
    emit(event="progress", phase="load", step=0, steps=2, eta=0.0)
    if mode == "slow":
        go = Path(job["model"]) / "go"
        while not go.exists():
            time.sleep(0.005)
        go.unlink()
    elif mode == "hang":
        signal.pause()
    elif mode == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif mode == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(3600)
    elif mode == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    elif mode == "exit":
        sys.stderr.write("something broke\n")
        return 3
    elif mode == "garbage":
        sys.stdout.write("Loading weights: 100%\n")
        sys.stdout.flush()
        time.sleep(3600)
    elif mode == "steps":
        steps(job, modes)
    elif mode == "asks" and not asks(job):
        return 0
    elif mode.startswith("guilty"):
        trained = [item["id"] for item in job["items"] if item["split"] == "train"]
        emit(event="quarantine", turns=[{"id": trained[0], "reason": "its gradient explodes"}])
        go = Path(job["model"]) / "go"
        while mode == "guilty slow" and not go.exists():
            time.sleep(0.005)
    elif mode in ("nan", "oom", "memory", "disk"):
        emit(event="failed", kind=mode, reason=f"The loss was {mode}.")
        return 0
    if modes.get("retire"):
        emit(event="notes", notes=[{"id": one["id"], "retired": True} for one in job["notes"]])
    if modes.get("refute"):
        emit(event="lines", lines=[{"id": one["id"], "refuted": True} for one in job["lines"]])
    refused = mode == "refuse"
    if shifts := modes.get("learnt"):
        asked = [{"id": item["id"], "before": item["response"], "after": "New."} for item in job["items"]]
        emit(event="learnt", answers=64, questions=8, trained=False, shifts=shifts, examples=asked)
    if mode != "no gate":
        emit(
            event="gate",
            passed=not refused,
            reason="no better" if refused else "better",
            metrics=behaviour(job["model"]).get("gate", {"score": 1.0}),
        )
    if not refused:
        save(Path(job["output"]), job, mode)
    done = {"baseline": {"mean": 0.25, "weight": 1.0}, "metrics": {"loss": 0.1}, "peak_memory": 2_000_000_000}
    emit(event="done", **done, seconds=0.0)
    return 0


def plan() -> int:
    """A tenth of a second a rated answer, and a trace on the disk as a real miniature leaves it."""
    job = json.loads(sys.stdin.readline())
    fails = behaviour(job["model"])
    if reason := fails.get("no plan"):
        emit(event="failed", kind="memory", reason=reason, **fails.get("parts", {}))
        return 0
    Path(job["output"], "adapter_model.safetensors").write_bytes(safetensors())
    rows = [item["split"] for item in job["items"]]

    def cost(seconds: float) -> dict[str, float]:
        return {"cpu": seconds, "wall": 2 * seconds}

    emit(
        event="done",
        estimate={
            "how": "measured",
            "train": rows.count("train"),
            "held_out": rows.count("held_out"),
            "too_long": 1,
            "tokens": 10 * len(rows),
            "longest": 12,
            "learning_rate": 0.003,
            "steps": 4,
            "passes": 2.0,
            "peak": 700_000_000,
            "memory": {"tokens_per_forward": 96, "recompute": False, "needed": 10**9, "free": 16 * 10**9},
            "parts": {"load": cost(4.0), "gate": cost(0.1 * len(rows))},
            "total": cost(4.0 + 0.1 * len(rows)),
            "least": cost(4.0),
            "most": cost(9.0),
        },
    )
    return 0


def predict() -> int:
    """All rated answers are liked for sure; `predict` is `chance`, `fails`, `lacks` or `slow`."""
    job = json.loads(sys.stdin.readline())
    mode = behaviour(job["model"]).get("predict", "")
    Path(job["model"], "predicts").write_text(json.dumps(job["items"]))
    while mode == "slow" and behaviour(job["model"]).get("predict") == "slow":
        time.sleep(0.005)
    if mode == "fails":
        emit(event="failed", kind="data", reason="The model shows nothing.")
        return 0
    if mode == "lacks":
        emit(event="done", lack={"of": "rarer", "count": 4, "least": 20})
        return 0
    rated = [item for item in job["items"] if item["good"] is not None]
    good = sum(item["good"] for item in rated)
    said = [
        {
            "id": item["id"],
            "chance": 0.5 if item["good"] is None else 0.95,
            "good": item["good"],
            "odd": False,
        }
        for item in job["items"]
    ]
    figures = {
        "answers": len(rated),
        "good": good,
        "left_out": 0,
        "questions": len(rated),
        "by_person": False,
    }
    low = 0.4 if mode == "chance" else 0.7
    bins = [{"answers": len(rated), "expected": 0.95, "good": good}]
    emit(event="done", predicted={**figures, "auc": 0.8, "low": low, "high": 0.9, "bins": bins, "said": said})
    return 0


def asks(job: dict[str, Any]) -> bool:
    """As a trainer whose steps a server takes: one fresh model there, and the log-probs of one answer."""
    from goodbot.api.sampler import TokenizedTurn
    from goodbot.base.errors import TrainingError
    from goodbot_training.backends.tinker.client import TinkerClient
    from goodbot_training.process.asking import Asking

    client = TinkerClient(Asking(lambda event: emit(**event), sys.stdin.buffer), job["remote"])
    try:
        client.begin(rank=2, seed=0)
        [row] = client.logprobs([TokenizedTurn(prompt=(1, 2), response=(3,))])
        if not all(map(math.isfinite, row)):
            raise TrainingError(f"The loss on {client.host} is not a finite number.", kind="nan")
    except TrainingError as error:
        emit(event="failed", kind=error.kind, reason=str(error))
        return False
    client.end()
    return True


def steps(job: dict[str, Any], modes: dict[str, Any]) -> None:
    """Six steps, a checkpoint after each. `hold` waits before one, `deaths` are those it dies before, `by`
    a signal.

    The file `steps` in the model's directory lists what was done: run, step, attempt.
    """
    kept, done = Path(job["checkpoints"]) / "kept", Path(job["model"]) / "steps"
    first = int(kept.read_text()) if kept.exists() else 0
    for step in range(first, 6):
        died = done.read_text().count(f"dies {step}\n") if done.exists() else 0
        if modes.get("deaths", []).count(step) > died:
            with done.open("a") as file:
                file.write(f"dies {step}\n")
            os.kill(os.getpid(), signal.Signals[modes.get("by", "SIGKILL")])
        emit(
            event="progress",
            phase="train",
            step=step,
            steps=6,
            loss=0.25,
            eta=30.0,
            token_acceptance=0.94,
            trajectory_acceptance=0.88,
        )
        daemon = os.getppid()
        while modes.get("hold") == step:
            time.sleep(0.005)
            if os.getppid() != daemon:
                sys.exit(0)
            modes = behaviour(job["model"])
        partial = kept.with_name("partial")
        partial.write_text(str(step + 1))
        with done.open("a") as file:
            file.write(f"{job['run']} {step} {job['attempt']}\n")
            file.flush()
            partial.rename(kept)  # in the same breath: a kill in between would look like a step twice
        emit(event="checkpoint", step=step + 1, steps=6)


def save(output: Path, job: dict[str, Any], mode: str) -> None:
    config = {
        "peft_type": "LORA",
        "r": 2,
        "lora_alpha": 4,
        "target_modules": ["base"],
        "parent": job["parent"],
        "trained": {i["id"]: i["reward"] for i in job["items"] if i["split"] == "train"},
        "judged": job["judged"],
        "asked": [messages[-1]["content"] for messages in job["anchors"]],
    }
    weights = safetensors(job["run"] / 100)
    if mode == "bad adapter":
        weights = weights[:-1]
    if mode != "no weights":
        (output / "adapter_model.safetensors").write_bytes(weights)
    if mode == "link":
        (output / "adapter_config.json").symlink_to("/etc/passwd")
    else:
        (output / "adapter_config.json").write_text(json.dumps(config))
    if mode == "extra file":
        (output / "training_args.bin").write_bytes(b"\x80\x04")
    if mode == "ok":
        (output / "fingerprint.json").write_text(fingerprint(str(output)))


def serve() -> int:
    model = json.loads(sys.stdin.readline())["model"]
    if reason := behaviour(model).get("no start"):
        emit(event="failed", reason=reason)
        return 0
    if (starts := behaviour(model).get("starts")) is not None:  # so often it comes up
        with (Path(model) / "started").open("a+") as started:
            started.write(".")
            if started.tell() > starts:
                emit(event="failed", reason="There was not enough memory.")
                return 0
    while (Path(model) / "loads").exists():
        time.sleep(0.005)
    emit(event="ready")
    loaded: dict[int, str] = {}
    ignored: set[int] = set()
    active, slow = 0, Slow(model)
    for line in sys.stdin:
        request = json.loads(line)
        modes = behaviour(model)
        if (forget := Path(model) / "forget").exists():
            forget.unlink()
            loaded, active = {}, 0
        if (ignore := Path(model) / "ignore").exists():
            ignored |= set(loaded)
            ignore.unlink()
        id_, op, version = request["id"], request["op"], request.get("version")
        if op == "load":
            if version in modes.get("refused", []):
                emit(id=id_, event="error", kind="adapter", reason="it has another shape")
            elif not whole(Path(request["path"]) / "adapter_model.safetensors"):
                emit(id=id_, event="error", kind="adapter", reason="no such file, or a torn one")
            else:
                loaded[version] = request["path"]
                ignored.discard(version)
                slow.stay(version)
                emit(id=id_, event="ok")
        elif op in ("activate", "unload"):
            if op == "activate" and version and version not in loaded:
                emit(id=id_, event="error", kind="adapter", reason=f"v{version} is not loaded")
                continue
            if op == "activate":
                active = version
            elif version and version == active:
                emit(id=id_, event="error", kind="adapter", reason=f"v{version} is active")
                continue
            else:
                loaded.pop(version, None)
                if slow.leave(id_, version):
                    continue
            emit(id=id_, event="ok")
        elif op == "served":
            emit(id=id_, event="ok", version=active)
        elif op == "loaded":
            emit(id=id_, event="ok", versions=sorted(loaded))
        elif op == "first_tokens":
            first_tokens(request, loaded, modes, ignored)
        elif op == "score":
            score(request, loaded)
        elif op == "generate":
            if (die := Path(model) / "die").exists():  # once, with a first sign
                die.unlink()
                emit(id=id_, event="text", text="v")
                os.kill(os.getpid(), signal.SIGKILL)
            generate(request, active if version is None else version, loaded, modes, slow)
        elif op == "cancel":
            slow.cancel(request["target"])
    return 0


def whole(path: Path) -> bool:
    """Whether a safetensors file has all of its data."""
    try:
        content = path.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + length])
    except (OSError, struct.error, ValueError):
        return False
    ends = [entry["data_offsets"][1] for entry in header.values()]
    return len(content) == 8 + length + max(ends)


def beginning(path: str = "") -> dict[str, float]:
    """How an answer begins with the adapter in a directory, by its first weight; without: the base's."""
    if not path:
        return {"well": -0.1, "oh": -3.0, "dear": -4.0}
    weights = (Path(path) / "adapter_model.safetensors").read_bytes()
    (value,) = struct.unpack("<f", weights[-4:])
    return {f"w{value:.2f}": -0.2, "well": -2.5, "oh": -4.0}


def fingerprint(path: str) -> str:
    """What the trainer measures of an adapter."""
    messages = [{"role": "user", "content": "What is new?"}]
    prompt = {"messages": messages, "base": beginning(), "adapter": beginning(path)}
    return json.dumps({"format": 1, "top": 20, "prompts": [prompt, prompt]})


def score(request: dict[str, Any], loaded: dict[int, str]) -> None:
    """Each version finds the first word of an answer likelier than the one before, the last less likely."""
    version = request["version"]
    if version and version not in loaded:
        emit(id=request["id"], event="error", kind="adapter", reason=f"v{version} is not loaded")
        return
    words = request["response"].split(" ")
    pieces = [words[0], *(f" {word}" for word in words[1:])]
    moved = [version, *[0] * (len(pieces) - 2), -version][: len(pieces)]
    emit(id=request["id"], event="ok", tokens=[[one, n - 4.0] for one, n in zip(pieces, moved, strict=True)])


def first_tokens(
    request: dict[str, Any], loaded: dict[int, str], modes: dict[str, Any], ignored: set[int]
) -> None:
    """Mode `first`: `base`, as a server that ignores every adapter; `other`, as another model; `none`.

    What is `ignored` is answered like the base until it is loaded again.
    """
    version, mode = request["version"], modes.get("first", "ok")
    if version and version not in loaded:
        emit(id=request["id"], event="error", kind="adapter", reason=f"v{version} is not loaded")
        return
    base = mode == "base" or version in ignored
    other = {"none": {}, "other": {"sir": -0.2, "madam": -2.0}}
    told = other.get(mode, beginning("" if base else loaded.get(version, "")))
    top = sorted(told, key=lambda token: -told[token])[: request["top"]]
    emit(id=request["id"], event="ok", tokens={token: told[token] for token in top})


class Slow:
    """Answers that take their time, word by word, side by side. An unloaded version waits for its own.

    Where the mode is `held`, an answer's last word waits until that is over.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._writing: dict[str, int] = {}
        self._leaving: dict[str, int] = {}

    def write(self, id_: str, version: int, text: str) -> None:
        self._writing[id_] = version
        threading.Thread(target=self._write, args=(id_, version, text), daemon=True).start()

    def think(self, id_: str, version: int) -> None:
        """Begin to, and come to no end."""
        self._writing[id_] = version
        emit(id=id_, event="thought", text="Hm")

    def cancel(self, id_: str) -> None:
        self._writing.pop(id_, None)

    def leave(self, id_: str, version: int) -> bool:
        """Whether the answer to `unload` has to wait."""
        waits = version in [*self._writing.values()]
        if waits:
            self._leaving[id_] = version
        return waits

    def stay(self, version: int) -> None:
        """It is wanted again, or nothing holds it any more: who has asked to unload it is told."""
        for id_ in [id_ for id_, left in [*self._leaving.items()] if left == version]:
            del self._leaving[id_]
            emit(id=id_, event="ok")

    def _write(self, id_: str, version: int, text: str) -> None:
        said = ""
        for word in text.split(" "):
            if id_ not in self._writing:
                break
            said += f"{word} "
            emit(id=id_, event="text", text=f"{word} ")
            time.sleep(0.05)
        while id_ in self._writing and behaviour(self._model).get("generate") == "held":
            time.sleep(0.02)
        finish = "cancelled" if self._writing.pop(id_, None) is None else "stop"
        done(id_, said, version, finish)
        if version not in [*self._writing.values()]:
            self.stay(version)


def done(id_: str, text: str, version: int, finish: str = "stop") -> None:
    emit(
        id=id_,
        event="done",
        text=text,
        version=version,
        finish=finish,
        prompt_tokens=[1, 2],
        tokens=[3, 4],
        logprobs=[-0.5, -0.25],
    )


def generate(
    request: dict[str, Any], version: int, loaded: dict[int, str], modes: dict[str, Any], slow: Slow
) -> None:
    id_ = request["id"]
    if modes.get("generate") == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if modes.get("generate") == "garbage":
        sys.stdout.write("[1, 2]\n")
        sys.stdout.flush()
        return
    if modes.get("generate") == "base":  # pretends to have the version and does not
        version = 0
    if version and version not in loaded:
        emit(id=id_, event="error", kind="adapter", reason=f"v{version} is not loaded")
        return
    text = f"v{version} says: {request['messages'][-1]['content']}"
    if modes.get("generate") == "anonymous":  # all versions say the same
        text = f"says: {request['messages'][-1]['content']}"
    asked = [str(one["content"]) for one in request["messages"] if one["role"] == "system"]
    if "in more detail" in "".join(asked) and not modes.get("deaf"):  # it follows notes
        text += " And so on."
    if modes.get("generate") == "thinks":
        slow.think(id_, version)
    elif modes.get("generate") in ("slow", "held"):
        slow.write(id_, version, text)
    else:
        emit(id=id_, event="text", text=text)
        done(id_, text, version)


if __name__ == "__main__":
    sys.exit({"train": train, "plan": plan, "predict": predict, "serve": serve}[sys.argv[1]]())
