# SPDX-License-Identifier: Apache-2.0
"""F16: activities as the different clients of Teams send them, and what a person has written there."""

from __future__ import annotations

from typing import Any

import pytest
from goodbot.api.events import CommandEvent, MessageEvent
from goodbot_connectors.teams.normalize import Normalizer

TENANT = "11111111-aaaa"
NORMALIZER = Normalizer(account="28:bot", tenant=TENANT, values={"like": 1.0})
GROUP = {"id": "19:abc@thread.v2", "conversationType": "groupChat", "tenantId": TENANT}
PRIVATE = {"id": "a:1", "conversationType": "personal", "tenantId": TENANT}


def activity(**more: Any) -> dict[str, Any]:
    return {
        "type": "message",
        "id": "1795291534001",
        "timestamp": "2026-11-21T18:30:00.123Z",
        "from": {"id": "29:ada", "name": "Ada", "aadObjectId": "x"},
        "recipient": {"id": "28:bot", "name": "goodbot"},
        "conversation": GROUP,
        "channelData": {"tenant": {"id": TENANT}},
        "serviceUrl": "https://smba.trafficmanager.net/emea/",
        **more,
    }


def mention(text: str = "<at>goodbot</at>", id_: str = "28:bot", name: str = "goodbot") -> dict[str, Any]:
    return {"type": "mention", "text": text, "mentioned": {"id": id_, "name": name}}


