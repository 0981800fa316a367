# SPDX-License-Identifier: Apache-2.0
"""Each configured connector: its packages, its tokens, whose they are, what they may, its owners."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from goodbot.api.connector import ConnectorSpec
from goodbot.api.setup import Check, CheckState, ConnectorSetup, Examined, Probe, fail, ok, warn
from goodbot.base.errors import ConfigError, GoodbotError, RetriableError
from goodbot.base.installed import missing_modules
from goodbot.base.packages import install_line
from goodbot.base.proxies import proxy
from goodbot.base.suggest import TERMINAL
from goodbot.cli.connector_setup import prepared, setup_class, wrong_id
from goodbot.cli.doctor.checks import failed
from goodbot.cli.doctor.data import path
from goodbot.config.secrets import FILE, Secrets, SecretStore
from goodbot.conversation.connectors import CONNECTING
from goodbot.store import channels, inspection, people

_PLATFORM_SECONDS = 15.0
RETRYING = "(trying again)"
"""How the daemon ends its words on a platform that it will reach again by itself."""


def probes(examined: Examined) -> list[Probe]:
    """A probe for each configured connector, and one when there is none."""
    try:
        specs = examined.plugins.connectors()
    except GoodbotError as error:
        return [_saying([failed("connectors", error)])]
    names = [name for name in examined.config.connectors if name != TERMINAL]
    if not names:
        text = "none but the terminal: `goodbot chat`"
        return [_saying([ok("connectors", text)])]
    return [_probe(specs[name]) for name in names if name in specs]  # config.py tells of others


def _saying(checks: Sequence[Check]) -> Probe:
    async def run(_: Examined) -> Sequence[Check]:
        return checks

    return Probe(name="connectors", run=run)


def _probe(spec: ConnectorSpec) -> Probe:
    async def run(examined: Examined) -> Sequence[Check]:
        return [*await _account(spec, examined), *await _owners(spec, examined), *_state(spec, examined)]

    return Probe(name=spec.name, run=run, seconds=2 * _PLATFORM_SECONDS)


async def _account(spec: ConnectorSpec, examined: Examined) -> list[Check]:
    """Packages, tokens and the platform's own word; each needs the one before."""
    if missing := missing_modules(spec.requires):
        text = f"packages that it needs are not installed: {', '.join(missing)}"
        return [fail(spec.name, text, install_line(spec.extra) if spec.extra else "")]
    try:
        grants, settings = examined.config.connector(spec.name, spec.settings)
    except ConfigError:
        return []  # the config's line says it
    setup = setup_class(spec)
    names = spec.needs(settings)
    if names and setup and (unset := _unset(spec, setup, settings)):
        return [unset]
    if wrong := [check for name in names if (check := _token(name, setup, spec, examined))]:
        return wrong
    if setup is None:
        return [ok(spec.name, "its packages and tokens are there; it offers no closer look")]
    asking = prepared(setup, Secrets(spec.secrets, examined.environ), settings, examined.config)
    asking.channels = sorted({*grants.channels, *await _channels(spec.name, examined)})
    through = _proxies(spec, asking, examined)
    if any(check.state is CheckState.FAIL for check in through):
        return through
    return [*through, *await _asked(spec, asking, names, examined)]


def _proxies(spec: ConnectorSpec, setup: ConnectorSetup, examined: Examined) -> list[Check]:
    """Through which proxy its platform is reached; no line where none is."""
    part = f"{spec.name} proxy"
    through: dict[str, list[str]] = {}
    try:
        for address in setup.addresses():
            found = proxy(address, examined.environ)
            where = f"through {found.shown} ({found.variable})" if found else "directly"
            through.setdefault(where, []).append(urlsplit(address).hostname or address)
    except GoodbotError as error:
        return [fail(part, str(error), exit_code=ConfigError.exit_code)]
    if not [where for where in through if where != "directly"]:
        return []
    text = "; ".join(f"{', '.join(hosts)} {where}" for where, hosts in through.items())
    return [ok(part, text)]


async def _channels(name: str, examined: Examined) -> list[str]:
    """The shared channels in which an owner has switched the bot on."""
    try:
        async with inspection.look(path(examined.config)) as db:
            found = await channels.everywhere(db) if await inspection.current(db) else []
    except GoodbotError:
        return []
    return [row.channel for row in found if row.connector == name]


def _unset(spec: ConnectorSpec, setup: type[ConnectorSetup], settings: Any) -> Check | None:
    """The first setting that cannot be guessed and is not there."""
    for question in setup.questions:
        if not question.optional and not getattr(settings, question.key):
            text = f"{question.key} is not set: {question.text}"
            fix = f"goodbot connect {spec.name}"
            return fail(f"{spec.name} settings", text, fix, exit_code=ConfigError.exit_code)
    return None


