# SPDX-License-Identifier: Apache-2.0
"""Whoever writes answers in the serving benchmark: all on one model, each in a process of its own.

`python -m tests.benchmarks.serving_contenders MODEL KIND` is transformers' or mlx-lm's `generate` (torch,
mlx) or their continuous batching (torch-batching, mlx-batching): it reads one JSON object a line,
`{"questions", "together", "max_tokens"}`, and answers with `{"tokens", "first"}`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
from goodbot.api.backend import BackendSpec
from goodbot.api.server import Generated, GenerateRequest
from goodbot.base.spawn import child_environment
from goodbot.inference.servers.embedded import EmbeddedServer

from tests.benchmarks.serving_schedulers import batching_in_mlx, batching_in_torch
from tests.benchmarks.shapes import CPU, make_model
from tests.core.builders import server_parts
from tests.core.inference.servers import mlx_far_side

ROOT = Path(__file__).parents[2]
_TICKS = os.sysconf("SC_CLK_TCK")
_LAST_SECONDS = 10.0


def make(directory: Path, shape: Mapping[str, Any] = CPU["4M Llama"], words: int = 2048) -> Path:
    """A model of random weights, all of whose tokens have a text. It seldom ends an answer by itself."""
    from tokenizers import Tokenizer

    make_model(directory, {**shape, "vocab_size": words})
    file = str(directory / "tokenizer.json")
    tokenizer = Tokenizer.from_file(file)
    known = tokenizer.get_vocab_size()
    tokenizer.add_tokens([f" w{number}" for number in range(known, words)])
    tokenizer.save(file)
    return directory


class Contender(ABC):
    """Answers questions. `pid` is the process that computes."""

    pid: int

    @abstractmethod
    async def start(self, home: Path) -> None:
        """Come up."""

    @abstractmethod
    async def stop(self) -> None:
        """Go down."""

    @abstractmethod
    async def answer(self, questions: Sequence[str], chats: int, max_tokens: int) -> int:
        """Answer all, `chats` at the same time; how many tokens were written."""

    @contextmanager
    def cost(self) -> Iterator[dict[str, float]]:
        """Seconds, and processor seconds of its process and of this one, which asks."""
        found: dict[str, float] = {}
        wall, cpu = time.perf_counter(), self._cpu()
        yield found
        found.update(wall=time.perf_counter() - wall, cpu=self._cpu() - cpu)

    def _cpu(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return time.process_time() + (int(fields[11]) + int(fields[12])) / _TICKS


class Chats(Contender):
    """A server: each chat asks its next question when it has its answer."""

    async def answer(self, questions: Sequence[str], chats: int, max_tokens: int) -> int:
        left, written = list(enumerate(questions)), 0

        async def chat() -> None:
            nonlocal written
            while left:
                tokens = await self.ask(*left.pop(), max_tokens)
                written += tokens  # not in one: the sum would be read before it is waited for

        await asyncio.gather(*(chat() for _ in range(chats)))
        return written

    @abstractmethod
    async def ask(self, seed: int, question: str, max_tokens: int) -> int:
        """One answer; its tokens."""


class Embedded(Chats):
    """Our sampler process."""

    def __init__(self, backend: BackendSpec, model: Path, alone: bool = False) -> None:
        """`alone`: without a GPU, in fp32."""
        hidden = {"CUDA_VISIBLE_DEVICES": ""} if alone else {}
        parts = server_parts(backend, model, environ={**child_environment(), **hidden})
        self.server = EmbeddedServer(None, parts)

    async def start(self, home: Path) -> None:
        await self.server.start()
        process: Any = self.server._sampler._process
        self.pid = process.pid

    async def stop(self) -> None:
        await self.server.stop()

    async def ask(self, seed: int, question: str, max_tokens: int) -> int:
        return len((await self.whole(seed, question, max_tokens))[0].tokens)

    async def whole(
        self, seed: int, question: str, max_tokens: int, version: int | None = None
    ) -> tuple[Generated, float, float]:
        """An answer; seconds to its first piece and to its end."""
        request = GenerateRequest(
            messages=[{"role": "user", "content": question}],
            max_tokens=max_tokens,
            temperature=1.0,
            seed=seed,
            version=version,
        )
        began, first = time.perf_counter(), 0.0
        async for piece in self.server.generate(request):
            first = first or time.perf_counter() - began
            if isinstance(piece, Generated):
                return piece, first, time.perf_counter() - began
        raise RuntimeError("the answer has no end")


class MlxServer(Chats):
    """mlx_lm.server, which batches by itself."""

    def __init__(self, model: Path) -> None:
        self._model, self._stack = model, AsyncExitStack()

    async def start(self, home: Path) -> None:
        far_side = self._stack.enter_context(mlx_far_side.running(home / "mlx", self._model))
        self.pid = far_side.pid
        self._session = await self._stack.enter_async_context(
            aiohttp.ClientSession(far_side.url, connector=aiohttp.TCPConnector(limit=0))
        )

    async def stop(self) -> None:
        await self._stack.aclose()

    async def ask(self, seed: int, question: str, max_tokens: int) -> int:
        body = {
            "model": str(self._model),
            "messages": [{"role": "user", "content": question}],
            "max_tokens": max_tokens,
            "temperature": 1.0,
            "seed": seed,
            "stream": True,
            "stream_options": {"include_usage": True},  # as ours does
        }
        written = 0
        async with self._session.post("/v1/chat/completions", json=body) as response:
            async for line in response.content:
                if line.startswith(b"data: {"):
                    usage = json.loads(line[6:]).get("usage") or {}
                    written = int(usage.get("completion_tokens") or written)
        if not written:
            raise RuntimeError("mlx_lm.server has not told how much it wrote")
        return written


class Generate(Contender):
    """transformers' `generate`, one question after the other or all of a round in one padded batch; or
    mlx-lm's, one by one; or the continuous batching of either."""

    def __init__(
        self, model: Path, *, together: bool = False, mlx: bool = False, batching: bool = False
    ) -> None:
        self._model, self._together = model, together or batching
        self._framework = ("mlx" if mlx else "torch") + ("-batching" if batching else "")

    async def start(self, home: Path) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.benchmarks.serving_contenders",
            str(self._model),
            self._framework,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=ROOT,
        )
        self.pid = self._process.pid
        await self.told(["Hello?"], 1, 2)

    async def stop(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        try:
            async with asyncio.timeout(_LAST_SECONDS):
                await self._process.wait()
        except TimeoutError:  # it was left in the middle of its work
            self._process.kill()
            await self._process.wait()

    async def answer(self, questions: Sequence[str], chats: int, max_tokens: int) -> int:
        return int((await self.told(questions, chats, max_tokens))["tokens"])

    async def told(self, questions: Sequence[str], chats: int, max_tokens: int) -> dict[str, float]:
        """`tokens`, and `first`: the seconds to a first token where `max_tokens` is 1."""
        together = chats if self._together else 1
        task = {"questions": list(questions), "together": together, "max_tokens": max_tokens}
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(task).encode() + b"\n")
        return json.loads(await self._process.stdout.readline())


