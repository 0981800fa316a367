# SPDX-License-Identifier: Apache-2.0
"""`goodbot disconnect NAME`: the platform's section, its tokens and what was set up there go."""

from __future__ import annotations

import argparse
import asyncio
import os
from dataclasses import replace

from goodbot import config
from goodbot.api import control
from goodbot.api.sentences import sentence
from goodbot.api.texts import explained, reworded
from goodbot.api.texts.terminal import here, instead, phrase
from goodbot.base.errors import GoodbotError, UsageError
from goodbot.base.printing import print_answer, say
from goodbot.cli.asking import agrees
from goodbot.cli.uninstall import Leaving
from goodbot.cli.uninstall.platforms import platforms
from goodbot.config.file import ConfigFile
from goodbot.config.secrets import SecretStore
from goodbot.daemon.app import open_plugins


def main(arguments: argparse.Namespace) -> int:
    """0: it is gone, 1: some of it could not be removed, or the answer was no."""
    name: str = arguments.name
    settings = config.load(arguments.home, arguments.config)
    if name not in settings.connectors:
        known = instead(name, settings.connectors)
        raise UsageError(phrase("not_connected", name=repr(name[:40]), instead=known))
    plugins = open_plugins(settings)
    alone = replace(settings, connectors={name: settings.connectors[name]})
    leaving = Leaving(home=arguments.home, config=alone, plugins=plugins, keep_data=True)
    if not agrees(phrase("leave_sure", name=name), yes=arguments.yes):
        say(phrase("not_removed"))
        return 1
    gone, stays = asyncio.run(_platform(leaving))
    file = ConfigFile(arguments.home, arguments.config)
    file.remove(f"connectors.{name}")
    file.save()
    gone.append(f"[connectors.{name}]")
    spec = plugins.connectors().get(name)
    store = SecretStore(arguments.home)
    for secret in spec.secrets if spec else ():
        if store.delete(secret):
            gone.append(secret)
        if os.environ.get(secret):
            stays.append(phrase("stays_set", name=secret))
    daemon = control.call(arguments.home, "status", [])
    lines = [phrase("removed", what=what) for what in gone]
    lines += [phrase("stays", what=why) for why in stays]
    if daemon:
        lines.append(sentence(phrase("setup_restart", pid=daemon["data"]["pid"]), here()))
    data = {"removed": gone, "stays": stays, "restart": bool(daemon)}
    print_answer({"text": "\n".join(lines), "data": data}, as_json=arguments.json)
    return 1 if stays else 0


async def _platform(leaving: Leaving) -> tuple[list[str], list[str]]:
    """What went from the platform itself, and what did not, with the reason."""
    gone: list[str] = []
    stays: list[str] = []
    for trace in await platforms(leaving):
        if trace.remove is None:
            stays.append(explained(trace.what, trace.stays, here()))
            continue
        try:
            await trace.remove()
            gone += trace.done or [trace.what]
        except (GoodbotError, TimeoutError) as error:
            stays.append(explained(trace.what, reworded(error, here()) or phrase("platform_silent"), here()))
    return gone, stays
