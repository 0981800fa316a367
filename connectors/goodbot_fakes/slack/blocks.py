# SPDX-License-Identifier: Apache-2.0
"""Block Kit as far as a bot meets it: Slack's limits, the elements to press, the words to read.

The limits are those of docs.slack.dev/reference/block-kit. What breaks one is refused with
`invalid_blocks`, as Slack does, so that a connector finds out here and not in a workspace.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from goodbot_fakes.slack.errors import SlackError

Json = dict[str, Any]
IN_MESSAGES = {
    "actions",
    "context",
    "context_actions",
    "divider",
    "file",
    "header",
    "image",
    "input",
    "markdown",
    "plan",
    "rich_text",
    "section",
    "table",
    "task_card",
    "video",
}
IN_VIEWS = IN_MESSAGES - {"context_actions", "file", "markdown", "plan", "task_card"}
_MOST_ELEMENTS = {"actions": 25, "context": 10, "context_actions": 5}
_LONGEST = {"action_id": 255, "value": 2000, "accessibility_label": 75, "url": 3000}


@dataclass(frozen=True, kw_only=True, slots=True)
class Element:
    """Something that can be pressed. `spec` is the element as the app sent it."""

    block_id: str
    action_id: str
    value: str
    label: str
    spec: Json


def with_block_ids(blocks: Sequence[Json], mint: Callable[[str], str]) -> list[Json]:
    """A copy in which every block has an id, as Slack gives one to those without."""
    return [{**copy.deepcopy(block), "block_id": block.get("block_id") or mint("b")} for block in blocks]


def rich_text(text: str) -> list[Json]:
    """Plain words as Slack's own editor sends them."""
    section = {"type": "rich_text_section", "elements": [{"type": "text", "text": text}]}
    return [{"type": "rich_text", "elements": [section]}] if text else []


def elements(blocks: Sequence[Json]) -> list[Element]:
    """All that can be pressed, in order; feedback buttons are two, good first."""
    found: list[Element] = []
    for block in blocks:
        held = [*block.get("elements", ()), block.get("accessory"), block.get("element")]
        for spec in held:
            if isinstance(spec, dict) and "action_id" in spec:
                found += _pressable(str(block.get("block_id", "")), spec)  # type: ignore[arg-type]
    return found


def _pressable(block_id: str, spec: Json) -> Iterator[Element]:
    if spec["type"] == "feedback_buttons":
        faces = [spec["positive_button"], spec["negative_button"]]
    elif spec["type"] in ("button", "icon_button"):
        faces = [spec]
    else:
        return
    for face in faces:
        yield Element(
            block_id=block_id,
            action_id=spec["action_id"],
            value=face.get("value", ""),
            label=face["text"]["text"],
            spec={**spec, "text": face["text"]},
        )


def shown(text: str, blocks: Sequence[Json]) -> str:
    """The words that a person reads: those of the blocks, or else the text."""
    parts = [part for block in blocks if (part := _words(block))]
    return "\n".join(parts) if parts else unescape(text)


def _words(block: Json) -> str:
    match block["type"]:
        case "section" | "header":
            texts = [block["text"], *block.get("fields", ())] if "text" in block else block["fields"]
            return "\n".join(_read(text) for text in texts)
        case "markdown":
            return str(block["text"])
        case "rich_text":
            return "\n".join(_leaves(part) for part in block["elements"])
        case _:
            return ""


def _leaves(part: Json) -> str:
    if "elements" in part:
        between = "\n" if part["type"] == "rich_text_list" else ""
        return between.join(_leaves(inner) for inner in part["elements"])
    return str(part.get("text", part.get("url", "")))


def _read(text: Json) -> str:
    return unescape(text["text"]) if text["type"] == "mrkdwn" else str(text["text"])


def escape(text: str) -> str:
    """As Slack keeps what people type: docs.slack.dev/messaging/formatting-message-text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def unescape(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def check(blocks: object, allowed: set[str], most: int = 50) -> list[Json]:
    """The blocks, or `invalid_blocks` with what Slack says of them."""
    problems: list[str] = []
    if not isinstance(blocks, list):
        raise SlackError("invalid_blocks_format")
    listed: list[Any] = blocks  # type: ignore[assignment]
    if len(listed) > most:
        problems.append(f"no more than {most} items allowed [json-pointer:/blocks]")
    ids: list[str] = []
    for number, block in enumerate(listed):
        at = f"[json-pointer:/blocks/{number}]"
        if not isinstance(block, dict) or block.get("type") not in allowed:  # type: ignore[union-attr]
            problems.append(f"unsupported block type {at}")
            continue
        problems += [f"{problem} {at}" for problem in _problems(block)]  # type: ignore[arg-type]
        ids += [block["block_id"]] if "block_id" in block else []
    if len(ids) != len(set(ids)):
        problems.append("`block_id` must be unique")
    if problems:
        messages = [f"[ERROR] {problem}" for problem in problems]
        raise SlackError("invalid_blocks", response_metadata={"messages": messages})
    return listed


def _problems(block: Json) -> Iterator[str]:
    kind = block["type"]
    text = block.get("text")
    if kind == "section":
        if not (text or block.get("fields")):
            yield "a section needs text or fields"
        yield from _too_long(text, 3000)
        for field in block.get("fields", ()):
            yield from _too_long(field, 2000)
    elif kind == "header":
        yield from _too_long(text, 150)
    elif kind == "markdown" and not 0 < len(str(text or "")) <= 12_000:
        yield "markdown text must be 1 to 12000 characters"
    if len(block.get("block_id", "")) > 255:
        yield "block_id is longer than 255 characters"
    yield from _element_problems(block)


def _element_problems(block: Json) -> Iterator[str]:
    kind = block["type"]
    held: list[Json] = block.get("elements", [])
    if kind in _MOST_ELEMENTS and not 0 < len(held) <= _MOST_ELEMENTS[kind]:
        yield f"elements must be 1 to {_MOST_ELEMENTS[kind]}"
    ids = [element["action_id"] for element in held if "action_id" in element]
    if len(ids) != len(set(ids)):
        yield "`action_id` must be unique in a block"
    for element in held:
        feedback = element.get("type") in ("feedback_buttons", "icon_button")
        if kind in ("actions", "context_actions") and feedback != (kind == "context_actions"):
            yield f"unsupported element {element.get('type')}"
    for element in elements([block]):
        yield from _too_long(element.spec.get("text"), 75)
        if len(element.value) > _LONGEST["value"]:
            yield "value is longer than 2000 characters"
        for name, most in _LONGEST.items():
            if len(str(element.spec.get(name, ""))) > most:
                yield f"{name} is longer than {most} characters"


def _too_long(text: Mapping[str, Any] | None, most: int) -> Iterator[str]:
    if text is not None and not 0 < len(text["text"]) <= most:
        yield f"text must be 1 to {most} characters"
