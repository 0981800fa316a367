# SPDX-License-Identifier: Apache-2.0
"""`goodbot manifest NAME`: what a platform makes the bot's account of, on standard output."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from goodbot import config
from goodbot.api.setup import Manifest
from goodbot.api.texts.terminal import instead, phrase
from goodbot.base.errors import MissingExtraError, UsageError
from goodbot.base.installed import missing_modules
from goodbot.base.printing import say, say_json
from goodbot.base.worded import Worded
from goodbot.cli.connector_setup import prepared, setup_class
from goodbot.cli.setup.manifest import explained
from goodbot.config.secrets import Secrets, SecretStore
from goodbot.daemon.app import open_plugins


def main(arguments: argparse.Namespace) -> int:
    """The file alone, so that it can be sent into one; what it asks for, with reasons, on a terminal."""
    settings = config.load(arguments.home, arguments.config)
    specs = open_plugins(settings).connectors()
    spec = specs.get(arguments.name)
    if spec is None:
        known = instead(arguments.name, specs)
        raise UsageError(phrase("no_connector", name=repr(arguments.name[:40]), instead=known))
    if missing_modules(spec.requires):
        raise MissingExtraError(Worded("the {name} connector", name=spec.name), spec.extra or spec.name)
    made = setup_class(spec)
    own = settings.connector(spec.name, spec.settings)[1]
    # A token that is there already may tell whose manifest it is.
    kept = SecretStore(arguments.home).environment(spec.secrets)
    setup = prepared(made, Secrets(spec.secrets, kept), own, settings) if made else None
    manifest = setup.manifest() if setup else None
    if setup is None or manifest is None:
        raise UsageError(phrase("no_manifest", name=spec.name))
    if arguments.out:
        arguments.out.write_bytes(manifest.content)
    if arguments.json:
        told = {name: value for name, value in asdict(manifest).items() if name != "packed"}
        say_json({**told, "out": str(arguments.out or "")})
        return 0
    if arguments.out:
        say(phrase("setup_written", file=arguments.out))
    else:
        _print(manifest)
    if sys.stdout.isatty() and manifest.file:
        how = "manifest_link" if manifest.filled else "manifest_in"
        where = phrase(how, link=manifest.link) if manifest.link else ""
        say("\n".join(["", *explained(setup, manifest), where]).rstrip(), file=sys.stderr)
    return 0


def _print(manifest: Manifest) -> None:
    if not manifest.packed:
        say(manifest.text, end="" if manifest.text.endswith("\n") else "\n")
    elif sys.stdout.isatty():
        raise UsageError(phrase("manifest_no_text", file=manifest.file))
    else:
        sys.stdout.buffer.write(manifest.packed)
        sys.stdout.buffer.flush()
