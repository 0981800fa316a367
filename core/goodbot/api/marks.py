# SPDX-License-Identifier: Apache-2.0
"""A template's own marks in people's words, broken: where somebody else makes the prompt, or where a mark is
plain text to the tokenizer, nothing else can tell whose it is.

A word joiner (U+2060) behind the first character of a mark makes other tokens of it. It is nothing to the
eye, stands in prompts only, and is taken out of the answers to them.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from goodbot.api import headings
from goodbot.api.headings import INNER, Heading
from goodbot.base import endings
from goodbot.base.errors import ConfigError
from goodbot.base.thoughts import KNOWN, ThoughtTags, opened_by
from goodbot.base.worded import Worded

_Value = TypeVar("_Value")
Pattern = re.Pattern[str]
Match = re.Match[str]
BREAK = endings.BREAK
_BRACKETS = (
    "INST SYSTEM_PROMPT AVAILABLE_TOOLS TOOL_CALLS TOOL_RESULTS TOOL_CONTENT ARGS CALL_ID THINK IMG gMASK "
    r"BOS EOS MODEL_SETTINGS UNUSED_TOKEN_\d+"
)
_ANGLES = (
    r"s bos eos pad unk start_of_turn end_of_turn start_of_image end_of_image sop eop think "
    r"thinking thought reasoning tool_call tool_response tool_calls tool_result functions "
    r"function_calls seed:\w+ reserved_\d+ extra_id_\d+ unused\d+ SPECIAL_\d+ BOS_TOKEN EOS_TOKEN"
)
_LONGEST = 1 << 20
_DEEPEST = 40
"""Patterns within patterns, at most."""
MOST_ADDED = 70_000
"""Added tokens of a model, at most: those that speak have some 66,000. Each costs memory and time."""
_MOST_CHARACTERS = 4 << 20
"""Of all their names."""
_WORDS = "heading"
_ARGUMENTS = "arguments"
"""Of a call: JSON, in which a heading begins no turn."""
_BLANK = r"[ \t\xa0\u3000]"
_BLANKS = _BLANK + "{0,64}"
_STARTS = r"[\n\r\v\f\x85\u2028\u2029>\]\ue000-\uf8ff]"
"""What a line begins behind: also a mark, which has the same place in what a template writes."""
_SPOKEN = re.compile(r"['\"]system['\"]|(?:\{\{|\bset role\b)[^{}]{0,200}?(?:\.role\b|\[['\"]role['\"]\])")
"""Where a template tells a system message from others, or writes any role as it is named."""
_REFUSED = re.compile(r"raise_exception\(\s*['\"][^'\"]{0,80}?\bsystem\b[^'\"]{0,80}?\bnot\b", re.IGNORECASE)
_MALFORMED = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)


def written(template: str) -> tuple[tuple[str, ...], set[Heading]]:
    """The marks that the source of a chat template writes: signs and headings."""
    return headings.written(template[:_LONGEST])


def pattern(names: Iterable[str], heads: Iterable[Heading] = ()) -> Pattern:
    """Finds the first character of each of these marks, also where two share some."""
    behind: dict[str, set[str]] = {}
    for name in sorted({name for name in names if len(name) > 1}):
        behind.setdefault(name[0], set()).add(name[1:])
    return _beginning({first: (either(rest),) for first, rest in behind.items()}, heads)


def either(names: Iterable[str]) -> str:
    """The pattern of any of these, the longest that fits. It is as fast for 30,000 names as for three."""
    words = sorted({*names})
    return _either(words, _DEEPEST) if words else r"(?!)"


def _either(words: Sequence[str], deep: int) -> str:
    """Of sorted words: by what they begin with, then by what follows."""
    if len(words) == 1:
        return re.escape(words[0])
    if not deep:
        return f"(?:{'|'.join(map(re.escape, sorted(words, key=len, reverse=True)))})"
    branches: list[str] = []
    for _, found in itertools.groupby((word for word in words if word), key=lambda word: word[0]):
        alike = [*found]
        both = enumerate(zip(alike[0], alike[-1], strict=False))
        size = next((at for at, (one, other) in both if one != other), len(alike[0]))
        rest = _either([word[size:] for word in alike], deep - 1)
        branches.append(re.escape(alike[0][:size]) + rest)
    return f"(?:{'|'.join(branches)}){'' if words[0] else '?'}"


def _beginning(behind: Mapping[str, Iterable[str]], heads: Iterable[Heading] = ()) -> Pattern:
    """Finds a sign with any of these patterns behind it, or a heading's first where it begins a line; with
    none, nothing.

    The sign comes first, so that text without it costs next to nothing, however many marks there are.
    """
    found = [f"{re.escape(first)}(?={'|'.join(rest)})" for first, rest in behind.items()]
    lines: list[str] = []
    inline: list[str] = []
    for head in sorted(heads, key=lambda one: one.words):
        rest = re.escape(head.words[1:]) + (r"[ \t]*(?:\n|\Z)" if head.alone else "")
        lines.append(f"{re.escape(head.words[0])}(?={rest})")
        inline += lines[-1:] if head.inline else []
    heading = [rf"(?:\A|{_STARTS}){_BLANKS}(?:{'|'.join(lines)})"] if lines else []
    heading += [rf"{_BLANK}(?:{'|'.join(inline)})"] if inline else []
    found += [f"(?P<{_WORDS}>{'|'.join(heading)})"] if heading else []
    return re.compile("|".join(found) or r"(?!)")


def _of_any_family() -> Pattern:
    brackets, angles = (rf"(?:{'|'.join(words.split())})" for words in (_BRACKETS, _ANGLES))
    angular = (rf"\|{INNER}\|?>", rf"{INNER}\|>", rf"｜{INNER}｜>", r"</?SYS>>", rf"/?{angles}>")
    square = (rf"/?{brackets}\]", rf"\|/?{INNER}\|\]", r"[a-z]~\[")
    other = (r"~!?[a-z][\[\]]",)
    return _beginning({"<": angular, "[": square, "]": other})


ANY = _of_any_family()
"""The marks of the families that are known, where the model's own cannot be read."""


