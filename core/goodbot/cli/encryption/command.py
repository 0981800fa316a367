# SPDX-License-Identifier: Apache-2.0
"""`goodbot encrypt` and `goodbot decrypt`: ask, do it while goodbot does not run, say what is so now."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from goodbot import config
from goodbot.api.texts import commas
from goodbot.api.texts.terminal import here, phrase, sentences
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
from goodbot.store import workshop


def main(arguments: argparse.Namespace) -> int:
    """What of it was typed."""
    cage.keep_to_itself()
    settings = config.load(arguments.home, arguments.config)
    found = Vault(arguments.home, settings.encryption)
    if arguments.command == "encrypt":
        if settings.store.url:
            raise UsageError(phrase("encrypt_server"))
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
    strange = workshop.unsealed(arguments.home)  # nobody knows it any more once this is done
    on = record is not None and not record.doing
    if on and not arguments.rekey and arguments.key and place != found.settings.key:
        raise UsageError(phrase("encrypt_on"))
    if not (on and saved and not arguments.rekey):  # who only wants a copy of the key changes nothing
        work = change.rekey if arguments.rekey else change.turn_on
        with _alone(arguments) as told:
            mark = work(arguments.home, arguments.config, place, told)
        place = config.load(arguments.home, arguments.config).encryption.key
    else:
        assert record is not None  # noqa: S101  it is on
        mark = record.key
    text = phrase("encrypt_done", home=arguments.home, id=mark.id, place=_where(place))
    if not clear.in_memory():
        text = sentences(text, phrase("encrypt_in_clear", place=arguments.home / clear.FOLDER))
    if saved is not None:
        path = saved.expanduser().absolute()
        vault.save(path, found.key(mark, place), arguments.home)
        text += "\n" + phrase("encrypt_saved", path=path)
    elif place != "prompt":
        text += "\n" + phrase("encrypt_keep")
    if arguments.rekey:
        text += "\n" + phrase("encrypt_older")
    text = "\n".join((text, *_in_clear(arguments.home, strange)))
    return {"text": text, "data": {"done": True, "encrypted": True, "key": mark.id, "place": place}}


def _in_clear(home: Path, strange: Sequence[Path]) -> Iterator[str]:
    """What is beside it as before, a sentence each."""
    for code, found in (("encrypt_beside", beside(home)), ("encrypt_left", strange)):
        if names := [str(one) for one in found if one.is_dir()]:
            yield phrase(code, names=commas(here(), *names))


def _where(place: str) -> str:
    if place in ("keyring", "prompt"):
        return phrase(f"encrypt_{place}")
    return phrase("encrypt_file", path=place[5:])


def _decrypt(arguments: argparse.Namespace, found: Vault) -> dict[str, Any]:
    if arguments.out is not None or arguments.key:
        raise UsageError(phrase("decrypt_one_file"))
    if found.record() is None:
        raise UsageError(phrase("decrypt_nothing", home=arguments.home))
    if not agrees(phrase("decrypt_ask", home=arguments.home), yes=arguments.yes):
        return {"text": phrase("not_changed"), "data": {"done": False, "encrypted": True}}
    with _alone(arguments) as told:
        mark = change.turn_off(arguments.home, arguments.config, told)
    text = phrase("decrypt_done", home=arguments.home, id=mark.id)
    return {"text": text, "data": {"done": True, "encrypted": False, "key": mark.id}}


def _reveal(arguments: argparse.Namespace, found: Vault) -> dict[str, Any]:
    """One exported file, or a backup, in clear elsewhere."""
    if arguments.out is None:
        raise UsageError(phrase("decrypt_out"))
    source, out = arguments.path.expanduser(), arguments.out.expanduser().absolute()
    if not source.is_file():
        raise UsageError(phrase("decrypt_no_file", path=source))
    if out.is_relative_to(arguments.home.absolute()):
        raise UsageError(phrase("decrypt_outside", home=arguments.home))
    if arguments.key:
        found = Vault(arguments.home, EncryptionConfig(enabled=True, key=placed(arguments.key)))
    try:
        size = change.reveal(source, out, found)
    except FileExistsError:
        raise UsageError(phrase("decrypt_there", path=out)) from None
    text = phrase("decrypt_clear", path=out)
    return {"text": text, "data": {"done": True, "path": str(out), "bytes": size}}


@contextlib.contextmanager
def _alone(arguments: argparse.Namespace) -> Generator[Callable[[str, float], None]]:
    """While no goodbot runs here; hears how far it is. Raises BusyError."""
    home: Path = arguments.home
    prepare_home(home)
    lock = HomeLock(home)
    try:
        lock.acquire()
    except BusyError as error:
        raise BusyError(phrase("encrypt_stop_first", why=error), pid=error.pid) from error
    with contextlib.ExitStack() as last_to_first:
        last_to_first.callback(lock.release)
        line: LiveLine | None = None

        def told(name: str, share: float) -> None:
            nonlocal line
            if line is None:  # until now a passphrase may have been asked for
                line = last_to_first.enter_context(LiveLine(sys.stderr, quiet=arguments.json))
            line.show(f"{name}: {share:.0%}")

        yield told
