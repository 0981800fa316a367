# SPDX-License-Identifier: Apache-2.0
"""On the platforms and in the keyring: what connectors have set up, and their tokens."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from goodbot.api.connector import ConnectorSpec
from goodbot.api.setup import ConnectorSetup
from goodbot.api.texts import explained, pauses, reworded
from goodbot.api.texts.terminal import here, phrase
from goodbot.base.errors import GoodbotError
from goodbot.base.installed import missing_modules
from goodbot.cli.connector_setup import prepared, setup_class
from goodbot.cli.uninstall.trace import Leaving, Trace, staying
from goodbot.config import EncryptionConfig
from goodbot.config.secrets import Secrets, SecretStore
from goodbot.config.vault import Vault

_PLATFORM_SECONDS = 15.0


async def platforms(leaving: Leaving) -> Sequence[Trace]:
    """What each configured connector has left on its platform; needs the network and the token."""
    if leaving.config is None:
        what = phrase("uninstall_platforms")
        return [staying("platform", what, phrase("uninstall_no_config"))]
    specs = leaving.plugins.connectors()
    traces: list[Trace] = []
    for name in sorted(leaving.config.connectors):
        what = phrase("uninstall_platform", name=name)
        if name not in specs:
            traces.append(staying("platform", what, phrase("uninstall_no_connector")))
        elif specs[name].setup:
            try:
                async with asyncio.timeout(_PLATFORM_SECONDS):
                    traces += await _platform(leaving, specs[name])
            except GoodbotError as error:
                traces.append(staying("platform", what, reworded(error, here())))
            except TimeoutError:
                traces.append(staying("platform", what, phrase("platform_silent")))
    return traces


async def _platform(leaving: Leaving, spec: ConnectorSpec) -> list[Trace]:
    setup = _setup(leaving, spec)
    done: list[str] = []

    async def remove() -> None:
        async with asyncio.timeout(setup.remove_seconds):
            done.extend(await setup.remove(dry_run=False))

    found = await setup.remove(dry_run=True)
    # They go together, by the first one's `remove`.
    return [
        Trace(
            kind="platform",
            what=explained(spec.name, pauses(here(), *found), here()),
            remove=remove,
            done=done,
        )
        for _ in found[:1]
    ]


def _setup(leaving: Leaving, spec: ConnectorSpec) -> ConnectorSetup:
    if missing_modules(spec.requires):
        raise GoodbotError(phrase("uninstall_no_packages"))
    assert leaving.config is not None  # noqa: S101  asked before
    _, settings = leaving.config.connector(spec.name, spec.settings)
    secrets = Secrets(spec.secrets, SecretStore(leaving.home).environment(spec.secrets))
    if missing := [one for one in spec.needs(settings) if not secrets.get(one)]:
        raise GoodbotError(phrase("uninstall_no_token", name=missing[0]))
    made = setup_class(spec)
    assert made is not None  # noqa: S101  asked before
    return prepared(made, secrets, settings, leaving.config)


async def tokens(leaving: Leaving) -> Sequence[Trace]:
    """Entries of the keyring; those in `secrets.env` go with the state directory."""
    store = SecretStore(leaving.home)
    names = sorted({n for spec in leaving.plugins.connectors().values() for n in spec.secrets})
    traces: list[Trace] = []
    for name in names:
        try:
            kept = store.in_keyring(name)
        except GoodbotError as error:
            kept = False
            traces.append(
                staying("token", phrase("uninstall_if_keyring", name=name), reworded(error, here()))
            )
        if kept:

            async def remove(name: str = name) -> None:
                store.delete_from_keyring(name)

            what = phrase("uninstall_in_keyring", name=name)
            traces.append(Trace(kind="token", what=what, remove=remove))
        if os.environ.get(name):
            why = phrase("uninstall_unset")
            traces.append(staying("token", phrase("uninstall_variable", name=name), why))
    return traces + _key(leaving)


def _key(leaving: Leaving) -> list[Trace]:
    """That of an encrypted goodbot stays: without it none of its backups could be read."""
    try:
        record = Vault(leaving.home, EncryptionConfig()).record()
    except GoodbotError:
        return []
    if record is None or record.place.partition(":")[0] not in ("keyring", "file"):
        return []
    where = phrase("encrypt_file", path=record.place.partition(":")[2])
    if record.place == "keyring":
        where = phrase("encrypt_keyring")
    what = phrase("uninstall_key", id=record.key.id, place=where)
    return [staying("key", what, phrase("uninstall_key_needed"))]
