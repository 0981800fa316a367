# SPDX-License-Identifier: Apache-2.0
"""A model directory's tokenizer and chat template, and what counts as a model directory at all."""

# pyright: standard
# (tokenizers and safetensors ship no complete types)

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

from goodbot.api import model_shape
from goodbot.api.completions import without_tools
from goodbot.api.events import Message
from goodbot.api.sampler import TokenizedTurn
from goodbot.base.errors import ServerError, TrainingError, message_of
from goodbot.base.thoughts import options
from goodbot.base.worded import Worded

from goodbot_training.backends.marks import AddedTokens, byte_ids
from goodbot_training.backends.odd_tokenizers import calm, check_ids, check_template
from goodbot_training.backends.thoughts import BROKEN, ModelThoughts
from goodbot_training.backends.ways import PROBE, WAYS, Way, helped, shows


def context_of(config: Mapping[str, Any]) -> int:
    """Tokens that the model has positions for, as its config says; very many where it does not."""
    return model_shape.context_of(config) or 1 << 20


def check_model_directory(directory: Path) -> dict[str, Any]:
    """The model's config; a sentence (TrainingError) when this is no model we can load.

    Only a local directory with safetensors weights: nothing is downloaded, unpickled or executed.
    """

    def refuse(why: Worded) -> TrainingError:
        wrong = "{directory} is not a model that can be loaded: {why}."
        return TrainingError(Worded(wrong, directory=directory, why=why))

    if not directory.is_dir():
        raise refuse(Worded("there is no such directory"))
    try:
        config = json.loads((directory / "config.json").read_bytes())
    except FileNotFoundError:
        raise refuse(Worded("config.json is missing")) from None
    except (OSError, ValueError):
        raise refuse(Worded("config.json cannot be read")) from None
    if not isinstance(config, dict) or "model_type" not in config:
        raise refuse(Worded("config.json names no model_type"))
    weights = sorted(path.name for path in directory.glob("model*.safetensors"))
    if not weights:
        raise refuse(Worded("there are no model*.safetensors files"))
    if "model.safetensors" in weights and len(weights) > 1:
        # mlx-lm would load all of them, the last one winning.
        raise refuse(Worded("model.safetensors lies beside other model*.safetensors files"))
    if strange := [name for name in _indexed(directory) if name not in weights]:
        odd = "model.safetensors.index.json names {name}, which is none of them"
        raise refuse(Worded(odd, name=strange[0]))
    if not any((directory / name).exists() for name in ("tokenizer.json", "tokenizer_config.json")):
        raise refuse(Worded("there is no tokenizer"))
    return config  # pyright: ignore[reportUnknownVariableType]


