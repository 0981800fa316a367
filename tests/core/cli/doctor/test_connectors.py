# SPDX-License-Identifier: Apache-2.0
"""A connector's packages, tokens, people and state; ports and the service."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiohttp import web
from goodbot import Capability, ConnectorSpec, hookimpl
from goodbot.api.setup import Check, CheckState, ConnectorSetup, Identity, Question
from goodbot.base.errors import FatalConnectorError, RetriableError
from goodbot.cli.doctor import connectors, network
from goodbot.config.lock import HomeLock, prepare_home
from goodbot.config.secrets import SecretStore
from goodbot.store import people
from goodbot_connectors import api as api_connector
from goodbot_connectors import web as web_connector
from goodbot_connectors.terminal import TerminalSettings

from tests.core.cli.doctor.examining import examined, states, store

TOKEN = "GOODBOT_PIGEON_TOKEN"
TOML = "[connectors.pigeon]\nowners = [1]\n"
TOLD = {TOKEN: "coo-coo-coo"}


class PigeonSetup(ConnectorSetup):
    """A platform whose answers the test chooses."""

    title = "Pigeon"
    guide = "Ask a pigeon."
    trouble: ClassVar[BaseException | None] = None

    @classmethod
    def malformed(cls, name: str, value: str) -> str:
        return "" if value.startswith("coo") else "a pigeon's token says coo"

    @classmethod
    def wrong_user_id(cls, value: str) -> str:
        return "" if value.isdecimal() else "a pigeon has a number"

    def addresses(self) -> Sequence[str]:
        return "https://loft.example/api", "wss://roof.example"

    async def identify(self) -> Identity:
        if isinstance(self.trouble, asyncio.TimeoutError):
            await asyncio.Event().wait()
        if self.trouble is not None:
            raise self.trouble
        return Identity(account="7", name="@bird")

    async def examine(self) -> Sequence[Check]:
        return [Check(part="pigeon loft", state=CheckState.OK, text="the loft is open")]


class Pigeons:
    def __init__(self, **fields: Any) -> None:
        self.spec = ConnectorSpec(
            **{
                "name": "pigeon",
                "factory": "nowhere:Nothing",
                "capabilities": Capability.NONE,
                "settings": TerminalSettings,
                "secrets": (TOKEN,),
                "extra": "pigeon",
                "setup": f"{__name__}:PigeonSetup",
                **fields,
            }
        )

    @hookimpl
    def register_connector(self) -> ConnectorSpec:
        return self.spec


async def look(home: Path, toml: str = TOML, pigeons: Pigeons | None = None, **more: Any) -> Any:
    seen = examined(home, toml, pigeons or Pigeons(), **{"environ": TOLD, **more})
    [probe] = connectors.probes(seen)
    return await probe.run(seen)


@pytest.fixture(autouse=True)
def contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PigeonSetup, "trouble", None)
    monkeypatch.setattr(connectors, "_PLATFORM_SECONDS", 0.2)


async def test_all_is_well(tmp_path: Path) -> None:
    checks = await look(tmp_path)
    assert states(checks) == dict.fromkeys(("pigeon token", "pigeon loft", "pigeon people"), CheckState.OK)
    assert checks[0].text.startswith("@bird (account 7)")


async def test_the_proxy_in_use_is_named_without_its_credentials(tmp_path: Path) -> None:
    environ = {**TOLD, "HTTPS_PROXY": "http://ada:hush@one.example:3128"}
    checks = await look(tmp_path, environ=environ)
    text = "loft.example, roof.example through http://***@one.example:3128 (HTTPS_PROXY)"
    assert (checks[0].part, checks[0].state, checks[0].text) == ("pigeon proxy", CheckState.OK, text)
    checks = await look(tmp_path, environ={**environ, "NO_PROXY": "roof.example"})
    assert checks[0].text.endswith("(HTTPS_PROXY); roof.example directly")
    checks = await look(tmp_path, environ={**environ, "NO_PROXY": "*"})
    assert "pigeon proxy" not in states(checks)


async def test_a_proxy_that_cannot_be_used_fails_before_anybody_is_asked(tmp_path: Path) -> None:
    environ = {**TOLD, "ALL_PROXY": "socks5://ada:hush@one.example:1080"}
    proxy, _ = await look(tmp_path, environ=environ)
    assert (proxy.part, proxy.state, proxy.exit_code) == ("pigeon proxy", CheckState.FAIL, 2)
    assert "SOCKS is not supported" in proxy.text
    assert "hush" not in proxy.text


async def test_none_is_configured(tmp_path: Path) -> None:
    [check] = await look(tmp_path, "")
    assert (check.state, "none but the terminal" in check.text) == (CheckState.OK, True)


async def test_its_packages_are_missing(tmp_path: Path) -> None:
    checks = await look(tmp_path, pigeons=Pigeons(requires=("no_such_module",)))
    assert states(checks)["pigeon"] is CheckState.FAIL
    assert checks[0].fix == "the page of its plugin says how"


async def test_its_token_is_missing(tmp_path: Path) -> None:
    checks = await look(tmp_path, environ={})
    assert (checks[0].state, checks[0].exit_code) == (CheckState.FAIL, 2)
    assert (TOKEN in checks[0].text, checks[0].fix) == (True, "goodbot connect pigeon")


@dataclass(frozen=True, kw_only=True)
class ByLetter(TerminalSettings):
    """With a setting that makes another secret needless."""

    needed_secrets: ClassVar[tuple[str, ...]] = (TOKEN,)


@dataclass(frozen=True, kw_only=True)
class Lofts(TerminalSettings):
    """With a setting that nobody can guess."""

    loft: str = ""


async def test_only_the_tokens_that_its_settings_call_for_are_missed(tmp_path: Path) -> None:
    both = (TOKEN, "GOODBOT_PIGEON_SEAL")
    every = await look(tmp_path, pigeons=Pigeons(secrets=both))
    assert "GOODBOT_PIGEON_SEAL is not set" in every[0].text
    checks = await look(tmp_path, pigeons=Pigeons(secrets=both, settings=ByLetter))
    assert states(checks)["pigeon token"] is CheckState.OK


async def test_its_token_cannot_be_one(tmp_path: Path) -> None:
    checks = await look(tmp_path, environ={TOKEN: "moo-moo-moo"})
    assert (checks[0].state, "says coo" in checks[0].text) == (CheckState.FAIL, True)
    assert "moo" not in checks[0].text


async def test_it_says_where_the_token_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goodbot.config.secrets.keyring_usable", lambda: False)
    SecretStore(tmp_path).set(TOKEN, TOLD[TOKEN])
    assert f"{TOKEN} from secrets.env" in (await look(tmp_path))[0].text
    monkeypatch.setenv(TOKEN, "coo")
    assert f"{TOKEN} from the environment" in (await look(tmp_path))[0].text


@pytest.mark.parametrize(
    ("trouble", "state", "word"),
    [
        (FatalConnectorError("it does not know you"), CheckState.FAIL, "does not know you"),
        (RetriableError("the line is dead"), CheckState.WARN, "the line is dead"),
        (TimeoutError(), CheckState.WARN, "Pigeon did not answer within 0.2 s"),
    ],
)
async def test_what_the_platform_says(
    trouble: Exception, state: CheckState, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PigeonSetup, "trouble", trouble)
    check = (await look(tmp_path))[0]
    assert (check.part, check.state, word in check.text) == ("pigeon token", state, True)
    assert check.fix


async def test_without_a_setup_the_rest_is_looked_at(tmp_path: Path) -> None:
    checks = await look(tmp_path, pigeons=Pigeons(setup=""))
    assert states(checks) == {"pigeon": CheckState.OK, "pigeon people": CheckState.OK}


async def test_nobody_is_its_owner(tmp_path: Path) -> None:
    checks = await look(tmp_path, "[connectors.pigeon]\nraters = [1]\n")
    assert (checks[-1].state, checks[-1].fix) == (CheckState.WARN, "goodbot pair pigeon")


@pytest.mark.parametrize("named", ["@ada", "Ada Lovelace", "sparrow"])
@pytest.mark.parametrize("role", ["owners", "raters", "talkers"])
async def test_who_is_named_by_a_name_is_locked_out_and_that_is_said(
    tmp_path: Path, role: str, named: str
) -> None:
    checks = await look(
        tmp_path,
        f"[connectors.pigeon]\nowners = [1]\n{role} = ['{named}']\n"
        if role != "owners"
        else f"[connectors.pigeon]\nowners = ['{named}']\n",
    )
    assert checks[-1].state is CheckState.FAIL
    assert checks[-1].text.startswith(f"{role} names {named!r}, who can be nobody: ")


async def test_a_paired_owner_counts(tmp_path: Path) -> None:
    async def pair(db: Any) -> None:
        await people.grant(db, "pigeon:9", "owner", people.PAIRING, 1.0)

    await asyncio.to_thread(store, tmp_path / "home", pair)
    checks = await look(tmp_path / "home", "[connectors.pigeon]\n")
    assert states(checks)["pigeon people"] is CheckState.OK


@pytest.mark.parametrize(
    ("running", "state"),
    [
        ({"pigeon": "running"}, CheckState.OK),
        ({"pigeon": "the wing is broken"}, CheckState.FAIL),
        ({"pigeon": "no wind (trying again)"}, CheckState.WARN),
        ({"pigeon": "connecting"}, CheckState.WARN),
        ({}, CheckState.WARN),
    ],
)
async def test_what_the_daemon_says(running: dict[str, str], state: CheckState, tmp_path: Path) -> None:
    retrying = [name for name, why in running.items() if why.endswith("(trying again)")]
    checks = await look(tmp_path, daemon={"connectors": running, "retrying": retrying})
    assert states(checks)["pigeon"] is state


async def test_what_is_told_of_a_connector_is_not_looked_into(tmp_path: Path) -> None:
    checks = await look(tmp_path, daemon={"connectors": {"pigeon": "the wing is broken (trying again)"}})
    assert states(checks)["pigeon"] is CheckState.FAIL


async def test_26_11_a_part_of_it_is_told_beside_it(tmp_path: Path) -> None:
    running = {"pigeon": "running", "pigeon.rater_groups": "it does not say who is in them", "pigeons": "?"}
    checks = states(await look(tmp_path, daemon={"connectors": running}))
    assert (checks["pigeon"], checks["pigeon.rater_groups"]) == (CheckState.OK, CheckState.WARN)
    assert "pigeons" not in checks


async def port(home: Path, number: int, *, host: str = "127.0.0.1", daemon: Any = None) -> Any:
    toml = f'[http]\nport = {number}\nhost = "{host}"\n'
    return await network.ports(examined(home, toml, daemon=daemon))


async def test_ports(tmp_path: Path) -> None:
    app = web.Application()
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    number = site._server.sockets[0].getsockname()[1]
    [taken] = await port(tmp_path, number)
    assert (taken.state, taken.exit_code) == (CheckState.FAIL, 2)
    [strange] = await port(tmp_path, number, daemon={})
    assert (strange.state, "404" in strange.text) == (CheckState.WARN, True)
    await runner.cleanup()
    [free] = await port(tmp_path, number)
    assert (free.state, "is free" in free.text) == (CheckState.OK, True)
    [silent] = await port(tmp_path, number, daemon={})
    assert (silent.state, "nothing listens" in silent.text) == (CheckState.FAIL, True)
    [off] = await network.ports(examined(tmp_path))
    assert off.state is CheckState.OK


async def test_the_port_of_a_goodbot_that_is_starting_is_its_own(tmp_path: Path) -> None:
    async def healthy(_: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    app = web.Application()
    app.router.add_get("/healthz", healthy)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    number = site._server.sockets[0].getsockname()[1]
    prepare_home(tmp_path / "home")
    lock = HomeLock(tmp_path / "home")
    lock.acquire()
    [starting] = await port(tmp_path / "home", number)
    lock.release()
    [somebody] = await port(tmp_path / "home", number)
    await runner.cleanup()
    assert (starting.state, "is starting" in starting.text) == (CheckState.OK, True)
    assert somebody.state is CheckState.FAIL


async def test_the_browsers_port_is_looked_at_without_being_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    monkeypatch.setattr(network, "PORT", unused_tcp_port)
    [check] = await network.ports(examined(tmp_path, "[connectors.web]\n", web_connector))
    assert (check.state, check.text) == (CheckState.OK, f"127.0.0.1:{unused_tcp_port} is free")


async def test_a_setting_that_nobody_can_guess_is_missed_before_anybody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PigeonSetup, "questions", (Question(key="loft", text="Number of the loft"),))
    checks = await look(tmp_path, pigeons=Pigeons(settings=Lofts))
    assert (checks[0].state, checks[0].exit_code) == (CheckState.FAIL, 2)
    assert "loft is not set: Number of the loft" in checks[0].text
    checks = await look(tmp_path, f'{TOML}loft = "7"\n', pigeons=Pigeons(settings=Lofts))
    assert states(checks)["pigeon token"] is CheckState.OK


async def test_where_people_log_in_from_this_machine_nobody_must_be_paired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PigeonSetup, "pairs", False)
    checks = await look(tmp_path, "[connectors.pigeon]\n")
    assert states(checks)["pigeon people"] is CheckState.OK


async def test_a_port_for_other_machines_is_worth_a_word(tmp_path: Path) -> None:
    checks = await port(tmp_path, 1, host="0.0.0.0")
    assert (checks[0].state, "other machines" in checks[0].text) == (CheckState.WARN, True)


async def test_where_it_would_not_start_it_is_said(tmp_path: Path) -> None:
    toml = '[http]\nport = 1\nhost = "0.0.0.0"\n'
    [refused] = await network.ports(examined(tmp_path, f"{toml}[connectors.api]\n", api_connector))
    assert (refused.state, "does not start there" in refused.text) == (CheckState.FAIL, True)
    meant = f'{toml}url = "http://localhost:1"\n[connectors.api]\n'
    assert (await network.ports(examined(tmp_path, meant, api_connector)))[0].state is CheckState.WARN


@pytest.mark.parametrize("name", ["api", "claude_code", "codex", "openclaw", "web"])
async def test_whoever_has_routes_is_known_by_what_they_declare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int, name: str
) -> None:
    """`run` refuses for any connector that answers there, and listens without being told a port."""
    plugin = importlib.import_module(f"goodbot_connectors.{name}")
    monkeypatch.setattr(network, "PORT", unused_tcp_port)
    toml = f"[connectors.{name}]\n"
    [free] = await network.ports(examined(tmp_path, toml, plugin))
    assert free.text == f"127.0.0.1:{unused_tcp_port} is free"
    [refused] = await network.ports(examined(tmp_path, f'[http]\nhost = "0.0.0.0"\n{toml}', plugin))
    assert (refused.state, "does not start there" in refused.text) == (CheckState.FAIL, True)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({"manager": ""}, CheckState.OK),
        ({"manager": "systemd"}, CheckState.OK),
        ({"manager": "systemd", "installed": True, "state": "failed"}, CheckState.FAIL),
        ({"manager": "systemd", "installed": True, "active": True}, CheckState.WARN),
        ({"manager": "launchd", "installed": True, "active": True, "enabled": True}, CheckState.OK),
    ],
)
async def test_the_service(
    status: dict[str, Any], state: CheckState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from goodbot.cli.service import ServiceStatus

    monkeypatch.setattr("goodbot.cli.service.status", lambda home: ServiceStatus(**status))
    [check] = await network.service(examined(tmp_path))
    assert check.state is state
