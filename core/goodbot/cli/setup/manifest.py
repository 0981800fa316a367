# SPDX-License-Identifier: Apache-2.0
"""What the platform makes the account of: explained, shown, and written where it can be picked up."""

from __future__ import annotations

import contextlib
from pathlib import Path

from goodbot.api.setup import ConnectorSetup, Manifest
from goodbot.api.texts.terminal import phrase, rephrased
from goodbot.cli.doctor.checks import short
from goodbot.cli.setup.dialogue import Dialogue
from goodbot.cli.setup.draft import Draft, StateFound
from goodbot.config.lock import prepare_home


def show_manifest(
    dialogue: Dialogue, place: StateFound, draft: Draft, setup: ConnectorSetup, *, of_account: bool = False
) -> None:
    """Nothing where the platform takes none, or where nobody is asked anything.

    One that names the account is shown when that is known (`of_account`), any other before.
    """
    manifest = setup.manifest() if dialogue.asks else None
    if manifest is None or manifest.of_account is not of_account:
        return
    discard_manifest(draft)  # of an earlier walk through this step
    if manifest.filled:
        file = short(_write(place.config.home, draft, manifest))
        dialogue.link(dialogue.phrase("setup_link_filled", title=setup.title), manifest.link)
        dialogue.say(f"{dialogue.phrase('setup_same_in', file=file, name=draft.platform)}\n")
        return
    if permissions := explained(setup, manifest):
        dialogue.say("\n".join(permissions))
    if manifest.file:
        file = _write(place.config.home, draft, manifest)
        if manifest.packed:
            dialogue.say(f"\n{dialogue.phrase('setup_all_in', file=short(file))}")
        else:
            dialogue.say(f"\n{dialogue.phrase('setup_manifest_in', file=short(file))}\n")
            dialogue.verbatim(manifest.text)
    if of_account and manifest.link:
        key = "setup_give_in" if manifest.file else "setup_open_to_add"
        dialogue.link(f"\n{dialogue.phrase(key)}", manifest.link)


def explained(setup: ConnectorSetup, manifest: Manifest) -> list[str]:
    """The permissions, a line each with the names in one column."""
    if not manifest.permissions:
        return []
    width = max(len(one.name) for one in manifest.permissions)
    asked = [f"  {one.name:{width}}  {rephrased(one.why)}" for one in manifest.permissions]
    return [phrase("setup_permissions", title=setup.title), *asked]


def discard_manifest(draft: Draft) -> None:
    """Take the file away again: whoever leaves leaves nothing behind."""
    for path in reversed(draft.made):
        with contextlib.suppress(OSError):  # a directory that holds something else by now
            path.rmdir() if path.is_dir() else path.unlink()
    draft.made = []


def _write(home: Path, draft: Draft, manifest: Manifest) -> Path:
    folder = home / "connectors" / draft.platform
    file = folder / manifest.file
    wanted = [home, folder.parent, folder]
    draft.made = [path for path in wanted if not path.exists()]
    prepare_home(home)
    for directory in wanted[1:]:
        directory.mkdir(mode=0o700, exist_ok=True)
    if not file.exists():
        draft.made.append(file)
    file.write_bytes(manifest.content)
    return file
