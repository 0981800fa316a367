# SPDX-License-Identifier: Apache-2.0
"""A model's thoughts as its tokenizer knows them: which marks it has, and where an answer begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from goodbot.base.endings import Ending, tidy
from goodbot.base.errors import ServerError
from goodbot.base.thoughts import KNOWN, Splitter, Thought, ThoughtTags, opened_by

from goodbot_training.backends.odd_tokenizers import calm

_TAIL = 24
"""Tokens at a prompt's end among which it begins a thought."""
_FINAL = "<|channel|>final<|message|>"
BROKEN = "\ufffd"
"""What a tokenizer writes for bytes that are no character yet."""
_LOOSE = f" \n\t{BROKEN}"
Decode = Callable[[Sequence[int]], str]


class ModelThoughts:
    """The marks of one model: those in its template or among its own tokens, else all that are known."""

    def __init__(self, tokenizer: Any) -> None:
        template = str(tokenizer.chat_template)
        added = tokenizer.get_added_vocab()
        own = tuple(one for one in KNOWN if one.opens in template or one.opens in added)
        self.marks = own or KNOWN
        self._tokenizer = tokenizer
        self._channels = _FINAL in template or any(one.closes == _FINAL for one in own)

    @calm(ServerError)
    def raw(self, tokens: Sequence[int]) -> str:
        """Text with the template's own tokens."""
        return self._tokenizer.decode(
            list(tokens), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )

    def opened(self, prompt: Sequence[int]) -> ThoughtTags | None:
        """The thought that a prompt ends within."""
        return opened_by(self.raw(prompt[-_TAIL:]), self.marks)

    def closed(self, prompt: tuple[int, ...]) -> tuple[int, ...]:
        """The prompt with no thought before the answer: one that it begins is ended at once."""
        if (marks := self.opened(prompt)) is not None:
            return (*prompt, *self._encode(f"\n{marks.closes}\n\n"))
        if self._channels and not self.raw(prompt[-_TAIL:]).endswith(_FINAL):
            return (*prompt, *self._encode(_FINAL))
        return prompt

    def thought(self, prompt: tuple[int, ...], words: Sequence[int]) -> tuple[int, ...]:
        """The prompt with a thought's words, as the model would have written it before its answer."""
        opened = self.opened(prompt)
        marks = opened or self.marks[0]
        if marks.closes == _FINAL:
            begin, end = marks.opens, f"<|end|><|start|>assistant{_FINAL}"
        else:
            begin, end = f"{'' if opened else marks.opens}\n", f"\n{marks.closes}\n\n"
        start = () if opened and begin == "\n" else self._encode(begin)
        return (*prompt, *start, *words, *self._encode(end))

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False)


class Leading:
    """What comes before the answer of one row, until that has begun."""

    def __init__(
        self, thoughts: ModelThoughts, plain: Decode, prompt: Sequence[int], asked: object = ()
    ) -> None:
        """`plain` makes text of tokens without the template's own; `asked`: the messages of the prompt."""
        self._splitter = Splitter(thoughts.marks, thoughts.opened(prompt), ends=False, asked=asked)
        self._ending = Ending()
        self._plain = plain
        self._all = ""
        self._untold = ""
        self.over = False
        """The answer has begun, or nothing will come."""
        self.tokens = 0
        """So many of the first tokens are no answer."""

    @property
    def thought(self) -> str:
        """What was thought."""
        return tidy(self._splitter.thought)

    def told(self) -> str:
        """What was thought since this was asked last."""
        new, self._untold = self._untold, ""
        return new

    def feed(self, piece: str, tokens: Sequence[int], words: int, finish: str) -> str:
        """More text, and all tokens, the first `words` of which are no end; what the answer begins with,
        once it has begun."""
        self._all += piece
        pieces = self._splitter.feed(piece)
        if finish:
            pieces += self._splitter.end(cut=finish == "length")
        self._untold += "".join(one.text for one in pieces if isinstance(one, Thought))
        if not (finish or self._splitter.answering):
            return ""
        self.over = True
        self._ending = Ending(self._splitter.wrapper)
        said = "".join(one for one in pieces if not isinstance(one, Thought))
        same = said.strip() == self._all.strip()
        self.tokens = 0 if same else self._begin(tokens[:words], said)
        text = self._plain(tokens[self.tokens : words]) or ("" if same else said)
        text = text if finish else text.rstrip(BROKEN)
        return text if same else text.lstrip()

    def more(self, piece: str) -> str:
        """More of the answer, but for what may be the mark behind it."""
        return self._ending.feed(piece)

    def rest(self) -> str:
        """What was held back of the answer."""
        return self._ending.end()

    def _begin(self, words: Sequence[int], said: str) -> int:
        """Where the answer's tokens begin; a token that is of both counts to the thought."""
        for at in range(len(words) - 1, -1, -1):
            text = self._plain(words[at:])
            if said.strip() and text.strip(_LOOSE) == said.strip(_LOOSE):
                return at
            if len(text.strip()) > len(said.strip()):
                break
        return len(words)