def of(model: Path) -> Pattern:
    """The marks of the model in a directory; `ANY` where its tokenizer cannot be read."""
    return _of(model, _state(model / "tokenizer.json"), _template_state(model))


@functools.lru_cache(maxsize=8)
def _of(model: Path, *_: object) -> Pattern:
    names = [token["content"] for token in added(model) if is_mark(token)]
    found, heads = written(chat_template(model))
    if not (names or found or heads):
        return ANY
    known = pattern((*names, *found), heads)
    return known if names else re.compile(f"{known.pattern}|{ANY.pattern}")


def broken(value: _Value, found: Pattern) -> _Value:
    """The same words with each mark broken, however deep they lie; in a call's arguments signs alone."""

    def change(text: str, within: bool) -> str:
        return found.sub(
            lambda match: match[0] if within and match.lastgroup == _WORDS else match[0] + BREAK, text
        )

    return cast("_Value", _mapped(value, change))


def mapped(value: _Value, change: Callable[[str], str]) -> _Value:
    """The same with each text changed, however deep it lies."""
    return cast("_Value", _mapped(value, lambda text, _: change(text)))


def _mapped(value: Any, change: Callable[[str, bool], str], within: bool = False) -> Any:
    """`within`: it lies in a call's arguments."""
    if isinstance(value, str):
        return change(value, within)
    if isinstance(value, Mapping):
        entries = cast("Mapping[Any, Any]", value).items()
        return {
            _mapped(key, change, within): _mapped(item, change, within or key == _ARGUMENTS)
            for key, item in entries
        }
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_mapped(item, change, within) for item in cast("Sequence[Any]", value)]
    return value


def whole(value: _Value) -> _Value:
    """What a model wrote, without what breaks marks, however deep it lies."""
    return mapped(value, lambda text: text.replace(BREAK, ""))


def chat_template(path: Path) -> str:
    """The model's chat template, as tokenizers look for it; empty where there is none."""
    return _chat_template(path, _template_state(path))


