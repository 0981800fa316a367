# SPDX-License-Identifier: Apache-2.0
"""What other programs keep of ratings, as records of goodbot's own form. What cannot be one has no messages.

ReinforceClaw 0.1.0: the table `feedback` of its database. Open WebUI: the list that its admin page exports
under Evaluations, with the snapshot of each chat.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from goodbot.api.events import Message
from goodbot.api.labels import star_value
from goodbot.conversation.imports.files import objects
from goodbot.store import foreign

Records = Iterator[tuple[int, int, Any]]
"""How far it is, of how much, and the next record as goodbot's own export has it."""

OPEN_WEBUI = "open-webui"
_ROLES = ("system", "user", "assistant")
_DEEPEST = 20_000
_REASONING, _END = '<details type="reasoning"', "</details>"


def reinforceclaw(path: Path, mine: bool) -> Records:
    """It has one person: whoever imports."""
    for done, of, row in foreign.reinforceclaw(path):
        yield done, of, _feedback(row)


def _feedback(row: Mapping[str, Any]) -> dict[str, Any]:
    made = "\0".join(str(row.get(name)) for name in ("id", "created_at", "model", "prompt"))
    return {
        "id": _hashed("reinforceclaw", made),
        "at": _day(row.get("created_at")),
        "messages": _rollout(row.get("rollout_context")) or [{"role": "user", "content": row["prompt"]}],
        "answer": row["response"],
        "answered_by": row["model"],
        "ratings": {"": row["rating"]},
    }


def _rollout(context: Any) -> list[Message]:
    """The talk before the answer, where it was kept and ends with a question."""
    try:
        found: Any = json.loads(context or "{}")
    except (ValueError, TypeError, RecursionError):
        return []
    messages = _talk(_dict(found).get("messages"))
    return messages if messages and messages[-1]["role"] == "user" else []


def _talk(messages: Any) -> list[Message]:
    listed = cast("list[Any]", messages) if isinstance(messages, list) else []
    return [
        {"role": one["role"], "content": one["content"]}
        for one in map(_dict, listed)
        if one.get("role") in _ROLES and isinstance(one.get("content"), str)
    ]


def _day(text: Any) -> float:
    """SQLite's `datetime('now')`; what is none counts as the earliest."""
    try:
        return datetime.fromisoformat(str(text)).replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def open_webui(path: Path, mine: bool) -> Records:
    """Who rated is a person of its own, or whoever imports."""
    size = path.stat().st_size
    for done, one in objects(path):
        yield done, size, _rated(_dict(one), mine)


def _rated(feedback: dict[str, Any], mine: bool) -> dict[str, Any]:
    data, meta = _part(feedback, "data"), _part(feedback, "meta")
    messages, answer, model = _thread(feedback, str(meta.get("message_id")))
    thought, answer = _thought(answer)
    who = "" if mine else f"{OPEN_WEBUI}:{feedback.get('user_id')}"
    remark = " ".join(str(data.get("comment") or "").split()) or str(data.get("reason") or "").replace(
        "_", " "
    )
    return {
        "id": _hashed(OPEN_WEBUI, str(feedback.get("id"))),
        "at": feedback.get("created_at"),
        **({} if mine else {"connector": OPEN_WEBUI, "talker": str(feedback.get("user_id"))}),
        "place": str(meta.get("chat_id") or "imported"),
        "messages": messages,
        "answer": answer,
        "thought": thought,
        "answered_by": str(data.get("model_id") or model or OPEN_WEBUI),
        "ratings": {who: _opinion(data, _part(feedback, "details"))},
        "remarks": [{"kind": "comment", "rater": who, "text": remark}] if remark.strip() else [],
    }


def _opinion(data: Mapping[str, Any], details: Mapping[str, Any]) -> Any:
    """The thumb, and one to ten points as one to five stars."""
    thumb = {"1": 1, "-1": -1}.get(str(data.get("rating")), data.get("rating"))
    points = (_part(data, "details") or details).get("rating")
    if isinstance(points, int) and 1 <= points <= 10:
        return [thumb, star_value((points + 1) // 2)]
    return thumb


def _thread(feedback: Mapping[str, Any], message_id: str) -> tuple[list[Message], str, str]:
    """The messages before the rated one, its text, and its model; nothing where it is not in the snapshot."""
    chat = _part(_part(feedback, "snapshot"), "chat")
    history = _part(_part(chat, "chat"), "history") or _part(chat, "history")
    history = history or _part(_part(feedback, "snapshot"), "history")
    found: Any = history.get("messages")
    listed = (
        cast("list[Any]", found) if isinstance(found, list) else list(_part(history, "messages").values())
    )
    by_id = {str(one.get("id")): one for one in map(_dict, listed)}
    rated = by_id.get(message_id, {})
    line: list[dict[str, Any]] = []
    above = str(rated.get("parentId"))
    while (one := by_id.pop(above, None)) is not None and len(line) < _DEEPEST:  # a circle ends, too
        line.append(one)
        above = str(one.get("parentId"))
    messages = [{**one, "content": _thought(one["content"])[1]} for one in _talk(line[::-1])]
    content = rated.get("content")
    return messages, content if isinstance(content, str) else "", str(rated.get("model") or "")


def _thought(text: str) -> tuple[str, str]:
    """The thought that Open WebUI shows before an answer, and the answer."""
    if not text.lstrip().startswith(_REASONING) or (end := text.find(_END)) < 0:
        return "", text
    _, _, inside = text[:end].partition(">")
    summary = inside.find("</summary>")
    thought = inside[summary + len("</summary>") :] if summary >= 0 else inside
    return thought.strip(), text[end + len(_END) :].strip()


def _part(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    return _dict(value.get(name))


def _dict(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _hashed(*parts: str) -> str:
    """The same record has the same id whenever it is brought in."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]
