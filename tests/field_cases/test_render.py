# SPDX-License-Identifier: Apache-2.0
"""F12: what people copy out of an answer is what the model wrote, on every platform."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from goodbot.api.events import ChannelKind, ChannelRef, Reply
from goodbot.base.text import open_fence, split, units
from goodbot_connectors.discord import render as discord
from goodbot_connectors.slack import render as slack
from goodbot_connectors.teams import render as teams
from goodbot_connectors.telegram import render as telegram

JOINER = "\u2060"
PRIVATE = ChannelRef(connector="telegram", account="1", id="42", kind=ChannelKind.PRIVATE)


def on_teams(text: str) -> str:
    """Two blanks before a line's end are how Teams's Markdown breaks a line."""
    return teams.inert(text).replace("  \n", "\n")


def on_telegram(text: str) -> str:
    [message] = telegram.messages(PRIVATE, Reply(text=text))
    return str(message["text"])


MARKDOWN: dict[str, Callable[[str], str]] = {
    "discord": discord.inert,
    "slack": slack.inert,
    "teams": on_teams,
}
INLINE = "Use `Vec<String>`, `@Override` and `items[0](x)`."
NESTED = "1. First:\n\n   ```java\n   @Override\n   List<String> a;\n   ```\n"
RUNNING = "pip install 'pkg@git+https://x' ; npm i @types/node ; mail a@b.org ; a < b and c<d"
COPIED = {
    "code in a line": INLINE,
    "code in a list": NESTED,
    "commands, addresses and comparisons": RUNNING,
    # Siblings: other languages of programs, and other scripts around code.
    "C++ and a shell": '`std::map<int, std::vector<T>>` and `echo "$@" <(ls)`',
    "a decorator and a link": "`@app.route('/x')` then `![a](b)` and `[a][0](1)`",
    "among Chinese": "用 `List<字符串>` 和 `@覆盖`。",
    "among Arabic": "استخدم `List<T>` و `@Override` هنا",
    "a block among Japanese": "例：\n\n```ts\n@Input() a: Array<string>;\nx[0](1)\n```\n\n以上。",
    "two blocks": "```\n@a <b>\n```\n\nand\n\n```\n[c](d)\n```",
}


@pytest.mark.parametrize("platform", MARKDOWN)
@pytest.mark.parametrize("name", COPIED)
def test_f12_no_sign_that_nobody_sees_is_in_what_people_copy(name: str, platform: str) -> None:
    assert MARKDOWN[platform](COPIED[name]).strip() == COPIED[name].strip()


def test_f12_telegram_has_code_as_entities_and_leaves_it_alone() -> None:
    assert on_telegram(INLINE) == "Use Vec<String>, @Override and items[0](x)."
    assert on_telegram(NESTED).strip() == "1. First:\n\n@Override\nList<String> a;"


@pytest.mark.parametrize(("text", "limit"), [("👨‍👩‍👧‍👦" * 20, 64), ("🇩🇪" * 40, 70), ("e\u0301" * 100, 64)])
def test_f12_a_cut_loses_no_sign(text: str, limit: int) -> None:
    parts = split(text, limit)
    assert "".join(parts) == text
    assert all(units(part) <= limit for part in parts)


def test_f12_a_block_that_is_cut_is_one_in_each_part() -> None:
    code = "\n".join(f"x{number} = {number}" for number in range(400))
    first, *rest = split(f"Text\n```python\n{code}\n```", 2000)
    assert first.startswith("Text\n```python\n")
    assert first.endswith("```")
    assert all(part.startswith("```python\n") for part in rest)
    assert all(open_fence(part) is None for part in (first, *rest))
