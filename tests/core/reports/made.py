# SPDX-License-Identifier: Apache-2.0
"""Answers for reports, by a seed: people, languages, places and hours without any bond."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from goodbot.api.overview import VersionRatings
from goodbot.api.report import ReportedAnswer, ReportedBot, ReportPart
from goodbot.base.intervals import wilson
from goodbot.features.reports.flags import Flags
from goodbot.features.reports.groups import Groups
from goodbot.features.reports.teachers import Teachers
from goodbot.features.reports.versions import VersionTable

PEOPLE = tuple(f"slack:U{number}" for number in range(5))
QUESTIONS = {
    "English": "What is the best way to do this?",
    "German": "Was ist der beste Weg für mich?",
    "Cyrillic": "Как мне лучше это сделать?",
    "French": "Quelle est la meilleure façon pour vous ?",
}
Change = Callable[[ReportedAnswer, random.Random], ReportedAnswer]


def answers(seed: int, count: int = 1000, change: Change = lambda answer, _: answer) -> list[ReportedAnswer]:
    """Two of three are good; each is rated by one person, and half of them have taught."""
    random_ = random.Random(seed)
    made: list[ReportedAnswer] = []
    for number in range(count):
        who = random_.choice(PEOPLE)
        answer = ReportedAnswer(
            id=f"a{number}",
            at=1.7e9 + random_.randrange(30 * 86_400),
            connector=random_.choice(("slack", "telegram")),
            place=random_.choice(("C1", "C2", "C3")),
            shared=random_.random() < 0.8,
            version=random_.choice((0, 1, 2)),
            question=random_.choice([*QUESTIONS.values()]),
            answer=" ".join(f"w{random_.randrange(500)}" for _ in range(30)),
            length=int(random_.lognormvariate(5.5, 0.8)),
            ratings={who: random_.choice((1.0, 1.0, -1.0))},
            taught={who: 1.0} if number % 2 else None,
        )
        made.append(change(answer, random_))
    return made


def shuffled(made: Sequence[ReportedAnswer], seed: int) -> list[ReportedAnswer]:
    """The same answers; who rated them, how, and who taught is dealt anew."""
    random_ = random.Random(seed)
    ratings = [next(iter(one.ratings.values())) for one in made]
    random_.shuffle(ratings)
    dealt: list[ReportedAnswer] = []
    for one, rating in zip(made, ratings, strict=True):
        who = random_.choice(PEOPLE)
        dealt.append(replace(one, ratings={who: rating}, taught={who: 1.0} if one.taught else None))
    return dealt


def bot(made: Sequence[ReportedAnswer], **changes: Any) -> ReportedBot:
    """What a part is told beside them: v2 answers, which comes from v1."""
    rated: list[VersionRatings] = []
    for version in (0, 1, 2):
        said = [one.good for one in made if one.version == version and one.good is not None]
        if said:
            low, high = wilson(sum(said), len(said))
            rated.append(
                VersionRatings(
                    version=version,
                    made_at=None,
                    active=version == 2,
                    good=sum(said),
                    rated=len(said),
                    share=sum(said) / len(said),
                    low=low,
                    high=high,
                )
            )
    given: dict[str, Any] = {"live": 2, "line": (1, 2), "versions": rated, "learnt": {1: 40, 2: 80}}
    given |= {"answers": len(made), "more": False, **changes}
    return ReportedBot(**given)


def told(part: ReportPart, made: Sequence[ReportedAnswer], **changes: Any) -> tuple[str, dict[str, Any]]:
    """What a part says of them."""
    for start in range(0, len(made), 300):
        part.add(made[start : start + 300])
    section = part.told(bot(made, **changes))
    return "\n".join(section.lines), dict(section.data)


def named(made: Sequence[ReportedAnswer]) -> list[Any]:
    """All that any of the parts names."""
    most = told(Teachers(), made)[1]["most"]
    apart = told(Groups(), made)[1]["apart"] + told(VersionTable(), made)[1]["apart"]
    return [*([most] if most else []), *apart, *told(Flags(), made)[1]["people"]]
