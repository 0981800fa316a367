# SPDX-License-Identifier: Apache-2.0
"""Which model answers: proposed, looked up, downloaded if need be; or the tiny one to try it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from goodbot.api.registry import automatic_backends
from goodbot.api.texts import reworded
from goodbot.api.texts.terminal import rephrased
from goodbot.base.errors import ConfigError, GoodbotError, UsageError
from goodbot.cli.setup.dialogue import Choice, Dialogue, Refused
from goodbot.cli.setup.draft import DEMO, Draft, StateFound
from goodbot.cli.setup.extras import MOST_UNASKED
from goodbot.inference.models import disk

if TYPE_CHECKING:
    from goodbot.inference.models.obtain import Obtained
    from goodbot.inference.models.proposal import Proposal

AUTO = "auto"
LATER = "later"
_LISTED = 3
"""Models on this disk that are offered by number."""


def ask_model(dialogue: Dialogue, place: StateFound, draft: Draft) -> None:
    """Ends with weights that are here, the demo model, or the sentence that says what is missing."""
    kept = draft.model or place.config.model.path
    choices = _choices(dialogue, place, kept)
    while True:
        draft.missing.pop("model", None)
        draft.chosen, draft.serving = None, {}
        wanted = _wanted(dialogue, choices)
        if wanted in (kept, DEMO, LATER):
            draft.model = "" if wanted == LATER else wanted
            if wanted == LATER:
                draft.missing["model"] = dialogue.phrase("setup_no_model")
            return
        try:
            proposal = _look_up(dialogue, place, draft, wanted)
            if obtained := _get(dialogue, place, proposal, sure=wanted != AUTO):
                draft.model, draft.chosen = obtained.reference, (proposal, obtained)
                draft.serving = _goes_on(dialogue, place, proposal)
                if wanted == AUTO and draft.backend == AUTO:
                    draft.backend = proposal.backend  # it was proposed for this one
                return
        except GoodbotError as error:
            # The network, the hub, a machine on which none fits: not the person's mistake.
            flaw = wanted != AUTO and isinstance(error, (ConfigError, UsageError))
            if not (dialogue.asks or flaw):
                draft.model = ""
                draft.missing["model"] = dialogue.phrase("setup_model_missing", why=error)
                return
            dialogue.trouble(reworded(error, dialogue.language))
        dialogue.forget("--model")


def _choices(dialogue: Dialogue, place: StateFound, kept: str) -> list[Choice]:
    choices = [Choice(value=kept, label=dialogue.phrase("setup_as_it_is", what=kept))] if kept else []
    note = dialogue.phrase("setup_best_note")
    choices.append(Choice(value=AUTO, label=dialogue.phrase("setup_best"), note=note))
    here = [one for one in disk.weights(place.config.home) if not one.wrong]
    choices += [
        Choice(value=one.reference, label=one.reference, note=dialogue.phrase("setup_on_disk"))
        for one in here[:_LISTED]
        if kept not in (one.reference, f"{one.reference}@{one.path.name}")
    ]
    if kept != DEMO:
        note = dialogue.phrase("setup_demo_note")
        choices.append(Choice(value=DEMO, label=dialogue.phrase("setup_demo"), note=note))
    return [*choices, Choice(value=LATER, label=dialogue.phrase("setup_none_yet"))]


def _wanted(dialogue: Dialogue, choices: Sequence[Choice]) -> str:
    """A number, or anything that names a model."""
    dialogue.show("--model", choices)
    if not dialogue.has("--model"):
        dialogue.hint(dialogue.phrase("setup_model_name"))

    def check(answer: str) -> str:
        if answer.isdecimal():
            if not 0 < int(answer) <= len(choices):
                raise Refused(dialogue.phrase("setup_number_or_name", most=len(choices)))
            return choices[int(answer) - 1].value
        return answer

    return dialogue.text("--model", dialogue.phrase("setup_choice"), check, "1")


def _look_up(dialogue: Dialogue, place: StateFound, draft: Draft, wanted: str) -> Proposal:
    """What it is and costs, shown. Raises GoodbotError."""
    from goodbot.cli.model import described, left_behind
    from goodbot.inference.models.choose import choose, propose

    dialogue.hint(dialogue.phrase("setup_looking"))
    names = [draft.backend]
    if draft.backend == "auto":
        names = [spec.name for spec in automatic_backends(place.plugins.backends())]
    home = place.config.home
    if wanted == AUTO:
        found = propose(home, names)
    else:
        found = choose(wanted, home, names[0], drivers=place.plugins.servers().values())
    if found.unusable:
        why = rephrased(found.unusable)
        raise ConfigError(dialogue.phrase("setup_model_unusable", name=found.name, why=why))
    dialogue.say(described(replace(found, options=())))
    if note := left_behind(home, place.config.model.path, found):
        dialogue.hint(note)
    return found


def _goes_on(dialogue: Dialogue, place: StateFound, proposal: Proposal) -> Mapping[str, str]:
    """`[serving]`, if the server that was named shall go on answering."""
    from goodbot.inference.models.choose import answering

    question = answering(proposal, place.config.serving.server, place.plugins.servers().values())
    agreed = bool(question) and dialogue.asks and dialogue.confirm("", question, default=False)
    return proposal.serving if agreed else {}


def _get(dialogue: Dialogue, place: StateFound, proposal: Proposal, *, sure: bool) -> Obtained | None:
    """The weights, here; None if the person does not want them. Raises GoodbotError.

    `sure`: they were named. What only fits best is not fetched unasked, where it is large.
    """
    from goodbot.cli.model import gigabytes
    from goodbot.inference.models.obtain import obtain

    size = gigabytes(proposal.download)
    if proposal.download > MOST_UNASKED and not (sure or dialogue.asks):
        raise GoodbotError(dialogue.phrase("setup_model_large", name=proposal.name, size=size))
    question = dialogue.phrase("setup_download" if proposal.download else "setup_take", size=size)
    if (proposal.download or not sure) and not dialogue.confirm("", question):
        return None
    try:
        with dialogue.progress() as show:
            return obtain(proposal.source, place.config.home, progress=show)
    except KeyboardInterrupt:
        dialogue.say(f"\n{dialogue.phrase('setup_download_stays')}")
        raise