def called(text: str | None, *mentions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return activity(text=text, entities=list(mentions or (mention(),)), **more)


def html(content: str, **more: Any) -> dict[str, Any]:
    copy = {"contentType": "text/html", "content": content}
    return activity(**{"text": None, "attachments": [copy], "conversation": PRIVATE, **more})


AND = "<at>Good &amp; Bot</at>"
ID = '<at id="0">goodbot</at>'
TALK: dict[str, tuple[dict[str, Any], str | None]] = {
    "a mention": (called("<at>goodbot</at> hello"), "hello"),
    # Entities in the text stay: public payloads show plain text there.
    "entities": (called("<at>goodbot</at> is 2 &lt; 3 &amp;&amp; a&gt;b?"), "is 2 &lt; 3 &amp;&amp; a&gt;b?"),
    "quotes": (called("<at>goodbot</at> say &quot;hi&quot; &#39;x&#39;"), "say &quot;hi&quot; &#39;x&#39;"),
    "a bot with an ampersand": (called(f"{AND} hello", mention(AND, name="Good & Bot")), "hello"),
    "a bot with an ampersand, decoded in the entity": (
        called(f"{AND} hello", mention("<at>Good & Bot</at>", name="Good & Bot")),
        "hello",
    ),
    "twice": (called("<at>goodbot</at> and <at>goodbot</at>!", mention(), mention()), "and !"),
    "with an id": (called(f"{ID} hello", mention(ID)), "hello"),
    "with an id, and without in the entity": (called(f"{ID} hello"), "hello"),
    "as XML": (
        activity(text="<p>hello</p><p>two &lt;b&gt;</p>", textFormat="xml", conversation=PRIVATE),
        "hello\ntwo <b>",
    ),
    "in a meeting": (
        called(
            "<at>goodbot</at> hi",
            conversation={**GROUP, "id": "19:meeting_MmY@thread.v2", "isGroup": True},
            channelData={"tenant": {"id": TENANT}, "meeting": {"id": "MCM"}},
        ),
        "hi",
    ),
    "code": (called("<at>goodbot</at> print(1 &lt; 2)\r\n"), "print(1 &lt; 2)"),
    "nothing but an HTML copy": (html("<div>hello there</div>"), "hello there"),
    # What says too little, or is of another organisation, is dropped.
    "no kind of conversation": (activity(text="hi", conversation={"id": "a:1", "tenantId": TENANT}), None),
    "isGroup alone": (
        called("<at>goodbot</at> hi", conversation={"id": "19:a@thread.v2", "isGroup": True}),
        None,
    ),
    "a guest of another tenant": (
        called("<at>goodbot</at> hi", **{"from": {"id": "29:guest", "tenantId": "22222222-bbbb"}}),
        None,
    ),
    "a chat of another tenant": (
        called("<at>goodbot</at> hi", conversation={**GROUP, "tenantId": "22222222-bbbb"}),
        None,
    ),
    "a value and no words": (activity(text="", value={"x": 1}, conversation=PRIVATE), None),
    # Siblings: other scripts, other ways to send no text, and names as Teams writes them.
    "Arabic, an HTML copy": (html("<div>مرحبا &amp; أهلا</div>"), "مرحبا & أهلا"),
    "Chinese and an emoji, an HTML copy": (html("<p>你好&#x1F600;</p><p>再见</p>"), "你好😀\n再见"),
    "a family of four, an HTML copy": (html("<p>👨‍👩‍👧‍👦 ok</p>"), "👨‍👩‍👧‍👦 ok"),
    "an empty text beside an HTML copy": (html("<div>hello</div>", text=""), "hello"),
    "a text of a no-break space beside an HTML copy": (html("<div>hello</div>", text="\xa0"), "hello"),
    "the text lost <data>, the copy has it": (html("<p>what is &lt;data&gt;?</p>"), "what is <data>?"),
    "a copy whose type names its alphabet": (
        activity(
            attachments=[{"contentType": "text/html; charset=utf-8", "content": "<p>hi</p>"}],
            conversation=PRIVATE,
        ),
        "hi",
    ),
    "a mention in an HTML copy of a group": (
        html(f"<div>{ID}&nbsp;สวัสดี</div>", conversation=GROUP, entities=[mention()]),
        "สวัสดี",
    ),
    "an HTML copy in a group that calls nobody": (html("<div>hello</div>", conversation=GROUP), None),
    "a bot whose name is Japanese": (
        called("<at>ボット</at>元気？", mention("<at>ボット</at>", name="ボット")),
        "元気？",
    ),
}


@pytest.mark.parametrize("name", TALK)
def test_f16_words_are_read_from_whatever_carries_them(name: str) -> None:
    payload, words = TALK[name]
    found = NORMALIZER.events(payload, 1)
    assert [one.text for one in found if isinstance(one, MessageEvent)] == ([] if words is None else [words])
    assert len(found) == (words is not None)


COMMANDS: dict[str, dict[str, Any]] = {
    "new lines behind it": activity(text="/rl good\n\n", conversation=PRIVATE),
    "a space that does not break": activity(text="/rl\xa0good", conversation=PRIVATE),
    "right behind the mention": called("<at>goodbot</at>/rl good"),
    "on the line after the mention": called("<at>goodbot</at>\n/rl good"),
    "over two lines": called("<at>goodbot</at> rl\ngood"),
    # Siblings: the same in an HTML copy.
    "in an HTML copy": html("<p>/rl&nbsp;good</p>"),
    "in an HTML copy, over two lines": html("<div>/rl</div><div>good</div>"),
    "in an HTML copy, behind the mention": html(f"{ID} rl good", conversation=GROUP, entities=[mention()]),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_f16_a_command_is_one_however_it_is_spaced(name: str) -> None:
    [event] = NORMALIZER.events(COMMANDS[name], 1)
    assert isinstance(event, CommandEvent)
    assert (event.name, event.args) == ("good", "")


def test_f16_a_thread_of_a_channel_is_a_conversation() -> None:
    place = {"id": "19:x@thread.tacv2;messageid=1795291", "conversationType": "channel", "tenantId": TENANT}
    [event] = NORMALIZER.events(called("<at>goodbot</at> hi", conversation=place), 1)
    assert (event.channel.id, event.channel.thread) == ("19:x@thread.tacv2", "1795291")


def test_f16_a_mention_in_two_parts_leaves_no_tag() -> None:
    """Some clients write first and last name as mentions of their own."""
    parts = [mention(f"<at>{one}</at>", "29:l", "Ada Lovelace") for one in ("Ada", "Lovelace")]
    text = "<at>goodbot</at> ask <at>Ada</at>&nbsp;<at>Lovelace</at>"
    [event] = NORMALIZER.events(called(text, mention(), *parts), 1)
    assert isinstance(event, MessageEvent)
    assert event.text.startswith("ask Ada Lovelace")
    assert "<" not in event.text
