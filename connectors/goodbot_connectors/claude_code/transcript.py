# SPDX-License-Identifier: Apache-2.0
"""Which words a turn of Claude Code answers, as its own transcript has them.

The hooks alone do not always tell. What is typed while Claude works is queued: its UserPromptSubmit
then names the turn *under way*, and the turn that answers it later begins without one (Claude Code
2.1.330). The transcript has each prompt with the id of its own turn.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from goodbot.base.text import clean

from goodbot_connectors.claude_code.payloads import LONGEST, NOTIFICATION, is_command
from goodbot_connectors.kit.fields import Json, as_json, items, string, sub

_LARGEST = 16 * 1024 * 1024
"""Bytes from its end that are looked at: some hundred tool calls."""
_OWN = ("<command-", "<local-command-", "[Request interrupted")


@dataclass(frozen=True, kw_only=True, slots=True)
class TranscriptTurn:
    """What the transcript says of one turn."""

    text: str
    """Its prompt; empty where no person wrote one."""
    queued: bool = False
    """Whether it waited behind another turn: no hook has named it by its own id, then."""
    during: tuple[str, ...] = ()
    """What the person wrote while Claude worked on it, and Claude has read before it answered."""
    answered: bool = False
    """Whether its answer is there, too: only then has all of the turn been written."""


def look(path: str, session: str, prompt_id: str, answer: str = "") -> TranscriptTurn | None:
    """What a session's transcript says of a turn; None when there is none, or nothing in it.

    Claude Code writes it with a delay: at a Stop it may end in the middle of the turn.
    """
    text: str | None = None
    queued = answered = False
    during: list[str] = []
    parts: dict[str, str] = {}
    for row in _rows(path, session, prompt_id):
        mine = row.get("promptId") == prompt_id
        if row.get("isSidechain") or row.get("isMeta"):
            continue
        if row.get("type") == "user" and mine and text is None:
            said = _said(row)
            if said is not None:
                text, queued = said, string(row, "promptSource") == "queued"
        elif row.get("type") == "user" and row.get("promptId") and not mine and text is not None:
            break  # the next turn
        elif text is not None and row.get("type") == "assistant":
            id_ = string(sub(row, "message"), "id")  # a row for each part of a message
            parts[id_] = parts.get(id_, "") + _bare(_text(row))
            answered = answered or parts[id_] == _bare(answer) != ""
        elif text is not None and (more := _during(row)):
            during.append(more)
    if text is None:
        return None
    return TranscriptTurn(text=text, queued=queued, during=tuple(during), answered=answered)


def later(path: str, session: str, last: str, known: frozenset[str]) -> bool | None:
    """Whether there is a turn after `last` that is none of `known`; None: `last` is not there, others are."""
    begun = answerable = False
    for row in _rows(path, session, last):
        begun = True
        if row.get("isSidechain") or row.get("isMeta") or row.get("isCompactSummary"):
            continue
        if row.get("type") == "assistant":
            if answerable and _bare(_text(row)):
                return True
        elif row.get("type") == "user" and (id_ := string(row, "promptId")):
            said = _said(row)
            if said is None:
                continue
            answerable = id_ not in known and not is_command(said)
            # What Claude Code itself does (`/model`) is a turn only if Claude says something then.
            if answerable and said and not _text(row).startswith(_OWN):
                return True
    return None if not begun and b'"promptId"' in _tail(path, session) else False


def _said(row: Json) -> str | None:
    """A person's words in a row of theirs, "" for what is no person's; None: it is a tool's result."""
    message = sub(row, "message")
    if any(string(block, "type") == "tool_result" for block in items(message, "content")):
        return None
    if not isinstance(message.get("content"), str | list):
        return None
    content = _text(row)
    kind = string(sub(row, "origin"), "kind")
    if kind not in ("", "human") or content.startswith((NOTIFICATION, "<bash-")):
        return ""
    return clean(_command(content))[:LONGEST].strip()


def _text(row: Json) -> str:
    """The words of a row's message."""
    message = sub(row, "message")
    parts = (string(block, "text") for block in items(message, "content"))
    return string(message, "content") or "\n".join(part for part in parts if part)


def _bare(text: str) -> str:
    return "".join(clean(text).split())


def _command(content: str) -> str:
    """`/review src` as it was typed, where the row has it taken apart."""
    name, args = (_between(content, tag) for tag in ("command-name", "command-args"))
    return f"{name} {args}".strip() if content.startswith("<command-") and name else content


def _between(text: str, tag: str) -> str:
    _, found, rest = text.partition(f"<{tag}>")
    inside, closed, _ = rest.partition(f"</{tag}>")
    return inside.strip() if found and closed else ""


def _during(row: Json) -> str:
    """What was queued and has been read within the turn."""
    attachment = sub(row, "attachment")
    if string(attachment, "type") != "queued_command":
        return ""
    prompt = string(attachment, "prompt")
    return "" if prompt.startswith(NOTIFICATION) else clean(prompt)[:LONGEST].strip()


def _rows(path: str, session: str, prompt_id: str) -> Iterator[Json]:
    """Rows that may matter, from the turn's first mention on."""
    data = _tail(path, session)
    needle = prompt_id.encode()
    start = data.find(needle)
    if start < 0:
        return
    start = data.rfind(b"\n", 0, start) + 1
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        line = data[start:end]
        if any(word in line for word in (b'"promptId"', b'"queued_command"', b'"assistant"')):
            with contextlib.suppress(ValueError, RecursionError):  # half of a line, say
                yield as_json(json.loads(line))
        start = end + 1


def _tail(path: str, session: str) -> bytes:
    """The end of a transcript of this session: a file of ours, among Claude Code's projects."""
    where = Path(path)
    if where.name != f"{session}.jsonl" or "projects" not in where.parts or not where.is_absolute():
        return b""
    try:
        descriptor = os.open(where, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            info = os.fstat(descriptor)
            if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid():
                return b""
            file.seek(max(0, info.st_size - _LARGEST))
            return file.read(_LARGEST)
    except (OSError, ValueError):
        return b""
