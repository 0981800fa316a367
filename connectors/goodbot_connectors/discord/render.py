"""Replies → bodies of messages. Pure: values in, JSON out.

A model writes Markdown, and Discord shows it. What would act by itself is switched off: nobody is
pinged, mentions and links that hide where they lead are broken with an invisible joiner, and nothing
is unfurled (Discord's fetch of a link that a model made up can carry words of the chat away).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from goodbot.buttons import RETRY
from goodbot.events import Button, Reply
from goodbot.text import blocks as code_blocks
from goodbot.text import one_way, split

from goodbot_connectors.discord.presses import EXPLAIN, About, write

LIMIT = 2000
"""The longest message, in UTF-16 code units."""
EPHEMERAL = 1 << 6
SILENT = 1 << 12
_NO_EMBEDS = 1 << 2
_ROW = 5
_ROWS = 5
_LABEL = 80
_JOINER = "\u2060"
_STYLES = {"good": 3, "bad": 4}
_SECONDARY = 2

# Inline code is passed over, people copy from there. One character is looked ahead: linear.
_ACTS = re.compile(
    r"`[^`\n]{1,500}`"
    r"|(?<!\w)@(?=[A-Za-z])"  # @everyone, @here
    r"|<(?=[@#:/]|a:|id:)"  # <@123>, <@&123>, <#123>, </rl:123>, <:emoji:123>
    r"|\](?=\()"  # [your bank](https://evil.example)
)
_LINK = re.compile(r"\](?=\()")
_FENCE = "```"


def inert(text: str) -> str:
    """Markdown that mentions nobody and whose links show where they lead.

    Code blocks are left as they are, where Discord is sure to find the same ones as we: it takes three
    backticks anywhere for a fence, and none that is not closed.
    """
    text = one_way(text)
    found = list(code_blocks(text))
    alike = all(_FENCE not in block.text for block in found) and all(
        block.closed and block.fence.marker == _FENCE for block in found if block.fence
    )
    done, parts = 0, list[str]()
    for block in found:
        if block.fence is None:
            continue
        line_end = text.find("\n", block.fence.at)
        start = line_end + 1 if line_end >= 0 else len(text)
        end = start + len(block.text)
        code = text[start:end]
        parts += [_broken(text[done:start]), code if alike else _LINK.sub(_joined, code)]
        done = end
    return "".join([*parts, _broken(text[done:])])


def _broken(text: str) -> str:
    return _ACTS.sub(
        lambda found: _LINK.sub(_joined, found[0]) if found[0][0] == "`" else _joined(found), text
    )


def _joined(found: re.Match[str]) -> str:
    return f"{found[0]}{_JOINER}"


def parts(text: str) -> tuple[str, ...]:
    """The texts of the messages that `text` becomes, inert and short enough; at least one."""
    grown = len(inert(text)) - len(one_way(text))
    room = max(LIMIT - grown, LIMIT * 2 // 3)  # a sign takes two units at least, and grows by one
    found = tuple(inert(part) for part in split(one_way(text), room))
    return found or ("…",)


def messages(reply: Reply, about: About | None = None) -> tuple[dict[str, Any], ...]:
    """The body of each message that `reply` becomes, the buttons under the last one.

    Without `about`, the buttons are about the message itself.
    """
    texts = parts(reply.text)
    place = about or About(turn=reply.turn)
    return tuple(
        message(text, place, reply.buttons if n == len(texts) - 1 else ())
        for n, text in enumerate(texts)
    )


def message(text: str, about: About, buttons: Sequence[Button] = ()) -> dict[str, Any]:
    """One body, good for a new message and for an edit."""
    return {
        "content": text,
        "allowed_mentions": {"parse": []},
        "components": rows(about, buttons),
        "flags": _NO_EMBEDS,
    }


def new(
    body: dict[str, Any], *, nonce: str, reply_to: str = "", silent: bool = False
) -> dict[str, Any]:
    """A body for a message that is not there yet; Discord takes one `nonce` for one message."""
    flags = {"flags": body["flags"] | SILENT} if silent else {}
    reference: dict[str, Any] = {}
    if reply_to:
        reference["message_reference"] = {"message_id": reply_to, "fail_if_not_exists": False}
    return {**body, **flags, **reference, "nonce": nonce, "enforce_nonce": True}


def rows(about: About, buttons: Sequence[Button]) -> list[dict[str, Any]]:
    """Action rows of five buttons each."""
    faces = [
        {
            "type": 2, "style": _STYLES.get(button.action, _SECONDARY), "label": button.label[:_LABEL],
            "custom_id": write(button.action, about),
        }
        for button in buttons[: _ROW * _ROWS]
    ]  # fmt: skip
    return [{"type": 1, "components": faces[at : at + _ROW]} for at in range(0, len(faces), _ROW)]


def with_form(offer: Sequence[Button]) -> tuple[Button, ...]:
    """An offer of other answers, with the form that asks why."""
    retries = any(button.action.partition(":")[0] == RETRY for button in offer)
    return (*offer, Button(action=EXPLAIN, label="Say why…")) if retries else tuple(offer)
