# SPDX-License-Identifier: Apache-2.0
"""Activities as Teams sends them, and as nobody should, against the events that they are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from goodbot.api.events import ChannelRef, CommandEvent, MessageEvent
from goodbot.api.labels import reaction_values
from goodbot_connectors.teams import feedback, presses
from goodbot_connectors.teams.config import TeamsSettings
from goodbot_connectors.teams.normalize import Normalizer, place, reaction_key
from hypothesis import given
from hypothesis import strategies as st

from tests.connectors.recorded import recordings, shown

TENANT = "5f1e0c7a-0000-4000-8000-000000000001"
TURN = "5f1e0c7a9b3d2468"
OURS = "1795301300000"
"""The id of a message of ours, wherever it may stand."""
NOW_MS = 1795299999000
SETTINGS = TeamsSettings()
RECORDINGS = recordings("teams")
EVERY = pytest.mark.parametrize("case", RECORDINGS.values(), ids=RECORDINGS.keys())


def normalizer(**other: Any) -> Normalizer:
    """One that has answered in each of the recorded conversations."""
    conversations = {case["payload"]["conversation"]["id"].partition(";")[0] for case in RECORDINGS.values()}
    values = reaction_values(SETTINGS.good, SETTINGS.bad, reaction_key)
    known = {
        "account": "6b00d807-60a0-4d00-8b07-00000000f4c3",
        "tenant": TENANT,
        "values": values,
        "answers": {f"{one} {OURS}": TURN for one in conversations},
    }
    return Normalizer(**{**known, **other})


NORMALIZER = normalizer()


@EVERY
def test_recorded(case: dict[str, Any]) -> None:
    assert shown(NORMALIZER.events(case["payload"], NOW_MS), case["events"]) == case["events"]


@EVERY
def test_a_delivery_is_the_same_event_whenever_it_comes_again(case: dict[str, Any]) -> None:
    first = NORMALIZER.events(case["payload"], NOW_MS)
    assert NORMALIZER.events(case["payload"], NOW_MS + 60_000) == first
    assert len({event.event_id for event in first}) == len(first)


@EVERY
def test_without_an_id_of_its_own_nothing_is_taken(case: dict[str, Any]) -> None:
    payload = {name: value for name, value in case["payload"].items() if name != "id"}
    assert NORMALIZER.events(payload, NOW_MS) == ()


@EVERY
def test_what_says_no_tenant_is_none_of_ours(case: dict[str, Any]) -> None:
    payload = json.loads(json.dumps(case["payload"]))
    payload["channelData"].pop("tenant", None)
    payload["conversation"].pop("tenantId")
    assert NORMALIZER.events(payload, NOW_MS) == ()
    if case["events"]:
        assert normalizer(tenant="").events(payload, NOW_MS)


@EVERY
@pytest.mark.parametrize(
    "where", [("from", "tenantId"), ("conversation", "tenantId"), ("channelData", "tenant", "id")]
)
@pytest.mark.parametrize("tenant", [TENANT, ""])
def test_what_names_another_tenant_anywhere_is_none_of_ours(
    case: dict[str, Any], where: tuple[str, ...], tenant: str
) -> None:
    """A guest's message names our tenant as the chat's, and theirs as the person's."""
    payload = json.loads(json.dumps(case["payload"]))
    payload["channelData"]["tenant"] = {"id": TENANT}
    payload["conversation"]["tenantId"] = payload["from"]["tenantId"] = TENANT.upper()
    if case["events"]:
        assert normalizer(tenant=tenant).events(payload, NOW_MS)
    *path, name = where
    inner = payload
    for key in path:
        inner = inner[key]
    inner[name] = "5f1e0c7a-0000-4000-8000-00000000dddd"
    assert normalizer(tenant=tenant).events(payload, NOW_MS) == ()
    assert not normalizer(tenant=tenant).knows(payload)


def test_an_old_bot_for_many_takes_one_tenant_whichever_it_is() -> None:
    payload = RECORDINGS["messages: personal"]["payload"]
    theirs = json.loads(json.dumps(payload).replace(TENANT, "5f1e0c7a-0000-4000-8000-00000000dddd"))
    assert len(normalizer(tenant="").events(theirs, NOW_MS)) == 1


