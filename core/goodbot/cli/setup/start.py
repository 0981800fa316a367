# SPDX-License-Identifier: Apache-2.0
"""The last question: what was answered, and how the bot starts."""

from __future__ import annotations

import shutil
import sys

from goodbot.base.suggest import TERMINAL
from goodbot.cli.doctor.checks import short
from goodbot.cli.setup.asked import needs_owner, needs_token
from goodbot.cli.setup.dialogue import Choice, Dialogue
from goodbot.cli.setup.draft import OWN, Draft, StateFound

_NEEDED = {"platform", "backend", "model"}
"""Without these nothing can be started; a token that was not checked may be a good one."""


def ask_start(dialogue: Dialogue, place: StateFound, draft: Draft) -> None:
    """Show what will be written; the answer writes it."""
    dialogue.say(_summary(place, draft))
    for sentence in draft.missing.values():
        dialogue.say(f"Missing: {sentence}.")
    dialogue.hint("")
    choices: list[Choice] = []
    if place.daemon:
        choices.append(Choice(value="no", label="Write this", note=_RESTART))
    else:
        if not _NEEDED & set(draft.missing):
            what = "chat with it" if draft.platform == TERMINAL else "run it"
            choices.append(Choice(value="now", label=f"Write this, and {what} here now"))
            if draft.keep != "environment" and _supervised():
                note = "it starts again when you log in"
                label = "Write this, and run it in the background"
                choices.append(Choice(value="service", label=label, note=note))
        choices.append(Choice(value="no", label="Write this, and start it later"))
    values = [choice.value for choice in choices]
    if dialogue.answer("--start") in {"now", "service"} - set(values):
        dialogue.say(f"It cannot be started with --start {dialogue.answer('--start')} yet.")
        dialogue.forget("--start")
    draft.start = dialogue.choose("--start", choices, values[0] if dialogue.asks else "no")


_RESTART = "the goodbot that runs here now goes on as it is until it is restarted"


def _supervised() -> bool:
    return sys.platform == "darwin" or shutil.which("systemctl") is not None


def _summary(place: StateFound, draft: Draft) -> str:
    account = f", {draft.identity.name}" if draft.identity else ""
    kept = {"file": "kept in secrets.env", "environment": "from the environment"}
    rows = {
        "platform": draft.platform + account,
        "backend": draft.backend,
        "model": draft.model or "none",
        "learns": f"{'with your settings' if draft.preset == OWN else draft.preset}, {draft.schedule}",
        "written to": short(place.file.path),
    }
    if needs_token(place, draft):
        rows["token"] = kept.get(draft.keep, f"in the {draft.keep}")
    if needs_owner(place, draft):
        rows["owner"] = "whoever sends the code" if draft.pair else ", ".join(draft.owners) or "as it is"
    order = ("platform", "token", "owner", "backend", "model", "learns", "written to")
    return "\n".join(f"  {name:12}{rows[name]}" for name in order if name in rows)
