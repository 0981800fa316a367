# SPDX-License-Identifier: Apache-2.0
"""What goes out: valid for Discord, and inert whatever a model writes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from goodbot.api.actions import STAR_ROW, THUMBS, retry_row, run
from goodbot.api.events import Button, Reply
from goodbot.base.text import units
from goodbot_connectors.discord import forms, presses, render
from goodbot_connectors.discord.presses import EXPLAIN, LIMIT, OPINION, AnswerRef
from hypothesis import given
from hypothesis import strategies as st

from tests.connectors import parsing
from tests.connectors.discord import schema
from tests.support import within

ABOUT = AnswerRef(turn="5f1e0c7a9b3d2468", message="1440000071303168000")
JOINER = "\u2060"
WORDS = st.sampled_from(
    [
        "@everyone",
        "@here",
        "<@123>",
        "<@&123>",
        "<#123>",
        "</rl:123>",
        "<:yay:123>",
        "<a:yay:123>",
        "@",
        "<",
        "[bank](https://evil.example)",
        "](",
        "]",
        "(https://evil.example)",
        "```",
        "```python",
        "````",
        "`",
        "\\",
        "- ",
        "  ",
        "> ",
        "~~~",
        "``",
        "\n",
        "😀",
        "\u202eevil",
        "\ud800",
        "a@b.example",
        "word",
        "x" * 300,
    ]
)
TEXT = st.lists(WORDS | st.text(max_size=8), max_size=60).map("".join)
BUTTONS = st.sampled_from([(), THUMBS, STAR_ROW, render.with_form(retry_row())])


@given(TEXT)
def test_nobody_is_named_and_no_link_hides_where_it_leads(text: str) -> None:
    shown = render.inert(text)
    shown.encode()
    assert parsing.acting_on_discord(shown) == []
    assert not set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069") & set(shown)


@given(TEXT)
def test_words_are_kept(text: str) -> None:
    plain = re.sub("[\u202a-\u202e\u2066-\u2069\u2060]", "", text)
    clean = plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert render.inert(text).replace(JOINER, "") == clean


@given(TEXT, BUTTONS)
def test_every_message_is_short_enough_and_pings_nobody(text: str, buttons: tuple[Button, ...]) -> None:
    bodies = render.messages(Reply(text=text * 3, turn=ABOUT.turn, buttons=buttons))
    assert bodies
    for body in bodies:
        assert body["content"].strip()
        assert units(body["content"]) <= render.LIMIT
        assert body["allowed_mentions"] == {"parse": []}
        assert not body["components"] or body is bodies[-1]
    found = [one for row in bodies[-1]["components"] for one in row["components"]]
    pressed = [presses.read(one["custom_id"]) for one in found]
    assert [action for action, _ in pressed] == [button.action for button in buttons]
    assert {about.turn for _, about in pressed} <= {ABOUT.turn}


@pytest.mark.parametrize("buttons", [(), THUMBS, STAR_ROW, render.with_form(retry_row())])
def test_bodies_are_what_discord_takes(buttons: tuple[Button, ...]) -> None:
    schema.require()
    [body] = render.messages(Reply(text="4", turn=ABOUT.turn, buttons=buttons), ABOUT)
    schema.check_object("MessageEditRequestPartial", body)
    new = render.new(body, nonce="0123456789abcdef0", reply_to="1440000071303168000", silent=True)
    schema.check_object("MessageCreateRequest", new)
    for rate in (True, False):
        data = forms.form(ABOUT, rate=rate)
        schema.check_object("ModalInteractionCallbackRequestData", data)


def test_the_longest_message_needs_no_second_one() -> None:
    assert len(render.parts("🙂" * (render.LIMIT // 2))) == 1
    assert len(render.parts("@here " * 330)) == 2, "its joiners are counted"
    assert render.parts("") == ("…",)


def test_a_code_block_goes_on_in_the_next_message() -> None:
    code = "\n".join(f"print({n})" for n in range(400))
    parts = render.parts(f"Here:\n```python\n{code}\n```\nDone.")
    assert len(parts) > 1
    for part in parts:
        assert part.count("```") % 2 == 0


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("see [here](https://a.example)", "see [here]|(https://a.example)"),
        ("[here](" + " " * 12 + "https://a.example)", "[here]|(" + " " * 12 + "https://a.example)"),
        ("`@decorator`, `<@1>`, ``[a](http://b)``", None),
        ("[a`b](http://c) `", None),
        ("Use ``a`b<@1> @here`` and `` ` `` now", None),
        ("``a`b @here", "``a`b @|here"),
        ("``a ``` @here`` ```", "``a ``` @|here`` ```"),
        ("`a``b @here`", None),
        ("`a``b @here", "`a``b @|here"),
        ("`a```b @here`", "`a```b @|here`"),
        ("See `a\nb<@1> @here` now", None),
        ("See ``a\n\n> b`<@1> @here`` now", None),
        ("- See `a\nb @here`", "- See `a\nb @|here`"),
        ("> See `a\nb @here`", "> See `a\nb @|here`"),
        ("1. See\n   `a\nb @here`", "1. See\n   `a\nb @|here`"),
        ("# See `a\nb @here`", "# See `a\nb @|here`"),
        ("[a`b](http://c)", "[a`b]|(http://c)"),
        ("```python\n@decorator\n[a](http://b)\n```", None),
        ("- So:\n  ```\n  [a](http://b)\n  ```", None),
        ("- So:\n  ```\n[a](http://b)\n  ```", "- So:\n  ```\n[a]|(http://b)\n  ```"),
        ("```\n[a](http://b)", "```\n[a]|(http://b)"),
        ("x ``` y\n```\n[a](http://b)\n```", "x ``` y\n```\n[a]|(http://b)\n```"),
        ("````\n```\n[a](http://b)\n````", "````\n```\n[a]|(http://b)\n````"),
        ("~~~\n[a](http://b)\n~~~", "~~~\n[a]|(http://b)\n~~~"),
        ("\\`[a](http://b)`", "\\`[a]|(http://b)`"),
        ("mail a@b.example, npm i @types/node, items[0](x), Vec<String>, </b>", None),
        (
            "@everyone <@1> <@!1> <@&1> <#1> </rl:1> <:a:1> <a:b:1>",
            "@|everyone <|@1> <|@!1> <|@&1> <|#1> <|/rl:1> <|:a:1> <|a:b:1>",
        ),
        ("1 <2 and <3", None),
    ],
)
def test_code_is_left_to_be_copied_where_it_is_code_to_discord(written: str, shown: str | None) -> None:
    assert render.inert(written).replace(JOINER, "|") == (written if shown is None else shown)


def test_an_indented_block_is_running_text_to_discord() -> None:
    """Its Markdown knows fences and backticks only."""
    assert (
        render.inert("So:\n\n    [a](http://b) @here").replace(JOINER, "|")
        == "So:\n\n    [a]|(http://b) @|here"
    )


def test_a_hostile_text_is_shown_in_time() -> None:
    for text in (
        "`" * 30_000,
        "` `` " * 8000,
        "](" * 15_000,
        "](" + " " * 30_000,
        "@a" * 15_000,
        "<@" * 15_000,
        "```\n" * 8000,
    ):
        with within(1):
            render.parts(text)


@given(st.text(max_size=200), st.from_regex(r"[\w-]{0,48}", fullmatch=True).filter(str.isascii))
def test_every_custom_id_fits_and_comes_back(action: str, turn: str) -> None:
    about = AnswerRef(turn=turn, message=ABOUT.message)
    kept = {presses.key(action): action}
    custom_id = presses.write(action, about)
    assert len(custom_id) <= LIMIT
    if not action.startswith("#"):
        assert presses.read(custom_id, kept) == (action, about)
    assert presses.too_long(action, about) == (presses.key(action) in custom_id) or "#" in action


def test_only_what_is_offered_with_other_answers_has_the_form() -> None:
    assert render.with_form(retry_row())[-1].action == EXPLAIN
    confirm = (run("reset yes", "Yes"),)
    assert render.with_form(confirm) == confirm


def test_a_form_asks_for_a_verdict_only_where_none_was_given() -> None:
    def fields(data: dict[str, Any]) -> list[str]:
        return [one["component"]["custom_id"] for one in data["components"]]

    assert fields(forms.form(ABOUT, rate=True)) == ["verdict", "stars", "reason", "better"]
    assert fields(forms.form(ABOUT, rate=False)) == ["reason", "better"]
    assert presses.read(forms.form(ABOUT, rate=True)["custom_id"]) == (OPINION, ABOUT)


@pytest.mark.parametrize("label", [True, False])
def test_a_form_is_read_in_labels_and_in_rows(label: bool) -> None:
    text = {"type": 4, "custom_id": "reason", "value": " too long "}
    choice = {"type": 3, "custom_id": "verdict", "values": ["bad"]}
    if label:
        components = [{"type": 18, "component": text}, {"type": 18, "component": choice}]
    else:
        components = [{"type": 1, "components": [text]}, {"type": 1, "components": [choice]}]
    found = forms.answers({"components": components})
    assert found == {"reason": "too long", "verdict": "bad"}


def test_a_form_that_is_nested_without_end_is_read_to_an_end() -> None:
    inner: dict[str, Any] = {"type": 4, "custom_id": "reason", "value": "x"}
    for _ in range(2000):
        inner = {"type": 1, "components": [inner]}
    assert forms.answers(inner) == {}