def _indexed(directory: Path) -> list[str]:
    """The files that the index names; transformers would open any, pickles too. None without an index."""
    try:
        index = json.loads((directory / "model.safetensors.index.json").read_bytes())
        return sorted({str(name) for name in index["weight_map"].values()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


class ChatTemplate:
    """Messages ↔ token ids, by the model's own template."""

    @calm()
    def __init__(self, directory: Path, config: dict[str, Any]) -> None:
        from transformers import AutoTokenizer

        self.vocabulary = sys.maxsize
        """So many token ids the model knows, where one is loaded."""
        check_ids(directory)
        try:
            with calm():
                self._tokenizer: Any = AutoTokenizer.from_pretrained(
                    str(directory), local_files_only=True, trust_remote_code=False
                )
        except MemoryError:
            raise
        except Exception as error:  # odd files end in errors of any kind, and tokenizers has none of its own
            odd = Worded("The tokenizer in {directory} cannot be loaded.", directory=directory)
            raise TrainingError(odd) from error
        if not self._tokenizer.chat_template:
            raise TrainingError(Worded("The model in {directory} has no chat template.", directory=directory))
        check_template(self._tokenizer.chat_template, directory)
        backend = getattr(self._tokenizer, "backend_tokenizer", None)
        if backend is None:  # the marks in what people write could not be told from its own
            lacks = "The tokenizer in {directory} needs a tokenizer.json beside it."
            raise TrainingError(Worded(lacks, directory=directory))
        self._marks = AddedTokens(backend, str(self._tokenizer.chat_template))
        self._bytes = byte_ids(backend)
        self._opening = ""
        """How an answer begins, where the template does not begin it when it is asked to."""
        self._of_bytes = {byte: token for token, byte in self._bytes.items()}
        self.thoughts = ModelThoughts(self._tokenizer)
        self._way = self._fitting(directory)
        self._opening = self._unbegun()
        declared = self._stops(directory, config)
        self.stops = declared
        self.end = self._end()
        self.stops |= {self.end}
        self.helped = self._helped(declared)
        """What a program that has the model's files alone would get wrong, a clause each."""

    @calm()
    def prompt(self, messages: Sequence[Message], *, thinking: bool | None = False) -> tuple[int, ...]:
        """Token ids up to where the answer, or its thought, starts. Raises TrainingError(kind="data").

        `thinking` is for templates that let one choose; None: no thought at all comes before the answer.
        """
        prompt = self._prompt(messages, bool(thinking))
        prompt = self.thoughts.closed(prompt) if thinking is None else prompt
        # Whoever reads them is of no more use on a GPU, and reads elsewhere in memory with MLX.
        if max(prompt, default=0) >= self.vocabulary:
            raise TrainingError("The prompt has token ids that this model does not know.", kind="data")
        return prompt

    def _prompt(self, messages: Sequence[Message], thinking: bool) -> tuple[int, ...]:
        """Token ids up to where the answer starts. Raises TrainingError(kind="data").

        A template that refuses what an agent's conversation has is given the same words more plainly.
        """
        from jinja2 import TemplateError

        refusal = (TemplateError, TypeError, ValueError)
        plain, tools = without_tools(messages)
        try:
            return self._rendered(self._way(plain), tools, thinking)
        except refusal:
            plainest = WAYS[-2 + WAYS.index(self._way) % 2]  # in parts, if it wants those
            with suppress(*refusal):
                return self._rendered(plainest(plain), [], thinking)
        with suppress(*refusal):  # a template that wants a system message first
            return self._rendered(self._way([{"role": "system", "content": ""}, *plain]), tools, thinking)
        raise TrainingError("The model's chat template refuses this conversation.", kind="data")

    def _helped(self, declared: frozenset[int]) -> tuple[str, ...]:
        end = "" if self.end in declared else self.name(self.end)
        return helped(self._way, opening=bool(self._opening), end=end)

    def _fitting(self, directory: Path) -> Way:
        """The first way in which the template shows all that is said. Raises TrainingError."""
        refused = changed = ""
        for way in WAYS:
            try:
                shown = self._written(way(PROBE), [], answer=True)
            except Exception as error:  # a template is a program: it may fail in any way
                refused = message_of(error)[:300]
                continue
            if shows(shown):
                return way
            changed = Worded("it leaves out what is said, or changes it")
        odd = (
            "The chat template of the model in {directory} cannot be used: {why}. "
            "Take another model, or mend its chat_template."
        )
        raise TrainingError(Worded(odd, directory=directory, why=changed or refused))

    def _unbegun(self) -> str:
        """What the template writes before an answer's words, if it leaves that out where one is to begin."""
        with suppress(Exception):  # a template that wants other turns
            asked, answered = self._way(PROBE[:2]), self._written(self._way(PROBE[:3]), [], answer=False)
            begun = self._written(asked, [], answer=True)
            head, found, _ = answered.partition(str(PROBE[2]["content"]))
            same = begun == self._written(asked, [], answer=False)
            if same and found and head.startswith(begun) and head[len(begun) :].strip():
                return head[len(begun) :].rstrip(" ")
        return ""

    def _rendered(self, messages: Sequence[Message], tools: Sequence[Any], thinking: bool) -> tuple[int, ...]:
        written = self._written(messages, tools, answer=True, thinking=thinking)
        return tuple(self._marks.encode(written))

    def _written(
        self, messages: Sequence[Message], tools: Sequence[Any], *, answer: bool, thinking: bool = False
    ) -> str:
        """What the template makes of it; with `answer` up to where one begins."""
        written = self._tokenizer.apply_chat_template(
            self._marks.quote(messages),
            tools=self._marks.quote(tools) or None,
            add_generation_prompt=answer,
            **options(thinking),  # read by the templates that know it
            tokenize=False,
        )
        return written + self._opening if answer else written

    @calm()
    def turn(self, messages: Sequence[Message], response: str, thought: str = "") -> TokenizedTurn:
        """A whole turn; the response ends with the end token, as a sampled one does.

        A thought is part of the prompt: what is learnt is the answer.
        """
        ids = self._marks.words(response)
        if thought:
            prompt = self.thoughts.thought(self.prompt(messages, thinking=True), self._marks.words(thought))
        else:
            prompt = self.prompt(messages, thinking=None)
        return TokenizedTurn(prompt=prompt, response=(*ids, self.end))

    @calm(ServerError)
    def text(self, tokens: Sequence[int]) -> str:
        """Plain text, without the template's own tokens. Bytes that are no character are one sign each."""
        return self._tokenizer.decode(
            self._whole(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )

    def spelt(self, tokens: Sequence[int], values: Sequence[float]) -> list[tuple[str, float]]:
        """Each token's text with its value. Tokens that make a character together are one, and add up."""
        found: list[tuple[str, float]] = []
        begun, total = 0, 0.0
        for at, value in enumerate(values, 1):
            total += value
            before = max(0, begun - 1)  # some tokenizers take the space off the first
            text = self.text(tokens[before:at])
            if at == len(tokens) or not text.endswith(BROKEN):
                found.append((text[len(self.text(tokens[before:begun])) :], total))
                begun, total = at, 0.0
        return found

    def _whole(self, tokens: Sequence[int]) -> list[int]:
        """Where a byte is missing, the library would give up the whole run of bytes that it stands in."""
        if not self._bytes:
            return list(tokens)
        found: list[int] = []
        for are_bytes, run in groupby(tokens, self._bytes.__contains__):
            if are_bytes:
                spelt = bytes(self._bytes[token] for token in run).decode(errors="replace")
                found += [self._of_bytes[byte] for byte in spelt.encode()]
            else:
                found += run
        return found

    @calm(ServerError)
    def name(self, token: int) -> str:
        """One token by itself as text, the template's own tokens too."""
        return self._tokenizer.decode([token], clean_up_tokenization_spaces=False)

    def _stops(self, directory: Path, config: dict[str, Any]) -> frozenset[int]:
        """Every token at which the model's files say that an answer ends."""
        found: set[int] = set()
        try:
            generation = json.loads((directory / "generation_config.json").read_bytes())
        except (OSError, ValueError):
            generation = {}
        if not isinstance(generation, dict):
            generation = {}
        for value in (
            generation.get("eos_token_id"),
            config.get("eos_token_id"),
            self._tokenizer.eos_token_id,
        ):
            found.update(value if isinstance(value, list) else [] if value is None else [value])
        return frozenset(int(one) for one in found)

    def _behind(self, message: Message, conversation: Sequence[Message]) -> list[int]:
        """What the template writes after a message of the probe, up to the next one's words."""
        written = self._written(self._way(conversation), [], answer=False)
        _, _, tail = written.rpartition(message["content"])
        return self._marks.encode(tail.partition(PROBE[3]["content"])[0])

    def _end(self) -> int:
        """The token that the template itself puts after an answer, whatever the files say.

        Where it puts none, that with which the next turn begins, if the files name it (GLM's `<|user|>`).
        """
        with suppress(Exception):  # a template that does not end with an answer
            for token in self._behind(PROBE[2], PROBE[:3]):
                if self._marks.is_special(token) or token in self.stops:
                    return token
        with suppress(Exception):
            for token in self._behind(PROBE[2], PROBE):
                if token in self.stops:
                    return token
        if self._tokenizer.eos_token_id is None:
            raise TrainingError("The model's tokenizer has no end token.")
        return int(self._tokenizer.eos_token_id)
