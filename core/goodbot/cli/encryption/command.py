# SPDX-License-Identifier: Apache-2.0
"""`goodbot encrypt` and `goodbot decrypt`: ask, do it while goodbot does not run, say what is so now."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from goodbot import config
from goodbot.base import cage
from goodbot.base.errors import BusyError, UsageError
from goodbot.base.live_line import LiveLine
from goodbot.base.printing import print_answer
from goodbot.cli.asking import agrees
from goodbot.cli.encryption import change
from goodbot.config import EncryptionConfig, clear, vault
from goodbot.config.layout import beside
from goodbot.config.lock import HomeLock, prepare_home
from goodbot.config.vault import Vault, placed


def main(arguments: argparse.Namespace) -> int:
    """What of it was typed."""
    cage.keep_to_itself()
    settings = config.load(arguments.home, arguments.config)
    found = Vault(arguments.home, settings.encryption)
    if arguments.command == "encrypt":
        answer = _encrypt(arguments, found)
    elif arguments.path is not None:
        answer = _reveal(arguments, found)
    else:
        answer = _decrypt(arguments, found)
    print_answer(answer, as_json=arguments.json)
    return 0 if answer["data"]["done"] else 1


def _encrypt(arguments: argparse.Namespace, found: Vault) -> dict[str, Any]:
    place = placed(arguments.key or "") or found.settings.key
    saved: Path | None = arguments.save_key
    record = found.record()
    on = record is not None and not record.doing
    if on and not arguments.rekey and arguments.key and place != found.settings.key:
        raise UsageError("encryption is on already: `goodbot encrypt --rekey --key` takes another key")
    if not (on and saved and not arguments.rekey):  # who only wants a copy of the key changes nothing
        work = change.rekey if arguments.rekey else change.turn_on
        with _alone(arguments) as told:
            mark = work(arguments.home, arguments.config, place, told)
        place = config.load(arguments.home, arguments.config).encryption.key
    else:
        assert record is not None  # noqa: S101  it is on
        mark = record.key
    text = (
        f"What people said, and what was learnt of it, is encrypted in {arguments.home}, with the key "
        f"{mark.id} ({_where(place)})."
    )
    if not clear.in_memory():
        text += (
            f" While goodbot runs, adapters are in clear in {arguments.home / clear.FOLDER}: this system "
            "has no /dev/shm. Encrypt the disk, too."
        )
    if saved is not None:
        path = saved.expanduser().absolute()
        vault.save(path, found.key(mark, place), arguments.home)
        text += f"\nThe key is in {path}, too. Keep that file elsewhere: who has it reads all."
    elif place != "prompt":
        text += "\nKeep a copy of the key: `goodbot encrypt --save-key FILE`. Without it nothing can be read."
    if arguments.rekey:
        text += "\nBackups and exports elsewhere that were made before still have the key of then."
    if left := [str(one) for one in beside(arguments.home)]:
        text += f"\nAs before lies what a restore has replaced: {', '.join(left)}. Delete it when you can."
    return {"text": text, "data": {"done": True, "encrypted": True, "key": mark.id, "place": place}}


def _where(place: str) -> str:
    return {"keyring": "in the keyring", "prompt": "from your passphrase"}.get(place, f"in {place[5:]}")


def _decrypt(arguments: argparse.Namespace, found: Vault) -> dict[str, Any]:
    if arguments.out is not None or arguments.key:
        raise UsageError("--out and --key are for one file that is written in clear: name that file, too")
    if found.record() is None:
        raise UsageError(f"nothing in {arguments.home} is encrypted")
    if not agrees(f"Write all of {arguments.home} in clear again?", yes=arguments.yes):
        return {"text": "Nothing was changed.", "data": {"done": False, "encrypted": True}}
    with _alone(arguments) as told:
        mark = change.turn_off(arguments.home, arguments.config, told)
    text = (
        f"Nothing in {arguments.home} is encrypted any more. Its key {mark.id} stays where it is: "
        "backups that were made with it need it."
    )
    return {"text": text, "data": {"done": True, "encrypted": False, "key": mark.id}}


def _reveal(arguments: argparse.Namespace, found: Vault) -> dict[str, Any]:
    """One exported file, or a backup, in clear elsewhere."""
    if arguments.out is None:
        raise UsageError("say with --out FILE where it is to lie in clear")
    source, out = arguments.path.expanduser(), arguments.out.expanduser().absolute()
    if not source.is_file():
        raise UsageError(f"there is no file {source}")
    if out.is_relative_to(arguments.home.absolute()):
        raise UsageError(f"nothing in {arguments.home} is to lie in clear: name a place outside of it")
    if arguments.key:
        found = Vault(arguments.home, EncryptionConfig(enabled=True, key=placed(arguments.key)))
    try:
        size = change.reveal(source, out, found)
    except FileExistsError:
        raise UsageError(f"{out} is there already: nothing is written over") from None
    return {"text": f"{out} holds it in clear.", "data": {"done": True, "path": str(out), "bytes": size}}


@contextlib.contextmanager
def _alone(arguments: argparse.Namespace) -> Generator[Callable[[str, float], None]]:
    """While no goodbot runs here; hears how far it is. Raises BusyError."""
    home: Path = arguments.home
    prepare_home(home)
    lock = HomeLock(home)
    try:
        lock.acquire()
    except BusyError as error:
        raise BusyError(f"{error}: stop it first", pid=error.pid) from error
    with contextlib.ExitStack() as last_to_first:
        last_to_first.callback(lock.release)
        line: LiveLine | None = None

        def told(name: str, share: float) -> None:
            nonlocal line
            if line is None:  # until now a passphrase may have been asked for
                line = last_to_first.enter_context(LiveLine(sys.stderr, quiet=arguments.json))
            line.show(f"{name}: {share:.0%}")

        yield told
