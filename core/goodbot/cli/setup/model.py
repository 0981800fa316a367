# SPDX-License-Identifier: Apache-2.0
"""Which model answers: proposed, looked up, downloaded if need be; or the tiny one to try it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from goodbot.api.progress import progress_line
from goodbot.base.errors import ConfigError, GoodbotError, UsageError
from goodbot.base.installed import missing_modules
from goodbot.cli.setup.dialogue import Choice, Dialogue, Refused
from goodbot.cli.setup.draft import DEMO, Draft, StateFound
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
    choices = _choices(place, kept)
    while True:
        draft.missing.pop("model", None)
        draft.chosen, draft.serving = None, {}
        wanted = _wanted(dialogue, choices)
        if wanted in (kept, DEMO, LATER):
            draft.model = "" if wanted == LATER else wanted
            if wanted == LATER:
                draft.missing["model"] = "no model is chosen"
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
                draft.missing["model"] = f"there is no model yet: {error}"
                return
            dialogue.trouble(str(error))
        dialogue.forget("--model")


def _choices(place: StateFound, kept: str) -> list[Choice]:
    choices = [Choice(value=kept, label=f"As it is: {kept}")] if kept else []
    note = "looked up now; you see what it costs before anything is downloaded"
    choices.append(Choice(value=AUTO, label="The best that fits this machine", note=note))
    here = [one for one in disk.weights(place.config.home) if not one.wrong]
    choices += [
        Choice(value=one.reference, label=one.reference, note="on this disk")
        for one in here[:_LISTED]
        if kept not in (one.reference, f"{one.reference}@{one.path.name}")
    ]
    if kept != DEMO:
        note = "nothing to download; it knows some capitals and sums, enough for a try-out"
        choices.append(Choice(value=DEMO, label="The tiny demo model", note=note))
    return [*choices, Choice(value=LATER, label="None yet")]


def _wanted(dialogue: Dialogue, choices: Sequence[Choice]) -> str:
    """A number, or anything that names a model."""
    dialogue.show("--model", choices)
    if not dialogue.has("--model"):
        dialogue.hint("Or type a name in the hub (owner/name), a directory, or a server's model.")

    def check(answer: str) -> str:
        if answer.isdecimal():
            if not 0 < int(answer) <= len(choices):
                raise Refused(f"type a number from 1 to {len(choices)}, or the name of a model")
            return choices[int(answer) - 1].value
        return answer

    return dialogue.text("--model", "Your choice", check, "1")


def _look_up(dialogue: Dialogue, place: StateFound, draft: Draft, wanted: str) -> Proposal:
    """What it is and costs, shown. Raises GoodbotError."""
    from goodbot.cli.model import described, left_behind
    from goodbot.inference.models.choose import choose, propose

    dialogue.hint("Looking it up ...")
    specs = place.plugins.backends().values()
    ready = sorted((s for s in specs if not missing_modules(s.requires)), key=lambda s: -s.priority)
    names = [draft.backend]
    if draft.backend == "auto":
        names = [spec.name for spec in ready or specs]
    home = place.config.home
    if wanted == AUTO:
        found = propose(home, names)
    else:
        found = choose(wanted, home, names[0], drivers=place.plugins.servers().values())
    if found.unusable:
        raise ConfigError(f"goodbot cannot take {found.name}: {found.unusable}")
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
    """The weights, here; None if the person does not want them. Raises GoodbotError."""
    from goodbot.cli.model import gigabytes
    from goodbot.inference.models.obtain import obtain

    question = f"Download {gigabytes(proposal.download)} now?" if proposal.download else "Take it?"
    if (proposal.download or not sure) and not dialogue.confirm("", question):
        return None
    try:
        with progress_line(quiet=not dialogue.asks) as show:
            return obtain(proposal.source, place.config.home, progress=show)
    except KeyboardInterrupt:
        dialogue.say("\nWhat was downloaded stays; another `goodbot init` goes on from there.")
        raise