def _token(
    name: str, setup: type[ConnectorSetup] | None, spec: ConnectorSpec, examined: Examined
) -> Check | None:
    """What is wrong with one token before anybody is asked about it."""
    part, value = f"{spec.name} token", examined.environ.get(name, "")
    if not value:
        text = f"{name} is not set, in the environment, the keyring or secrets.env"
        return fail(part, text, f"goodbot connect {spec.name}", exit_code=ConfigError.exit_code)
    if setup is not None and (why := setup.malformed(name, value)):
        return fail(part, f"{_place(name, examined)}: {why}", f"goodbot connect {spec.name}")
    return None


def _place(name: str, examined: Examined) -> str:
    try:
        where = SecretStore(examined.config.home).where(name)
    except GoodbotError:
        where = ""
    place = FILE if where == "file" else f"the {where or 'environment'}"
    return f"{name} from {place}"


async def _asked(
    spec: ConnectorSpec, setup: ConnectorSetup, names: Sequence[str], examined: Examined
) -> list[Check]:
    part = f"{spec.name} {'token' if names else 'account'}"
    place = "".join([f"; {await asyncio.to_thread(_place, name, examined)}" for name in names])
    try:
        async with asyncio.timeout(_PLATFORM_SECONDS):
            who = await setup.identify()
        checks = [ok(part, f"{who.name} (account {who.account}){place}")]
        async with asyncio.timeout(_PLATFORM_SECONDS):
            checks += await setup.examine()
    except RetriableError as error:
        return [warn(part, f"{error}{place}", "look again when the network is back")]
    except TimeoutError:
        text = f"{setup.title} did not answer within {_PLATFORM_SECONDS:g} s{place}"
        return [warn(part, text, "look again when the network is back")]
    except GoodbotError as error:
        return [failed(part, error, f"goodbot connect {spec.name}")]
    return checks


async def _owners(spec: ConnectorSpec, examined: Examined) -> list[Check]:
    """Without an owner nobody can talk to the bot there, or teach it."""
    try:
        grants, _ = examined.config.connector(spec.name, spec.settings)
    except ConfigError:
        return []
    owners = {*grants.owners, *await paired(spec.name, examined, "owner")}
    part = f"{spec.name} people"
    setup = None if missing_modules(spec.requires) else setup_class(spec)
    if not owners and setup and setup.owner:
        return [warn(part, "nobody is its owner", f"goodbot connect {spec.name}")]
    if not owners and setup and not setup.pairs:
        return [ok(part, "owned by whoever logs in from this machine: `goodbot web`")]
    if not owners:
        return [warn(part, "nobody is its owner", f"goodbot pair {spec.name}")]
    for group in ("owners", "raters", "talkers"):
        for named in sorted(getattr(grants, group)):
            if wrong := wrong_id(setup, named):
                return [fail(part, f"{group} names {named!r}, who can be nobody: {wrong}")]
    one = "1 owner" if len(owners) == 1 else f"{len(owners)} owners"
    return [ok(part, f"{one}; `goodbot doctor --security` lists who may what")]


async def paired(name: str, examined: Examined, role: str) -> list[str]:
    """The ids of those who were given a role by pairing or a command."""
    try:
        async with inspection.look(path(examined.config)) as db:
            grants = await people.grants(db) if await inspection.current(db) else []
    except GoodbotError:
        return []
    found = [grant.person.partition(":") for grant in grants if grant.role == role]
    return [id_ for connector, _, id_ in found if connector == name]


def _state(spec: ConnectorSpec, examined: Examined) -> list[Check]:
    """What the running daemon says of it, and of its parts."""
    states: Mapping[str, str] = (examined.daemon or {}).get("connectors") or {}
    if examined.daemon is None:
        return []
    parts = [(part, text) for part, text in states.items() if part.startswith(f"{spec.name}.")]
    hint = "look again in a minute, then at its log"
    return [_itself(spec, states.get(spec.name)), *(warn(part, text, hint) for part, text in parts)]


def _itself(spec: ConnectorSpec, state: str | None) -> Check:
    if state is None:
        text = "the running goodbot does not know it: it was configured since"
        return warn(spec.name, text, "end `goodbot run` and start it again")
    if state == CONNECTING or state.endswith(RETRYING):
        return warn(spec.name, f"not connected: {state}", "look again when the network is back")
    if state != "running":
        return fail(spec.name, f"does not work: {state}")
    return ok(spec.name, "running")
