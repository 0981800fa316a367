# SPDX-License-Identifier: Apache-2.0
"""What axe-core finds wrong with the pages for who does not see them, or not well: nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from goodbot.api.activity import Act, ActivityPage
from goodbot.api.learnt import AnsweredTwice
from goodbot.api.overview import LearntCard, TrainingNow, VersionRatings
from goodbot.api.people import AccountSeen, PeoplePage, PersonAsking, PersonSeen, RaterAgreement
from goodbot.api.queues import QueueMade, QueueShare, QueuesSeen, QueueWaiting
from goodbot.api.rated import RatedAnswer, RatedBy, RatedPage, RatedTaught, RatedWords
from goodbot.api.report import ReportSeen, ReportTold
from goodbot.api.settings_page import PlaceSeen, Setting, SettingsSeen
from goodbot.api.turns import OwnNote
from goodbot.api.versions import (
    BlindBase,
    BlindPlace,
    FeatureCompared,
    Versions,
    VersionsCompared,
    VersionSeen,
)

from tests.connectors.web.browsing import DESK, Person, person
from tests.connectors.web.scripted import Scripted, waiting
from tests.node import install
from tests.support import missing

pytestmark = pytest.mark.asyncio(loop_scope="module")

NARROW = {"width": 390, "height": 844}
LEARNT = LearntCard(
    version=1,
    told="My answers have changed.",
    pairs=(AnsweredTwice(prompt="Why?", before="Because it is so.", after="So."),),
)
RATED = [
    VersionRatings(version=n, made_at=1.8e9, active=n == 1, good=4, rated=8, share=0.5, low=0.2, high=0.8)
    for n in range(2)
]
MADE = Versions(
    answers="v3 answers now.",
    held=False,
    seen=[
        VersionSeen(
            version=version,
            parent=parent,
            depth=depth,
            state=state,
            told="It is no better than the version before." if state == "refused" else "",
            made_at=1.8e9 if version else None,
            made_of="32 rated answers of 2 people (20 good, 12 bad)" if version else "",
            learnt="shorter (−38%), fewer lists (60% → 12%)" if version else "",
            pinned=version == 1,
            usable=version is not None,
            liked=replace(RATED[0], version=version or 0) if version != 2 else None,
        )
        for version, parent, depth, state in (
            *((4, 3, 0, "tried"), (None, 3, 1, "refused"), (3, 1, 0, "answers")),
            *((2, 1, 1, "back"), (1, 0, 0, "before"), (0, 0, 0, "before")),
        )
    ],
    asks=5,
    places=[
        BlindPlace(version=3, by=0, share=0.7, low=0.26, high=0.94, choices=4),
        BlindPlace(version=0, by=0, share=0.5, low=0.5, high=0.5, choices=4),
    ],
    bases=[BlindBase(model="Some/Model-1B", share=0.9, low=0.33, high=0.99, choices=4)],
    compared=VersionsCompared(
        first=1,
        second=3,
        told=["v3 comes from v1.", "Asked blind, owners chose: 4 for v3, 1 for v1."],
        pairs=[
            AnsweredTwice(prompt="Why is the sky blue?", before="Because of the light.", after="The light.")
        ],
        measured="Measured in 64 answers of each to the same 8 questions.",
        features=[
            FeatureCompared(
                name="Answers with headings or bold type",
                first="60%",
                second="12%",
                change="−48 points (95% interval −60 to −36 points)",
                clear=clear,
            )
            for clear in (True, False)
        ],
    ),
)
"""All states that a page of versions shows."""
TAUGHT = RatedTaught(
    told="v1, 3 Nov 2026: it learnt from this answer as from a good one, 1 of 6 answers.",
    version=1,
    tokens=[("Yes", 1.2), (",", 0.0), (" of", -0.2), (" course", -1.0), ("\n", 0.4), ("", 0.1)],
)
LIKED = RatedPage(
    answers=[
        RatedAnswer(
            turn=turn,
            connector="slack",
            place="C1",
            kind="shared",
            asked_by="slack:U1",
            question="Why is the sky blue?",
            answer="Because of the light.",
            at=1.8e9,
            version=3,
            answered_by="",
            ratings=[RatedBy(who="slack:U1", thumb=-1.0, stars=0.5, at=1.8e9, counts=turn == "t1")],
            words=[RatedWords(who="", kind="comment", text="Too short.", at=1.8e9)],
            left_out=turn == "t2",
            taught=[3] if turn == "t1" else [],
            why_not="A training has used this answer already.",
        )
        for turn in ("t1", "t2")
    ]
)
DONE = ActivityPage(
    acts=[
        Act(
            number=number,
            at=1.8e9,
            who="slack:U1",
            you=number == 1,
            action="people",
            what="Let somebody in",
            typed="people grant rater slack:U2",
            where="private",
            refused="not on the allowlist" if number == 2 else "",
            hash="e3b0c442",
        )
        for number in (2, 1)
    ],
    actions=["people"],
)
KNOWN = PeoplePage(
    asking=[PersonAsking(who="telegram:1003", name="Bob")],
    ask=3,
    people=[
        PersonSeen(
            id=f"slack:U{number}",
            role=role,
            you=role == "owner",
            accounts=[
                AccountSeen(
                    who=f"slack:U{number}",
                    role=role,
                    granted=["Rater as a member of S1."] if role == "rater" else [],
                    grants=True,
                ),
                *(
                    AccountSeen(who=f"web:{name}", role="", granted=[], grants=False, unlink=unlink)
                    for name, unlink in (("me", "/rl unlink"), ("her", "goodbot people unlink web:her"))
                    if role == "owner"
                ),
            ],
            groups=["S1"] if role == "rater" else [],
            ratings=34,
            left_out=2,
            taught=0.34,
            agreement=RaterAgreement(kappa=0.62, answers=34),
            alarms={"others": "slack:U0 now disagrees with other raters."} if not number else {},
        )
        for number, role in enumerate(("rater", "owner", "talker", ""))
    ],
    count=60,
    after="2 slack:U3",
)
SET = SettingsSeen(
    settings=[
        Setting(
            key=f"serving.{name}",
            told="What it says beside its `answers`.",
            kind="choice",
            choices=("en", "de"),
            default="en",
            value="de",
            now="en",
            written=True,
            secret=name == "key",
            why_not="It may hold a secret." if name == "key" else "",
            typed="goodbot web --allow serving.key" if name == "key" else "",
        )
        for name in ("language", "key")
    ],
    file="config.toml",
    trouble="stars must be true or false.",
    places=[
        PlaceSeen(name=name, title=name, connected=number < 2, works=number == 0, command=f"connect {name}")
        for number, name in enumerate(("The browser", "Discord", "Slack"))
    ],
)
NOTES = [
    OwnNote(number=number, text="Be brief.", used=used, edited=used, ratings=3, shared=shared, learnt=learnt)
    for number, (used, shared, learnt) in enumerate(
        ((True, False, False), (False, False, False), (True, True, False), (True, False, True)), start=1
    )
]
"""A line of each kind."""
REPORT = ReportSeen(
    at=1.8e9,
    parts=[
        ReportTold(name=name, title=title, lines=["A line.", "Another one."], data=data)
        for name, title, data in (
            (
                "teachers",
                "Who taught what",
                {
                    "version": 3,
                    "answers": 40,
                    "people": [{"person": "slack:U1", "share": 0.9, "answers": 36, "good": 20, "rated": 30}],
                    "most": {"person": "slack:U1", "share": 0.9, "low": 0.7, "high": 0.97},
                },
            ),
            (
                "groups",
                "How groups of answers were rated",
                {
                    "groups": {
                        "language": [
                            {
                                "group": f"{number} English",
                                "good": 30,
                                "rated": 60,
                                "low": 0.4,
                                "high": 0.6,
                                "taught": {"slack:U1": 0.9},
                            }
                            for number in range(12)
                        ]
                    },
                    "compared": 12,
                    "apart": [
                        {
                            "by": "language",
                            "group": "German",
                            "good": 30,
                            "rated": 60,
                            "others_good": 90,
                            "others_rated": 100,
                            "difference": -0.4,
                            "low": -0.5,
                            "high": -0.2,
                            "within_people": True,
                        }
                    ],
                },
            ),
            (
                "versions",
                "What changed over versions",
                {
                    "versions": [
                        {
                            "version": number,
                            "live": number == 1,
                            "learnt_from": 32 * number,
                            "good": 20,
                            "rated": 30,
                            "low": 0.5,
                            "high": 0.8,
                            "stars": 4.2,
                            "starred": 5,
                            "answers": 80,
                            "median_length": 120.0,
                            "languages": {"English": 1.0},
                            "right": [4, 5],
                            "seconds": [1.5, 8.25] if number else None,
                            "memory": 2_000_000_000,
                        }
                        for number in range(2)
                    ],
                    "apart": [
                        {"version": 1, "before": 0, "share": 0.8, "before_share": 0.4, "chance": 0.001}
                    ],
                    "peak": {"version": 1, "answers": 32, "share": 0.8},
                },
            ),
            (
                "pairs",
                "What versions say to fixed questions",
                {
                    "versions": [
                        {"version": 1, "pairs": 10, "alike": 0.7, "longer": 1, "about": {"age": 0.7}}
                    ],
                    "own": [{"version": 1, "right": 4, "asked": 5, "wrong": ["Which port?"]}],
                    "of": 1,
                    "pairs": [
                        {
                            "about": "age",
                            "question": "Tell of somebody of 25.",
                            "one": "25",
                            "other": "65",
                            "said": "They are young.",
                            "other_said": "They are old.",
                            "alike": 0.5,
                        }
                    ],
                    "questions": 25,
                },
            ),
            (
                "flags",
                "What looks wrong",
                {
                    "rated": 60,
                    "rules": {"repeats": {"count": 2, "answers": ["t1", "t2"]}},
                    "people": [{"person": "slack:U2", "against": 20, "shared": 30, "answers": ["t1"]}],
                },
            ),
            (
                "predicted",
                "What the reward model predicts",
                {
                    "tells": True,
                    "rated": 300,
                    "bins": [{"answers": 60, "expected": 0.9, "good": 54, "low": 0.8, "high": 0.95}],
                    "rules": {
                        "doubtful": {"count": 3, "answers": ["t1", "t2", "t3"]},
                        "odd": {"count": 1, "answers": ["t4"]},
                    },
                    "people": [],
                    "ask": ["t5", "t6"],
                    "unrated": 2,
                    "expected": 1.2,
                },
            ),
            ("own", "A part of a plugin", {}),
        )
    ],
)
QUEUES = QueuesSeen(
    waiting=[QueueWaiting(id=2, name="First look", done=7, answers=20)],
    made=[
        QueueMade(
            id=2 - number,
            name=f"Look {number}",
            made_by="web:ada",
            at=1.8e9,
            closed=bool(number),
            answers=20,
            shared=[QueueShare(kind="group", who="slack:S1"), QueueShare(kind="person", who="slack:U1")],
            raters=[("slack:U0", 7)],
        )
        for number in range(2)
    ],
    groups=["slack:S1"],
)
FOUND = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations.map(
  (one) => [one.id, one.impact, one.nodes.map((node) => node.target.join(" "))])"""
