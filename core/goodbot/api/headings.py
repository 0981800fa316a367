# SPDX-License-Identifier: Apache-2.0
"""What a chat template writes around people's words, where some of it is no token of its own.

Such a mark is plain text to the tokenizer: a sign (`[|user|]`), or a heading (`USER:`, `### Response:`). A
sign is one wherever it stands. A template that tells turns by a sign has no headings. A heading is one at the
beginning of a line only, or behind a blank where the template writes it so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

INNER = r"[^|｜<>'\"{}\s]{1,48}"
_SIGN = re.compile(
    rf"<\|{INNER}\|?>|<{INNER}\|>|<｜{INNER}｜>|<</?[A-Za-z]{{2,12}}>>|\[\|/?{INNER}\|\]"
    r"|\[/?[A-Za-z][A-Z_]{2,30}(?:\d+)?\]|\]~!?[a-z]\[|\]~[a-z]\]|\[[a-z]~\["
)
_ELEMENT = re.compile(r"</?[A-Za-z][\w.:-]{0,40}>")
"""A sign if the template writes it as one: a tool's description may have such, too."""
_QUIET = re.compile(
    r"[<\[]\W?(?:bos|eos|pad|unk|endoftext|(?:begin|start|end)\W?_?of\W?_?(?:text|sentence|document))\W?[>\]]"
    r"|.*(?:think|thought|reason|tool|function|image|video|audio|end|eot|sep|stop).*",
    re.IGNORECASE,
)
"""Signs that begin no turns, but texts, thoughts, tools and media; or that end what was said."""
_TURN = re.compile(
    r"</?(?:\w*(?:turn|role|user|assistant|human|bot|model|utterance|message|extra_id|reserved|special_\d)\w*|seed:\w+)>",
    re.IGNORECASE,
)
"""Elements that do."""
_TAG = re.compile(r"(\{\{[-+]?|\{%[-+]?|\{#|[-+]?\}\}|[-+]?%\}|#\})")
_PART = re.compile(
    r"(?P<role>(?<![\w.])(?:[\w.]{1,64}\[\s*['\"]role['\"]\s*\]|(?:[\w.]{1,64}\.)?role\b)"
    r"(?:\s*\|\s*\w+|\.\w+\(\))?)"
    r"|'(?P<one>(?:[^'\\]|\\.)*+)'|\"(?P<two>(?:[^\"\\]|\\.)*+)\"|(?P<glue>[+~\s()]+)|(?P<open>['\"].*+)|(?P<other>\w+|.)",
    re.DOTALL,
)
_TOOLS = re.compile(r"\b\w{0,64}tools\b")
_OTHERWISE = re.compile(
    r"\bnot\s+\w{0,64}tools\b|tools\s*(?:==|is)\s*(?:none|undefined|not\s+defined)|tools\s*\|\s*length\s*==\s*0|\bor\b",
    re.IGNORECASE,
)
_ROLE, _BREAK, _ASKED, _TOKEN = "\ue000", "\ue001", "\ue002", "\ue003"
_ROLES = ("system", "user", "assistant", "tool", "developer", "model", "human", "bot", "observation")
_ASKING = ("instruction", "instruct", "input", "question", "q", "用户", "问")
_ANSWERING = ("response", "output", "answer", "a", "ai", "助手", "答")
_NAMED = {*_ROLES, *_ASKING, *_ANSWERING}
_LONGEST, _WORDS, _COLONS = 64, 4, (":", "：")
_MOST, _PIECES, _AROUND, _LONG = 512, 64, 64, 256
"""Headings of a template; pieces with roles in them, and what is read of one."""


@dataclass(frozen=True, slots=True)
class Heading:
    """Words that begin a turn."""

    words: str
    inline: bool = False
    """The template writes it in the middle of a line, too, behind a blank."""
    alone: bool = False
    """It is one only where nothing else is on its line."""


