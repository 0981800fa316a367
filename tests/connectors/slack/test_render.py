# SPDX-License-Identifier: Apache-2.0
"""What goes out: valid for Slack, and inert whatever a model writes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from goodbot.api.actions import STAR_ROW, THUMBS, retry_row
from goodbot.api.events import Button
from goodbot_connectors.slack import forms, home, presses, render
from goodbot_connectors.slack.presses import EXPLAIN, AnswerRef, Opening
from goodbot_fakes.slack.blocks import IN_MESSAGES, IN_VIEWS, check, elements
from hypothesis import given
from hypothesis import strategies as st

from tests.connectors import parsing

ABOUT = AnswerRef(turn="5f1e0c7a9b3d2468", message="1795291540.000100", channel="D1", thread="1.0")
JOINER = "\u2060"
# What makes Slack notify somebody, wherever it stands, and what does so in running text only.
PINGS = re.compile(r"<(?:@[A-Z0-9]|#[A-Z0-9]|!(?:channel|here|everyone|group|subteam|date)\b)")
NAMES = re.compile(r"@(?:channel|here|everyone|group)\b")
WORDS = st.sampled_from(
    [
        "<!channel>",
        "<@U0ADA0001>",
        "<#C0LAB0001>",
        "<!subteam^S1|@team>",
        "@here",
        "@",
        "<",
        "!",
        "<!",
        "[bank](https://evil.example)",
        "](",
        "]",
        "(https://evil.example)",
        "![x](https://evil.example)",
        "[1]: https://evil.example",
        "<https://evil.example|bank>",
        "```",
        "```python",
        "`",
        "~~~",
        "\n",
        "&lt;!channel&gt;",
        "&",
        "😀",
        "\u202eevil",
        "\ud800",
        "a@b.example",
        "word",
        "x" * 300,
    ]
)
TEXT = st.lists(WORDS | st.text(max_size=8), max_size=60).map("".join)


@given(TEXT)
def test_nothing_pings_and_no_link_hides_where_it_leads(text: str) -> None:
    """Slack documents its `markdown` block as standard Markdown, which here another parser reads."""
    markdown = render.inert(text)
    markdown.encode()
    assert not PINGS.search(markdown), "nobody is notified, not out of code either"
    assert not any(NAMES.search(words) for words in parsing.running(markdown))
    assert parsing.acting(markdown) == []
    assert not set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069") & set(markdown)


@given(TEXT)
def test_words_are_kept(text: str) -> None:
    plain = re.sub("[\u202a-\u202e\u2066-\u2069\u2060]", "", text)
    clean = plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert render.inert(text).replace(JOINER, "") == clean


@given(TEXT)
def test_the_notification_is_escaped_and_short(text: str) -> None:
    shown = render.fallback(text)
    assert len(shown) <= 4000
    assert "<" not in shown
    assert ">" not in shown
    assert not re.search(r"&(?!amp;|lt;|gt;)", shown)


@given(TEXT, st.sampled_from([(), THUMBS, STAR_ROW, retry_row()]))
def test_every_message_is_valid(text: str, buttons: tuple[Button, ...]) -> None:
    body = render.message(text[: render.LIMIT // 2], ABOUT, buttons)
    blocks = check(body["blocks"], IN_MESSAGES)
    assert blocks[0]["text"].strip()
    assert len(blocks[0]["text"]) <= 12_000
    pressed = [presses.read(element.value) for element in elements(blocks)]
    assert [action for action, _ in pressed] == [button.action for button in buttons]
    assert {about.turn for _, about in pressed} <= {ABOUT.turn}


@given(TEXT, st.integers(0, 400))
def test_what_is_streamed_is_the_beginning_of_the_whole(text: str, end: int) -> None:
    """Only pieces are appended, so an inert beginning must stay one."""
    part = render.inert(render.beginning(text[:end]))
    assert render.inert(text).startswith(part) or part.endswith("\ufffd")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("see [here](https://a.example)", "see [here]|(https://a.example)"),
        ("Use `Vec<String>`, `@Override` and `items[0](x)`.", None),
        ("npm i @types/node; c<d; x = a[0][1]; d: dict[str, int]: f; a@b.org", None),
        ("```python\n@decorator\nx[0](1)\n```", None),
        ("1. So:\n\n    ```html\n    <b>\n    ```\n\n- ```\n  <b>\n  ```", None),
        ("10. So:\n    ```html\n    <b>\n    ```", None),
        ("a ` b\nand `<c>`\n\nmore `<d>`", "a ` b\nand `<|c>`\n\nmore `<d>`"),
        ("~~~\n```\n~~~\n[a](b)\n```", "~~~\n```\n~~~\n[a]|(b)\n```"),
        ("- ```\n  x\n  ```\n[a](b)", "- ```\n  x\n  ```\n[a]|(b)"),
        ("```\n<!DOCTYPE html>\n```", None),
        ("```\n<!here>\n``` and `<@U1>`", "```\n<|!here>\n``` and `<|@U1>`"),
        ("@channel `@channel`", "@|channel `@channel`"),
        ("Vec<String>, </b> and <!-- x", "Vec<|String>, <|/b> and <|!-- x"),
        ("[a]\n\n[a]: https://evil.example", "[a]\n\n[a]|: https://evil.example"),
        ("1 < 2 and **bold**, ada@example.org", None),
        ("```", None),
    ],
)
def test_inert(written: str, shown: str | None) -> None:
    assert render.inert(written).replace(JOINER, "|") == (written if shown is None else shown)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("See `a\nb<c> @here` now", "See `a\nb<|c> @|here` now"),
        ("So:\n\n    <b> @here", "So:\n\n    <|b> @|here"),
    ],
)
def test_what_slack_does_not_say_it_shows_as_code_is_running_text(written: str, shown: str) -> None:
    """It names code between backticks and fences, and says nothing of line breaks or of indented lines."""
    assert render.inert(written).replace(JOINER, "|") == shown


def test_thumbs_are_slacks_own_feedback_buttons() -> None:
    [_, row] = render.message("An answer.", ABOUT, THUMBS)["blocks"]
    assert row["type"] == "context_actions"
    [element] = row["elements"]
    assert element["type"] == "feedback_buttons"
    assert presses.read(element["positive_button"]["value"])[0] == "good"
    assert presses.read(element["negative_button"]["value"])[0] == "bad"


def test_an_offer_lets_say_why_and_other_buttons_do_not() -> None:
    offer = render.notice("Bad. 3 of 40.", ABOUT, retry_row())["blocks"]
    check(offer, IN_MESSAGES)
    actions = [presses.read(element.value)[0] for element in elements(offer)]
    assert actions == [*(button.action for button in retry_row()), EXPLAIN]
    assert len({element.action_id for element in elements(offer)}) == len(actions)
    confirm = (Button(action="run:reset yes", label="Reset"),)
    found = elements(render.notice("Sure?", AnswerRef(), confirm)["blocks"])
    assert [presses.read(element.value)[0] for element in found] == ["run:reset yes"]


@pytest.mark.parametrize("rate", [True, False])
@pytest.mark.parametrize("ours", [True, False])
def test_the_modal_is_valid(rate: bool, ours: bool) -> None:
    opening = Opening(trigger="1.2", user="U1", about=ABOUT, rate=rate, ours=ours)
    view = forms.modal(opening)
    check(view["blocks"], IN_VIEWS)
    assert len(view["title"]["text"]) <= 24
    assert presses.load(view["private_metadata"]) == ABOUT
    asked = [block["block_id"] for block in view["blocks"] if block["type"] == "input"]
    assert asked == ([*["verdict"] * rate, "reason", "better"] if ours else [])
    assert ("submit" in view) == ours


@given(TEXT, TEXT)
def test_the_home_tab_is_valid_and_plain(status: str, more: str) -> None:
    view = home.view(channel="D1", status=status * 20, more=more)
    check(view["blocks"], IN_VIEWS, 100)
    assert presses.load(view["private_metadata"]).channel == "D1"
    texts = [block["text"] for block in view["blocks"] if "text" in block]
    assert {text["type"] for text in texts} == {"plain_text"}
    assert all(0 < len(text["text"]) <= 3000 for text in texts)


def test_the_home_tab_speaks_the_readers_language() -> None:
    blocks = home.view(channel="D1", status="", more="", language="de")["blocks"]
    said = [block["text"]["text"] for block in blocks if "text" in block]
    assert said == ["goodbot", "Hier ist nichts für dich.", "Hier ist nichts für dich."]
    [row] = [block["elements"] for block in blocks if block["type"] == "actions"]
    assert [button["text"]["text"] for button in row] == ["Aktualisieren", "Letzte Antworten", "Hilfe"]


@given(st.text(max_size=80), st.text(max_size=80))
def test_ids_that_are_none_are_dropped(turn: str, rest: str) -> None:
    action, about = presses.read(f"{turn} {rest}")
    assert isinstance(action, str)
    for key in (about.turn, about.message):
        assert key == "" or (key.isascii() and len(key) <= 64 and " " not in key)


def test_a_value_that_slack_would_refuse_is_an_error() -> None:
    with pytest.raises(ValueError, match="2000"):
        presses.write("run:" + "x" * 3000, AnswerRef())


def test_what_was_written_is_read_again() -> None:
    value: Any = presses.write("again:long", ABOUT)
    assert presses.read(value) == ("again:long", AnswerRef(ABOUT.turn, ABOUT.message))