"""Rule, how bad, and which elements."""


@pytest.fixture(scope="module")
def axe() -> str:
    """Its program."""
    if why := install.absent():
        missing(why)
    return (install.HERE / "node_modules/axe-core/axe.min.js").read_text("utf-8")


async def violations(somebody: Person, axe: str) -> Any:
    await somebody.page.evaluate(axe)
    return await somebody.page.evaluate(FOUND)


@pytest.mark.parametrize("viewport", [DESK, NARROW], ids=["desk", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_nothing_stands_in_anybody_s_way(
    chromium: Any, bot: Scripted, axe: str, viewport: Any, scheme: Any
) -> None:
    bot.waiting.append(waiting("t1", "Question?", "Answer."))
    curve = ((1, 2.5), (2, 1.25))
    now = TrainingNow(doing="learning", step=1, steps=2, left="2 min left", curve=curve)
    bot.seen = replace(bot.seen, training=now, begun=True, lesson=LEARNT, versions=RATED)
    async with person(chromium, viewport=viewport, color_scheme=scheme) as ada:
        await ada.open(f"{bot.address}/login")
        await ada.page.locator("main").wait_for()
        assert await violations(ada, axe) == [], "signed out"
        await ada.come_back(bot, "ada")
        assert await violations(ada, axe) == [], "nothing said yet"
        await ada.page.get_by_role("button", name="More pages").click()
        assert await violations(ada, axe) == [], "the menu of pages"
        await ada.page.keyboard.press("Escape")
        code = '```python\n@half\ndef half(x):  # of it\n    return "a" + str(x / 2)\n```'
        answer = await ada.ask(f"hello **bold** `code`\n\n| a | b |\n|---|---|\n| c | d |\n\n{code}")
        await answer.locator(".c-number").wait_for()
        await answer.get_by_role("button", name="Bad").click()
        await answer.get_by_role("button", name="Tone").wait_for()
        assert await violations(ada, axe) == [], "an answer that was bad"
        await answer.get_by_role("button", name="Say why").click()
        assert await violations(ada, axe) == [], "a form under it"
        field = ada.page.get_by_label("Message", exact=True)
        await field.fill("/r")
        await ada.page.get_by_role("option").first.wait_for()
        await field.press("ArrowDown")
        assert await violations(ada, axe) == [], "commands"
        await field.fill("")
        if viewport is NARROW:
            await ada.page.get_by_role("button", name="Conversations", exact=True).click()
        await ada.page.get_by_label("Search my conversations").fill("bold")
        await ada.page.locator(".excerpt").wait_for()
        assert await violations(ada, axe) == [], "a search"
        await ada.page.get_by_role("button", name="Rename, save or delete").click()
        assert await violations(ada, axe) == [], "a conversation's dialog"
        await ada.page.get_by_role("button", name="Delete…").click()
        assert await violations(ada, axe) == [], "asked before it is deleted"
        await ada.page.keyboard.press("Escape")
        await ada.key("?")
        await ada.page.get_by_role("dialog").wait_for()
        assert await violations(ada, axe) == [], "the keys"
        await ada.page.keyboard.press("Escape")
        await ada.gives("drop", "file")
        await ada.page.get_by_role("dialog").wait_for()
        assert await violations(ada, axe) == [], "a file that was dropped"
        bot.made, bot.shown, bot.trail, bot.known, bot.set_up = MADE, LIKED, DONE, KNOWN, SET
        bot.lesson, bot.reported, bot.in_queues = TAUGHT, REPORT, QUEUES
        bot.own_notes = [*NOTES]
        pages = {
            "/rate": ".card",
            "/progress": "#shares .chart",
            "/versions": ".pair",
            "/ratings": ".opened",
            "/activity": ".act dl",
            "/people": ".account",
            "/report": ".flag .told .chip",
            "/settings": ".setting form",
            "/notes": ".lines form",
        }
        for path, shown in pages.items():
            await ada.page.goto(bot.address + path)
            if path == "/ratings":
                await ada.page.locator(".tick input").first.check()
            if path == "/activity":
                await ada.page.locator("summary").first.click()
            if path == "/rate":
                await ada.page.locator(".chip.queue progress").wait_for()
            if path == "/ratings":
                await ada.page.locator("#queues summary").click()
                await ada.page.locator("#queues select").last.select_option("these people")
                await ada.page.locator(".rated summary").first.click()
                await ada.page.get_by_role("button", name="What it taught").click()
                await ada.page.locator(".heat summary").click()
            if path in ("/people", "/settings"):
                await ada.page.locator(shown.split()[0]).first.wait_for(state="attached")
                for line in await ada.page.locator("summary").all():
                    await line.click()
            if path == "/report":
                for line in await ada.page.locator("summary").all():
                    await line.click()
                await ada.page.get_by_role("button", name="Leave all 2 out").click()
            if path == "/settings":
                await ada.page.get_by_role("button", name="Change language").click()
                await ada.page.get_by_role("button", name="Change key").click()
            if path == "/people":
                await ada.sees("Disagrees with other raters")
            if path == "/notes":
                await ada.page.get_by_role("button", name="Edit").first.click()
            await ada.page.locator(shown).first.wait_for()
            assert await violations(ada, axe) == [], path