def html_only(html: str, *mentions: tuple[str, str, str], recording: str = "personal") -> Any:
    """A message whose client sent no text but the HTML copy, with the given mentions."""
    payload = RECORDINGS[f"messages: {recording}"]["payload"]
    return {
        **payload,
        "text": None,
        "attachments": [{"contentType": "text/html", "content": html}],
        "entities": [
            {"type": "mention", "text": text, "mentioned": {"id": id_, "name": name}}
            for text, id_, name in mentions
        ],
    }


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        ("image/*", "image"),
        ("video/mp4; codecs=x", "video"),
        ("Audio/MPEG", "audio"),
        ("application/vnd.microsoft.card.adaptive", "card"),
        ("application/vnd.microsoft.card.hero", "card"),
        ("application/vnd.microsoft.teams.messagereference", "file"),
    ],
)
def test_a_message_that_is_nothing_but_what_came_with_it_is_one(type_: str, name: str) -> None:
    payload = html_only("<div></div>")
    payload["attachments"].append({"contentType": type_, "content": {"body": [{"text": "x"}]}})
    [event] = normalizer(tenant=TENANT).events(payload, NOW_MS)
    assert isinstance(event, MessageEvent)
    assert (event.text, event.attachments) == ("", (name,))


@pytest.mark.parametrize(
    ("html", "words"),
    [
        ("<div>hello there</div>", "hello there"),
        ("<p>2 &lt; 3 &amp;&amp; a&gt;b&nbsp;&#39;x&#x27; &quot;y&quot;</p>", "2 < 3 && a>b 'x' \"y\""),
        ("<p>one</p><p>&nbsp;</p><p>two<br>three</p>", "one\ntwo\nthree"),
        ("<div>a\n   <b>b</b><i>c</i>  d</div>\n<ul>\n<li>e</li><li>f</li></ul>", "a bc d\ne\nf"),
        ("<pre><code>if x:\n    y()\n</code></pre>", "if x:\n    y()"),
        ('see <a href="https://example.org/?a=1&b=2">this</a>', "see this"),
        ("&lt;data&gt; is &lt;at&gt;kept&lt;/at&gt;", "<data> is <at>kept</at>"),
        ('well <img itemtype="http://schema.skype.com/Emoji" alt="😀" src="x"> done', "well 😀 done"),
        ('<emoji id="smile" alt="🙂" title="Smile"></emoji>', "🙂"),
        (
            '<blockquote itemscope itemtype="http://schema.skype.com/Reply" itemid="1"><strong>goodbot'
            "</strong><blockquote>said</blockquote></blockquote><p>and now?</p>",
            "and now?",
        ),
        ("<blockquote>somebody said</blockquote>so what", "somebody said\nso what"),
        ("<p>open <b>ends", "open ends"),
        ("<style>p {}</style><script>alert(1)</script><p>hi</p>", "hi"),
        ("/rl&nbsp;why", None),
        ("<div>&nbsp;</div>", ""),
        ("<![foo", "<![foo"),
        ("<!-- nothing -->", ""),
    ],
)
def test_without_a_text_the_words_of_the_html_copy_are_read(html: str, words: str | None) -> None:
    found = NORMALIZER.events(html_only(html), NOW_MS)
    if words is None:
        [event] = found
        assert isinstance(event, CommandEvent)
        assert event.name == "why"
    else:
        assert [event.text for event in found if isinstance(event, MessageEvent)] == [words][: bool(words)]


def test_a_text_is_believed_and_not_its_copy() -> None:
    payload = html_only("<p>2 &lt; 3</p>") | {"text": "2 &lt; 3"}
    [event] = NORMALIZER.events(payload, NOW_MS)
    assert isinstance(event, MessageEvent)
    assert event.text == "2 &lt; 3"


@pytest.mark.parametrize(
    "written",
    [
        "<at>Good &amp; Bot</at>",
        '<at id="0">Good &amp; Bot</at>',
        '<span itemtype="http://schema.skype.com/Mention" itemscope itemid="0">Good &amp; <b>Bot</b></span>',
    ],
)
@pytest.mark.parametrize("told", ["<at>Good &amp; Bot</at>", '<at id="0">Good & Bot</at>', "Good & Bot"])
def test_mentions_of_the_html_copy_are_ours_and_names(written: str, told: str) -> None:
    payload = RECORDINGS["messages: channel with a mention"]["payload"]
    html = f"<p>{written}&nbsp;ask <at>Ada</at> of Good &amp; Bot</p>"
    mentions = (told, payload["recipient"]["id"], "Good & Bot"), ("<at>Ada</at>", "29:l", "Ada L.")
    [event] = NORMALIZER.events(html_only(html, *mentions, recording="channel with a mention"), NOW_MS)
    assert isinstance(event, MessageEvent)
    assert event.text == "ask Ada L. of Good & Bot"
    assert NORMALIZER.events(html_only(html, recording="channel with a mention"), NOW_MS) == ()


