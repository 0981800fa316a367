# SPDX-License-Identifier: Apache-2.0
"""`llama-server`, as a program: `python -m goodbot_fakes.llamacpp --model BASE.gguf …`.

Written from llama.cpp's `tools/server` (its README and `server-context.cpp`): what our driver asks of it,
with the same fields. It answers by `policy`, from digests of the two files, so another adapter answers
otherwise. Its faults are read from the JSON file that FAULTS names, again with every request:

* `start`: `dies` (it ends with an error of the machine before it listens, or as `says` has it), `bad` (with
  one of the adapter), `slow` (503 for a while), `hangs`
* `lora`: `ignored` (it starts, and lists none), `half` (a scale of 0.5)
* `template`: `no_system` (it refuses that role)
* `answer`: `500`, `cut` (it hangs up in the middle), `dies`, `split` (a token without its text, as within a
  character), `unsure` (no probabilities)
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any, ClassVar, cast

from goodbot_fakes.policy import END, WORDS, Policy, at_temperature, cutting

FAULTS = "GOODBOT_FAKE_LLAMACPP"
"""The environment variable with the path of the faults' file."""
_IDS = {text: at for at, text in enumerate((*WORDS, END))}
_PAUSE = 0.002
"""Seconds between two tokens, so that an answer is under way for some time."""


def program(directory: Path) -> Path:
    """This fake as one executable file in `directory`, as the setting `binary` wants it: it runs where no
    other program may be started."""
    path = directory / "llama-server"
    path.write_text(f"#!{sys.executable} -P\nimport sys\nfrom {__name__} import main\nsys.exit(main())\n")
    path.chmod(0o700)
    return path


def main() -> int:
    """Serve until SIGTERM; an exit code."""
    parser = argparse.ArgumentParser(prog="llama-server", allow_abbrev=False)
    for option in ("--model", "--host", "--alias", "--lora"):
        parser.add_argument(option, default="")
    for option in ("--port", "--parallel", "--ctx-size", "--cache-ram", "--n-gpu-layers", "--threads"):
        parser.add_argument(option, type=int, default=0)
    given = parser.parse_args()
    start = _faults().get("start")
    if start in ("dies", "bad"):
        usual = "failed to allocate the KV cache" if start == "dies" else "a tensor has a wrong shape"
        return _error(str(_faults().get("says", usual)))
    if start == "hangs":
        signal.pause()
    digests = [_digest(given.model), *([_digest(given.lora)] if given.lora else [])]
    if None in digests:
        return _error(f"failed to load {'the model' if digests[0] is None else 'lora adapter'}")
    lora = _faults().get("lora")
    _Handler.lora = given.lora if lora != "ignored" else ""
    _Handler.scale = 0.5 if lora == "half" else 1.0
    applied = tuple(digest for digest in digests[1:] if digest and lora != "ignored")
    _Handler.policy = Policy(str(digests[0]), applied)
    _Handler.ready = time.monotonic() + (0.3 if _faults().get("start") == "slow" else 0.0)
    _Server((given.host, given.port), _Handler).serve_forever()
    return 0


class _Server(ThreadingHTTPServer):
    def server_bind(self) -> None:
        """Without asking for the host's name, as http.server does: nobody can be asked from a cage."""
        TCPServer.server_bind(self)