def written(template: str) -> tuple[tuple[str, ...], set[Heading]]:
    """The marks that the source of a chat template writes: signs and headings.

    It is a program of somebody else's, so it is read here and not run.
    """
    found = pieces(template)
    text = "\n".join(found)
    clear, elements = {*_SIGN.findall(template), *_SIGN.findall(text)}, set(_ELEMENT.findall(text))
    told = [one for one in {*_SIGN.findall(text)} if not _QUIET.fullmatch(one)]
    told += filter(_TURN.fullmatch, elements)
    heads = set[Heading]() if told else {head for piece in found for head in _headings(piece)}
    return tuple(sorted(clear | elements)), set(sorted(heads, key=lambda one: one.words)[:_MOST])


def _headings(piece: str) -> Iterator[Heading]:
    """Words with a role's name, or what stands before an answer."""
    asked, token = piece.startswith(_ASKED), piece.startswith(_TOKEN)
    lines = _ELEMENT.sub("\n", _SIGN.sub("\n", piece.lstrip(_ASKED + _TOKEN))).split("\n")
    for at, line in enumerate(lines):
        words, inline = line.strip(), at == 0 and line[:1] == " "
        if not 1 < len(words) <= _LONGEST or not (words[0].isalpha() or words[0] == "#"):
            continue
        names = re.findall(r"\w+", words.casefold())
        if not names or len(names) > _WORDS or not (asked or _NAMED.intersection(names)):
            continue
        if words.endswith(_COLONS) or words[0] == "#":
            yield Heading(words, inline=inline)
        elif at + 1 < len(lines) and len(names) == 1 and not token:
            yield Heading(words, inline=inline, alone=True)


def pieces(template: str) -> list[str]:
    """What a template writes in one go, with the names of roles in their places; not what is about tools."""
    named = sorted({change(role) for role in _ROLES for change in (str.lower, str.title, str.upper)})
    found: dict[str, None] = {}
    built = 0
    for piece in dict.fromkeys("".join(_stream(template)).split(_BREAK)):
        if (first := piece.find(_ROLE)) < 0:
            found[piece] = None
        elif (built := built + 1) <= _PIECES:
            near = piece[max(first - _AROUND, 0) :][:_LONG]
            found.update(dict.fromkeys(near.replace(_ROLE, role) for role in named))
    return [piece for piece in found if piece.strip()]


def _stream(template: str) -> Iterator[str]:
    inside = behind = ""
    about = [False]
    """Of each block that is open: whether it is about tools."""
    for at, part in enumerate(_TAG.split(template)):
        if at % 2:
            if inside == "{#" and part != "#}":
                continue  # in a comment nothing is a tag
            inside = part[:2] if part[0] == "{" else ""
            if "%" in part:
                yield _BREAK + ("" if inside else behind)
            continue
        if inside == "{%":
            _enter(about, part)
            behind = _ASKED if "add_generation_prompt" in part else ""
        if inside != "{#" and not about[-1]:
            yield from _expression(part) if inside else [part]


def _enter(about: list[bool], tag: str) -> None:
    """Goes into or out of a block."""
    word = tag.split(maxsplit=1)[0] if tag.strip() else ""
    if word in ("endif", "endfor", "elif", "else") and len(about) > 1:
        about.pop()
    if word in ("if", "for", "elif", "else"):
        about.append(about[-1] or (bool(_TOOLS.search(tag)) and not _OTHERWISE.search(tag)))


def _expression(text: str) -> Iterator[str]:
    for part in _PART.finditer(text):
        if part["role"]:
            yield _ROLE
        elif (said := part["one"] if part["one"] is not None else part["two"]) is not None:
            yield re.sub(r"\\(.)", lambda sign: {"n": "\n", "t": "\t"}.get(sign[1], sign[1]), said)
        elif part["open"] or part["other"]:  # nothing ends a string that is open, so it is read once
            yield _BREAK + (_TOKEN if (part["other"] or "").endswith("_token") else "")