def takes_system(template: str) -> bool:
    """Whether a chat template writes a system message, as far as its text tells; False for an empty one.

    It is a program of somebody else's, so it is read here and not run.
    """
    return bool(_SPOKEN.search(template)) and not _REFUSED.search(template)


def _template_state(path: Path) -> object:
    return tuple(_state(path / name) for name in ("chat_template.jinja", "tokenizer_config.json"))


def _state(file: Path) -> object:
    """Which file is there, in which state: what was read of it before holds for as long as this does."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@functools.lru_cache(maxsize=8)
def _chat_template(path: Path, *_: object) -> str:
    file = path / "chat_template.jinja"
    try:
        if file.is_file():
            return file.read_text("utf-8", "replace")[:_LONGEST]
        found = json.loads((path / "tokenizer_config.json").read_bytes()).get("chat_template")
    except _MALFORMED:
        return ""
    return found if isinstance(found, str) else json.dumps(found or "", ensure_ascii=False)


def added(model: Path) -> list[dict[str, Any]]:
    """The added tokens of a tokenizer.json, whose vocabulary behind them is not parsed; none without one.

    Raises ConfigError for more of them than can be told from people's words: without all of them nothing of
    that model is answered.
    """
    found: list[dict[str, Any]] = []
    characters = 0
    try:
        text = (model / "tokenizer.json").read_text("utf-8")
        for one in _listed(text, text.index("[", text.index('"added_tokens"')) + 1):
            found.append({**one, "content": str(one["content"])})
            characters += len(found[-1]["content"])
            if len(found) > MOST_ADDED or characters > _MOST_CHARACTERS:
                many = (
                    "{path} has more than {count} added tokens, or very long ones: goodbot cannot tell all "
                    "of them from people's words. Use another model"
                )
                path = f"{model}/tokenizer.json"
                raise ConfigError(Worded(many, path=path, count=f"{MOST_ADDED:,}"))
    except _MALFORMED:
        return []
    return found


def _listed(text: str, at: int) -> Iterator[dict[str, Any]]:
    """The entries of a list of JSON from behind its bracket on, one at a time: it may have millions."""
    decoder = json.JSONDecoder()
    while True:
        while text[at] in " \t\r\n,":
            at += 1
        if text[at] == "]":
            return
        one, at = decoder.raw_decode(text, at)
        yield one


def is_mark(token: Mapping[str, Any]) -> bool:
    """Whether an added token is more than a run of blanks or signs, as some vocabularies have for code."""
    return bool(token.get("special")) or any(sign.isalnum() for sign in token["content"])


def opened(model: Path, *, thinking: bool) -> ThoughtTags | None:
    """The thought that the template of our base begins, for a server that has no parser for it."""
    return opened_by_template(chat_template(model), thinking=thinking)


def opened_by_template(template: str, *, thinking: bool) -> ThoughtTags | None:
    """The thought that a chat template begins for the model, read without running it.

    One that depends on whether the model is to think is begun only where it is.
    """
    _, found, tail = template.rpartition("add_generation_prompt")
    for one in KNOWN if found else ():
        for literal in re.finditer(r"'([^']*)'|\"([^\"]*)\"|\}([^{}]+)\{", tail):
            words = next(group for group in literal.groups() if group is not None)
            if opened_by(words.replace("\\n", "\n"), (one,)) is not None:
                asks = "thinking" in tail[: literal.start()]
                return one if thinking or not asks else None
    return None


def thinks(model: Path, *, thinking: bool) -> str:
    """Whether the model in a directory thinks, and who sees it; empty for one that does not, as far as
    its template says."""
    template = chat_template(model)
    if "thinking" in template.replace("<thinking", "").replace("</thinking", ""):
        if not thinking:
            return "the model can think before it answers, and does not: [serving] thinking = false"
    elif not any(one.opens in template for one in KNOWN if one.sure and not one.then):
        return ""
    return "the model thinks before it answers; that is not shown: `/rl thought` tells it to who asked"
