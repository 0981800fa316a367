# SPDX-License-Identifier: Apache-2.0
"""What owners are told of a training and its version, in their language. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from goodbot.api.sentences import Reason, brief, clause, clause_of, sentence, words
from goodbot.api.sentences import version as name_of
from goodbot.api.texts import beside, commas, joined, pauses, reworded, say
from goodbot.learning.training.readiness import Readiness
from goodbot.store import news, quarantined, runs
from goodbot.store.adapters import AdapterRow


def live(
    version: int,
    made_of: news.RunMaterial,
    verdict: Sequence[Reason],
    what_changed: str = "",
    language: str = "",
) -> str:
    """A new version answers; `what_changed` is a sentence, or empty."""
    learnt = say("learnt_from", language, learnt=pauses(language, *_learnt(made_of, language)))
    first = joined(language, say("live", language, version=version), what_changed, learnt)
    return f"{first}\n{words(*brief(verdict), language=language)}\n{say('live_steps', language)}"


def tried(version: int, verdict: Sequence[Reason], what_changed: str = "", language: str = "") -> str:
    """A new version answers in some of the conversations."""
    told = joined(language, say("tried", language, version=version), what_changed)
    return f"{told}\n{words(*brief(verdict), language=language)}"


def waits(version: int, active: int, language: str = "") -> str:
    """A new version waits while the one that answers is pinned."""
    return say("waits_for_unpin", language, version=version, active=active)


def in_vain(run: runs.Run, active: int, readiness: Readiness, language: str = "") -> str:
    """A run was refused or has failed."""
    # Without the reason, which is told here.
    next_ = say("tried_again", language) if readiness.due else readiness.condition.for_everybody(language)
    what = say(f"in_vain_{run.state}", language, name=name_of(active, language, begins=True))
    why = sentence(words(*run.ending, language=language), language)
    return f"{joined(language, what, why)}\n{say('what_next', language, next=clause(next_))}"


def withdrawn(row: AdapterRow, active: int, language: str = "") -> str:
    """A version that was live is not to be used any more."""
    why, other = clause_of(row.tainted, language), name_of(active, language, begins=True)
    return say("withdrawn", language, version=row.version, why=why, other=other)


def without(sent: quarantined.AsideCount, language: str = "") -> str:
    """A run has gone on without somebody's answers."""
    return say(
        "went_without_sent" if sent.captured else "went_without",
        language,
        run=sent.run,
        answers=sent.answers,
        sender=sent.sender,
        reason=reworded(sent.reason, language),
    )


def counted(made_of: news.RunMaterial, language: str = "") -> str:
    """`32 rated answers of 2 people (20 good, 12 bad; 9 by other models)`: what was learnt from."""
    total = made_of.trained
    middle = total - made_of.good - made_of.bad
    answers = say("learnt_answers", language, total=total)
    if made_of.raters > 1:
        answers = say("learnt_people", language, total=total, raters=made_of.raters)
    rated = commas(
        language,
        say("learnt_rated", language, good=made_of.good, bad=made_of.bad),
        say("learnt_between", language, count=middle) if middle else "",
    )
    parts = [
        rated,
        say("learnt_others", language, count=made_of.off_policy) if made_of.off_policy else "",
        say("learnt_judged", language, count=made_of.judged) if made_of.judged else "",
    ]
    return beside(answers, pauses(language, *parts), language)


def kept(made_of: news.RunMaterial, language: str = "") -> str:
    """`8 more were kept to check it`; empty where none were."""
    return say("kept_to_check", language, count=made_of.held_out) if made_of.held_out else ""


def _learnt(made_of: news.RunMaterial, language: str) -> tuple[str, str]:
    return counted(made_of, language), kept(made_of, language)
