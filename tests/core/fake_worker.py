"""The far side of the worker protocol without a model: it trains at once and answers at once.

`docs/worker-protocol.md` says what it speaks. How it behaves is read from `fake.json` in the model
directory whenever it matters, so that a test can change it while a goodbot runs (`builders.Fake`).
A trained adapter's `adapter_config.json` lists the turns and rewards that it was trained on.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
import time
from pathlib import Path
from typing import Any


def emit(**event: Any) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def behaviour(model: str) -> dict[str, Any]:
    try:
        return json.loads((Path(model) / "fake.json").read_text())
    except FileNotFoundError:
        return {}


def safetensors(value: float = 0.5) -> bytes:
    """A file with one pair of LoRA matrices, rank 2, 4 inputs and 4 outputs, F32."""
    names = ("base.lora_A.weight", "base.lora_B.weight")
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
    mode = behaviour(job["model"]).get("train", "ok")
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
    elif mode in ("nan", "oom"):
        emit(event="failed", kind=mode, reason=f"The loss was {mode}.")
        return 0
    refused = mode == "refuse"
    if mode != "no gate":
        emit(
            event="gate", passed=not refused,
            reason="no better" if refused else "better", metrics={"score": 1.0},
        )  # fmt: skip
    if not refused:
        save(Path(job["output"]), job, mode)
    emit(event="done", baseline={"mean": 0.25, "weight": 1.0}, metrics={"loss": 0.1}, seconds=0.0)
    return 0


def save(output: Path, job: dict[str, Any], mode: str) -> None:
    config = {
        "peft_type": "LORA",
        "parent": job["parent"],
        "trained": {i["id"]: i["reward"] for i in job["items"] if i["split"] == "train"},
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
    emit(event="ready")
    loaded: dict[int, str] = {}
    active = 0
    for line in sys.stdin:
        request = json.loads(line)
        modes = behaviour(model)
        if (forget := Path(model) / "forget").exists():
            forget.unlink()
            loaded, active = {}, 0
        id_, op, version = request["id"], request["op"], request.get("version")
        if op == "load":
            if version in modes.get("refused", []):
                emit(id=id_, event="error", kind="adapter", reason="it has another shape")
            elif not (Path(request["path"]) / "adapter_model.safetensors").exists():
                emit(id=id_, event="error", kind="adapter", reason="no such file")
            else:
                loaded[version] = request["path"]
                emit(id=id_, event="ok")
        elif op in ("activate", "unload"):
            if op == "activate" and version and version not in loaded:
                emit(id=id_, event="error", kind="adapter", reason=f"v{version} is not loaded")
                continue
            if op == "activate":
                active = version
            else:
                loaded.pop(version, None)
            emit(id=id_, event="ok")
        elif op == "served":
            emit(id=id_, event="ok", version=active)
        elif op == "loaded":
            emit(id=id_, event="ok", versions=sorted(loaded))
        elif op == "generate":
            generate(request, active if version is None else version, loaded, modes)
    return 0


def generate(
    request: dict[str, Any], version: int, loaded: dict[int, str], modes: dict[str, Any]
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
    if modes.get("generate") == "slow":
        for word in text.split(" "):
            emit(id=id_, event="text", text=word)
            time.sleep(0.05)
    else:
        emit(id=id_, event="text", text=text)
    emit(
        id=id_, event="done", text=text, version=version, finish="stop",
        prompt_tokens=[1, 2], tokens=[3, 4], logprobs=[-0.5, -0.25],
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit({"train": train, "serve": serve}[sys.argv[1]]())