class _Handler(BaseHTTPRequestHandler):
    policy: ClassVar[Policy]
    lora: ClassVar[str]
    scale: ClassVar[float]
    ready: ClassVar[float]

    def do_GET(self) -> None:
        if time.monotonic() < self.ready:
            return self._fail(503, "Loading model", "unavailable_error")
        if self.path == "/health":
            return self._send({"status": "ok"})
        if not self._known():
            return None
        if self.path == "/lora-adapters":
            entry = {"id": 0, "path": self.lora, "scale": self.scale, "task_name": "", "prompt_prefix": ""}
            return self._send([entry] if self.lora else [])
        return self._fail(404, "File Not Found", "not_found_error")

    def do_POST(self) -> None:
        body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._known():
            return None
        if self.path == "/apply-template":
            roles = [message["role"] for message in body["messages"]]
            if _faults().get("template") == "no_system" and "system" in roles:
                return self._fail(500, "System role not supported", "server_error")
            return self._send({"prompt": json.dumps(body["messages"])})
        if self.path == "/tokenize":
            return self._send({"tokens": [1000 + byte for byte in body["content"].encode()]})
        if self.path == "/detokenize":
            texts, tokens = (*WORDS, END), cast("list[int]", body["tokens"])
            return self._send({"content": "".join(texts[token] for token in tokens)})
        if self.path == "/completion":
            return self._complete(body)
        return self._fail(404, "File Not Found", "not_found_error")

    def _complete(self, body: dict[str, Any]) -> None:
        fault = _faults().get("answer")
        if fault == "500":
            return self._fail(500, "the slot is broken", "server_error")
        if fault == "dies":
            os._exit(1)
        if fault == "unsure":
            body["n_probs"] = 0
        if body.get("repeat_last_n", 0) < 0:
            words = "Field 'repeat_last_n': Value must be between 0 <= value <= 2147483647, but got -1"
            return self._fail(400, words, "invalid_request_error")
        events = self._events(body, split=fault == "split")
        if not body["stream"]:
            [first, *_] = events
            told: list[Any] = first.get("completion_probabilities", [])
            return self._send({"stop": True, "completion_probabilities": told})
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for number, event in enumerate(events):
            if fault == "cut" and number == 3:
                return None
            try:
                self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
                self.wfile.flush()
            except OSError:
                return None
            time.sleep(_PAUSE)
        return None

    def _events(self, body: dict[str, Any], *, split: bool) -> Iterable[dict[str, Any]]:
        ids, heat, most = body["prompt"], body["temperature"], body["n_predict"]
        finish, count = "limit", 0
        # Of its fields those count that `samplers` names.
        cut = cutting({name: body[name] for name in body["samplers"] if name in body})
        seed = body.get("seed", 0)
        for token in self.policy.answer(ids, temperature=heat, seed=seed, most=most, cut=cut):
            count += 1
            text = "" if token.text == END else token.text
            finish = "eos" if token.text == END else "limit"
            if split and count == 2:
                continue
            event: dict[str, Any] = {"content": text, "tokens": [_IDS[token.text]], "stop": False}
            if body["n_probs"]:
                told = token.top
                if body["post_sampling_probs"] and heat > 0:
                    told = cut(at_temperature(told, heat))
                event["completion_probabilities"] = [_entry(token.text, told, body)]
            yield event
        yield {"content": "", "tokens": [], "stop": True, "stop_type": finish, "tokens_predicted": count}

    def _known(self) -> bool:
        key = os.environ.get("LLAMA_API_KEY")
        if key and self.headers.get("Authorization") != f"Bearer {key}":
            self._fail(401, "Invalid API Key", "authentication_error")
            return False
        return True

    def _fail(self, status: int, message: str, kind: str) -> None:
        self._send({"error": {"message": message, "type": kind, "code": status}}, status)

    def _send(self, body: object, status: int = 200) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def _entry(text: str, told: Mapping[str, float], body: dict[str, Any]) -> dict[str, Any]:
    after = body["post_sampling_probs"]
    name, tops = ("prob", "top_probs") if after else ("logprob", "top_logprobs")

    def one(word: str) -> dict[str, Any]:
        shown = "" if word == END else word
        value = math.exp(told[word]) if after else told[word]
        return {"id": _IDS[word], "token": shown, "bytes": [*shown.encode()], name: value}

    return {**one(text), tops: [one(word) for word in list(told)[: body["n_probs"]]]}


def _faults() -> dict[str, Any]:
    path = os.environ.get(FAULTS)
    return json.loads(Path(path).read_bytes()) if path and Path(path).exists() else {}


def _digest(path: str) -> str | None:
    content = Path(path).read_bytes()
    return hashlib.sha256(content).hexdigest() if content[:4] == b"GGUF" else None


def _error(words: str) -> int:
    sys.stderr.write(f"error: {words}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