def generating(model: Path) -> Any:
    """What answers a task of `Generate`."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)  # as ours does for so small a model
    tokenizer: Any = AutoTokenizer.from_pretrained(str(model), padding_side="left")
    device, dtype = ("cuda", torch.bfloat16) if torch.cuda.is_available() else ("cpu", torch.float32)
    causal: Any = AutoModelForCausalLM.from_pretrained(str(model), dtype=dtype).to(device).eval()
    end = causal.generation_config.eos_token_id or causal.config.eos_token_id

    def work(task: dict[str, Any]) -> dict[str, float]:
        written, first = 0, 0.0
        for start in range(0, len(task["questions"]), task["together"]):
            asked = task["questions"][start : start + task["together"]]
            torch.manual_seed(start)
            began = time.perf_counter()
            inputs = tokenizer.apply_chat_template(
                [[{"role": "user", "content": question}] for question in asked],
                add_generation_prompt=True,
                return_tensors="pt",
                return_dict=True,
                padding=True,
            ).to(device)
            with torch.no_grad():
                found = causal.generate(
                    **inputs,
                    max_new_tokens=task["max_tokens"],
                    do_sample=True,
                    top_k=0,
                    top_p=1.0,
                    temperature=1.0,
                    pad_token_id=end,
                )
            tokenizer.batch_decode(found, skip_special_tokens=True)
            first = time.perf_counter() - began
            for row in found[:, inputs["input_ids"].shape[1] :].tolist():
                written += row.index(end) + 1 if end in row else len(row)
        return {"tokens": written, "first": first}

    return work


def generating_in_mlx(model: Path) -> Any:
    """As `generating`, with mlx-lm."""
    if sys.platform == "linux":
        os.environ.setdefault("MLX_DISABLE_COMPILE", "1")  # as ours does
    import mlx.core as mx
    from mlx_lm.generate import stream_generate
    from mlx_lm.sample_utils import make_sampler
    from mlx_lm.utils import load

    found: Any = load(str(model))
    causal, tokenizer = found[:2]

    def work(task: dict[str, Any]) -> dict[str, float]:
        written, first = 0, 0.0
        for number, question in enumerate(task["questions"]):
            mx.random.seed(number)
            began = time.perf_counter()
            prompt = tokenizer.apply_chat_template(
                [{"role": "user", "content": question}], add_generation_prompt=True
            )
            pieces = stream_generate(
                causal, tokenizer, prompt, max_tokens=task["max_tokens"], sampler=make_sampler(temp=1.0)
            )
            for place, _ in enumerate(pieces):
                first = time.perf_counter() - began if not place else first
                written += 1
        return {"tokens": written, "first": first}

    return work


def main() -> None:
    """`Generate`'s process."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no result
    kinds = {
        "torch": generating,
        "torch-batching": batching_in_torch,
        "mlx": generating_in_mlx,
        "mlx-batching": batching_in_mlx,
    }
    work = kinds[sys.argv[2]](Path(sys.argv[1]))
    for line in sys.stdin:
        print(json.dumps(work(json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    main()