@pytest.mark.parametrize(
    ("text", "html", "words"),
    [
        ("<at>Good Bot</at>", "<p><at>Good Bot</at> hello there</p>", "hello there"),
        ("<at>Good Bot</at>&nbsp;", '<p><at id="0">Good Bot</at>&nbsp;hello</p>', "hello"),
        ("\u200b", "<p><at>Good Bot</at> hello</p>", "hello"),
        ("\ufeff \u200b", "<p>\u200b</p><p>hello</p>", "hello"),
        ('<at id="0">Good Bot</at> hello', "", "hello"),
        ('<at id="0">Good Bot</at> ask <AT id="1">Ada</AT>, 2 &lt; 3', "<p>no</p>", "ask Ada L., 2 &lt; 3"),
        ("<at>Good Bot</at> is <at>Eve</at>", "", "is <at>Eve</at>"),
    ],
)
def test_what_holds_no_word_gives_way_to_the_html_copy(text: str, html: str, words: str) -> None:
    payload = RECORDINGS["messages: channel with a mention"]["payload"]
    mentions = (
        ("<at>Good Bot</at>", payload["recipient"]["id"], "Good Bot"),
        ("<at>Ada</at>", "29:l", "Ada L."),
    )
    sent = html_only(html, *mentions, recording="channel with a mention") | {"text": text}
    [event] = NORMALIZER.events(sent, NOW_MS)
    assert isinstance(event, MessageEvent)
    assert event.text == words


def test_a_text_that_is_xml_is_read_as_such() -> None:
    text = "<at>Good Bot</at> is 2 &lt; 3?<br/><b>Say</b>"
    payload = RECORDINGS["messages: channel with a mention"]["payload"]
    mention = ("<at>Good Bot</at>", payload["recipient"]["id"], "Good Bot")
    sent = html_only("", mention, recording="channel with a mention") | {"text": text, "textFormat": "xml"}
    [event] = NORMALIZER.events(sent, NOW_MS)
    assert isinstance(event, MessageEvent)
    assert event.text == "is 2 < 3?\nSay"


@given(html=st.text(alphabet='<>/!-[]&;"= abpretdiv0#x', max_size=200))
def test_whatever_html_comes_never_raises(html: str) -> None:
    NORMALIZER.events(html_only(html), NOW_MS)


