"""What goes out: valid for Slack, and inert whatever a model writes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from goodbot.buttons import STAR_ROW, THUMBS, retry_row
from goodbot.events import Button
from goodbot.testing.fakes.slack.blocks import IN_MESSAGES, IN_VIEWS, check, elements
from goodbot_connectors.slack import forms, home, presses, render
from goodbot_connectors.slack.presses import EXPLAIN, About, Opening
from hypothesis import given
from hypothesis import strategies as st

ABOUT = About(turn="5f1e0c7a9b3d2468", message="1795291540.000100", channel="D1", thread="1.0")
JOINER = "\u2060"
# What makes Slack notify somebody, or show a link under other words, in mrkdwn and in Markdown.
PINGS = re.compile(r"<(?:@[A-Z0-9]|#[A-Z0-9]|!(?:channel|here|everyone|group|subteam|date)\b)")
NAMES = re.compile(r"(?<!\w)@[A-Za-z]")
HIDDEN = re.compile(r"\]\(|\]\[|<[a-z]{2,10}:[^>|]*\|")
WORDS = st.sampled_from(
    ["<!channel>", "<@U0ADA0001>", "<#C0LAB0001>", "<!subteam^S1|@team>", "@here", "@", "<", "!", "<!",
     "[bank](https://evil.example)", "](", "]", "(https://evil.example)", "![x](https://evil.example)",
     "[1]: https://evil.example", "<https://evil.example|bank>", "```", "```python", "`", "~~~", "\n",
     "&lt;!channel&gt;", "&", "😀", "\u202eevil", "\ud800", "a@b.example", "word", "x" * 300]
)  # fmt: skip
TEXT = st.lists(WORDS | st.text(max_size=8), max_size=60).map("".join)


def outside_code(markdown: str) -> str:
    """What is left without code blocks; how Slack finds them is how CommonMark does."""
    kept: list[str] = []
    fence = ""
    for line in markdown.split("\n"):
        opening = re.match(r" {0,3}(`{3,8})[^`]{0,200}$", line.rstrip())
        if fence:
            closed = re.match(r" {0,3}(`{3,8})$", line.rstrip())
            fence = "" if closed and len(closed[1]) >= len(fence) else fence
        elif opening:
            fence = opening[1]
        else:
            kept.append(line)
    return "\n".join(kept)


@given(TEXT)
def test_nothing_pings_and_no_link_hides_where_it_leads(text: str) -> None:
    markdown = render.inert(text)
    markdown.encode()
    assert not PINGS.search(markdown), "nobody is notified, not out of a code block either"
    assert not NAMES.search(outside_code(markdown))
    assert not HIDDEN.search(outside_code(markdown))
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
    """Only pieces are appended, so an inert beginning must stay one; where not, it is edited."""
    if "`" not in text and "~" not in text:
        whole = render.inert(text)
        part = render.inert(text[:end])
        assert whole.startswith(part) or part.endswith("\ufffd")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("see [here](https://a.example)", f"see [here]{JOINER}(https://a.example)"),
        ("`@decorator`", f"`@{JOINER}decorator`"),
        ("```python\n@decorator\nx[0](1)\n```", "```python\n@decorator\nx[0](1)\n```"),
        ("```\n<!DOCTYPE html>\n```", "```\n<!DOCTYPE html>\n```"),
        ("```\n<!here>\n```", f"```\n<{JOINER}!here>\n```"),
        ("1 < 2 and **bold**, ada@example.org", "1 < 2 and **bold**, ada@example.org"),
        ("```", "```"),
    ],
)
def test_inert(written: str, shown: str) -> None:
    # A joiner stands after the sign that it breaks.
    assert render.inert(written).replace(JOINER, "") == shown.replace(JOINER, "")
    assert render.inert(written).count(JOINER) == shown.count(JOINER)


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
    found = elements(render.notice("Sure?", About(), confirm)["blocks"])
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


@given(st.text(max_size=80), st.text(max_size=80))
def test_ids_that_are_none_are_dropped(turn: str, rest: str) -> None:
    action, about = presses.read(f"{turn} {rest}")
    assert isinstance(action, str)
    for key in (about.turn, about.message):
        assert key == "" or (key.isascii() and len(key) <= 64 and " " not in key)


def test_a_value_that_slack_would_refuse_is_an_error() -> None:
    with pytest.raises(ValueError, match="2000"):
        presses.write("run:" + "x" * 3000, About())


def test_what_was_written_is_read_again() -> None:
    value: Any = presses.write("again:long", ABOUT)
    assert presses.read(value) == ("again:long", About(ABOUT.turn, ABOUT.message))
