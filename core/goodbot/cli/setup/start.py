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
    dialogue.rows(_summary(dialogue, place, draft))
    for missing in draft.missing.values():
        dialogue.say(dialogue.phrase("setup_missing", what=missing))
    dialogue.hint("")
    choices: list[Choice] = []
    if place.daemon:
        note = dialogue.phrase("setup_restart_note")
        choices.append(Choice(value="no", label=dialogue.phrase("setup_write"), note=note))
    else:
        if not _NEEDED & set(draft.missing):
            key = "setup_write_chat" if draft.platform == TERMINAL else "setup_write_run"
            choices.append(Choice(value="now", label=dialogue.phrase(key)))
            if draft.keep != "environment" and _supervised():
                note = dialogue.phrase("setup_service_note")
                label = dialogue.phrase("setup_write_service")
                choices.append(Choice(value="service", label=label, note=note))
        choices.append(Choice(value="no", label=dialogue.phrase("setup_write_later")))
    values = [choice.value for choice in choices]
    if dialogue.answer("--start") in {"now", "service"} - set(values):
        dialogue.say(dialogue.phrase("setup_no_start", how=dialogue.answer("--start")))
        dialogue.forget("--start")
    draft.start = dialogue.choose("--start", choices, values[0] if dialogue.asks else "no")


def _supervised() -> bool:
    return sys.platform == "darwin" or shutil.which("systemctl") is not None


def _summary(dialogue: Dialogue, place: StateFound, draft: Draft) -> dict[str, str]:
    account = f", {draft.identity.name}" if draft.identity else ""
    kept = {"file": "setup_kept_file", "environment": "setup_kept_nowhere", "keyring": "setup_kept_keyring"}
    how = dialogue.phrase("setup_own_settings") if draft.preset == OWN else draft.preset
    rows = {"setup_row_platform": draft.platform + account}
    if needs_token(place, draft):
        rows["setup_row_token"] = dialogue.phrase(kept[draft.keep]) if draft.keep in kept else draft.keep
    if needs_owner(place, draft):
        named = ", ".join(draft.owners)
        unnamed = dialogue.phrase("setup_owner_by_code" if draft.pair else "setup_owner_stays")
        rows["setup_row_owner"] = unnamed if draft.pair or not named else named
    rows |= {
        "setup_row_backend": draft.backend,
        "setup_row_model": draft.model or dialogue.phrase("setup_none"),
        "setup_row_learns": f"{how}, {draft.schedule}",
        "setup_row_written": short(place.file.path),
    }
    return {dialogue.phrase(name): what for name, what in rows.items()}