@pytest.mark.parametrize("sign", ["<!--", "<a ", '<a b="', "</", "<![", "<at>", "<blockquote>", "&#"])
def test_a_long_message_of_broken_html_takes_no_longer_than_its_length(sign: str) -> None:
    """Each took minutes with html.parser, which reads the rest of the text again for each sign."""
    NORMALIZER.events(html_only(sign * (120_000 // len(sign))), NOW_MS)


def test_the_same_id_in_two_conversations_is_two_events() -> None:
    one = RECORDINGS["messages: personal"]["payload"]
    other = {**one, "conversation": {**one["conversation"], "id": "a:2another"}}
    [first], [second] = NORMALIZER.events(one), NORMALIZER.events(other)
    assert first.event_id != second.event_id


def test_a_conversation_of_an_unknown_kind_is_not_taken_for_private() -> None:
    payload = RECORDINGS["messages: personal"]["payload"]
    for conversation in ({"id": "x"}, {"id": "x", "conversationType": "meeting"}):
        told = {**payload, "conversation": {**conversation, "tenantId": TENANT}}
        assert NORMALIZER.events(told) == ()


@pytest.mark.parametrize(
    ("timestamp", "ms"),
    [
        ("2026-11-21T22:48:29.9699999Z", 1795301309970),
        ("2026-11-21T22:48:29", 1795301309000),
        ("2026-11-21T23:48:29.969+01:00", 1795301309969),
        ("", NOW_MS),
        ("soon", NOW_MS),
        ("0001-01-01T00:00:00Z", 0),
        ("9999-12-31T23:59:59.999-14:00", 253402351199999),
    ],
)
def test_times_as_teams_and_others_write_them(timestamp: str, ms: int) -> None:
    payload = {**RECORDINGS["messages: personal"]["payload"], "timestamp": timestamp}
    [event] = NORMALIZER.events(payload, NOW_MS)
    assert (event.order.time_ms, event.order.ours) == (ms, timestamp in ("", "soon"))


def test_a_removed_reaction_comes_before_the_one_that_takes_its_place() -> None:
    removed, added = NORMALIZER.events(RECORDINGS["reactions: changed"]["payload"])
    assert removed.order < added.order


@pytest.mark.parametrize("name", [*SETTINGS.good, *SETTINGS.bad])
def test_every_reaction_of_the_settings_rates_whatever_its_tone(name: str) -> None:
    payload = RECORDINGS["reactions: added"]["payload"]
    for tone in ("", "-tone1", "-tone5"):
        told = {**payload, "reactionsAdded": [{"type": f"{name}{tone}"}]}
        [event] = NORMALIZER.events(told)
        assert event.value == (1.0 if name in SETTINGS.good else -1.0)  # type: ignore[attr-defined]


def test_the_form_of_a_control_is_about_its_answer() -> None:
    asked = RECORDINGS["presses: feedback, its form is asked for"]["payload"]
    card = feedback.answer(asked, TURN)["task"]["value"]["card"]["content"]
    [send] = card["actions"]
    assert presses.read(send["data"]) == ("form", (TURN, OURS))
    assert [field["id"] for field in card["body"]] == ["reason", "better"]


def test_the_form_of_a_card_is_about_the_message_under_which_the_button_stood() -> None:
    asked = RECORDINGS["presses: the form is opened"]["payload"]
    card = feedback.answer(asked, "")["task"]["value"]["card"]["content"]
    assert presses.read(card["actions"][0]["data"]) == ("form", (TURN, OURS))


@pytest.mark.parametrize("name", [n for n, c in RECORDINGS.items() if c["payload"]["type"] == "invoke"])
def test_feedback_is_answered_with_nothing_and_every_invoke_with_something(name: str) -> None:
    payload = RECORDINGS[name]["payload"]
    body = feedback.answer(payload, "")
    if payload["name"] == "message/submitAction":
        assert body == {}, "Teams takes nothing else there"
    json.dumps(body)


# As nobody should

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def mangled(draw: st.DrawFn) -> object:
    """A recorded activity, in which some fields hold anything."""
    case = draw(st.sampled_from(sorted(RECORDINGS)))
    payload = json.loads(json.dumps(RECORDINGS[case]["payload"]))
    for _ in range(draw(st.integers(1, 3))):
        json_ = payload
        while True:
            name = draw(st.sampled_from(sorted(json_)))
            if isinstance(json_[name], dict) and json_[name] and draw(st.booleans()):
                json_ = json_[name]
                continue
            json_[name] = draw(ANYTHING)
            break
    return payload


@given(mangled() | ANYTHING)
def test_whatever_comes_never_raises_and_gives_whole_events(payload: object) -> None:
    for event in NORMALIZER.events(payload, NOW_MS):
        assert event.event_id
        assert event.user.id
        assert event.channel.id
        assert event.order.time_ms >= 0
        json.dumps(event.event_id)
        if isinstance(event, MessageEvent):
            assert event.text or event.attachments
            event.text.encode()


@given(mangled())
def test_whatever_comes_is_answered(payload: Any) -> None:
    json.dumps(feedback.answer(payload, TURN))


@given(st.text(max_size=40), st.text(max_size=10))
def test_a_bare_mention_in_text_is_none(text: str, name: str) -> None:
    payload = {
        **RECORDINGS["messages: group chat without a mention"]["payload"],
        "text": f"<at>{name}</at> @goodbot {text}",
    }
    assert NORMALIZER.events(payload) == ()


@given(st.text(max_size=60))
def test_actions_come_back_whole(action: str) -> None:
    about = presses.AnswerRef("turn", "1795301300000")
    again = presses.read(json.loads(json.dumps(presses.data(action, about))))
    assert again == ((action, about) if action else None)


def test_a_place_is_the_same_in_a_thread_and_outside() -> None:
    [event] = NORMALIZER.events(RECORDINGS["messages: channel with a mention"]["payload"])
    assert isinstance(event.channel, ChannelRef)
    assert place(event.channel, "1") == "19:d9b4c1e2@thread.tacv2 1"
