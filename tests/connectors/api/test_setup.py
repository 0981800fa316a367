# SPDX-License-Identifier: Apache-2.0
"""`goodbot connect api`, `goodbot api token …` and the doctor: programs come in and go."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sqlite3
import subprocess
from pathlib import Path

import pytest
from goodbot.api.setup import CheckState
from goodbot.cli import main
from goodbot.config.secrets import Secrets
from goodbot_connectors.api import ApiSettings
from goodbot_connectors.api.setup import ApiSetup, curl
from goodbot_connectors.kit.bridge import clients
from goodbot_connectors.kit.bridge.clients import Clients

from tests.connectors.api.daemon import served
from tests.support import require_program


def made(home: Path, port: int = 1) -> ApiSetup:
    setup = ApiSetup(Secrets((), {}), ApiSettings())
    setup.home = home
    setup.address = f"http://127.0.0.1:{port}"
    return setup


def connected(home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('[connectors.api]\nowners = ["me"]\n')


async def test_connecting_makes_a_client_once(tmp_path: Path) -> None:
    setup = made(tmp_path)
    [line] = await setup.install(dry_run=True)
    assert "'me'" in line
    assert clients.listed(tmp_path, "api") == []
    told, tried = await setup.install(dry_run=False)
    token = told.splitlines()[1].strip()
    assert tried.splitlines()[1].strip() == curl(setup.address, token)
    known = Clients(tmp_path / "connectors" / "api")
    assert (client := known.who(token)) is not None
    assert (client.name, client.admin) == ("me", True)
    assert await setup.install(dry_run=False) == ()
    assert known.who(token) is not None, "the second time changes nothing"
    assert await setup.remove(dry_run=True) == ["the token of me"]
    assert known.who(token) is not None
    assert await setup.remove(dry_run=False) == ["the token of me"]
    assert known.who(token) is None
    assert await setup.remove(dry_run=False) == []


async def test_the_line_to_try_works_and_keeps_the_token_out_of_the_list_of_processes(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    require_program("curl")
    async with served(tmp_path, unused_tcp_port) as api:
        line = curl(f"http://127.0.0.1:{unused_tcp_port}", api.me.token)
        import asyncio

        run = await asyncio.create_subprocess_exec(
            "sh", "-c", line.replace("curl ", "curl --silent ", 1), stdout=subprocess.PIPE
        )
        said, _ = await run.communicate()
        assert json.loads(said)["client"] == "me"
        assert api.me.token not in line.partition("|")[2]
        assert shlex.split(line)[0] == "echo", "which is no program, in any shell"


async def test_the_doctor_says_whether_it_answers_and_who_comes_in(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    answers, told = await made(tmp_path / "bot", unused_tcp_port).examine()
    assert (answers.state, answers.fix) == (CheckState.WARN, "goodbot run")
    assert (told.state, told.fix) == (CheckState.WARN, "goodbot api token add NAME")
    async with served(tmp_path, unused_tcp_port):
        answers, told = await made(tmp_path / "bot", unused_tcp_port).examine()
        assert answers.state is CheckState.OK
        assert (told.state, told.text) == (
            CheckState.OK,
            "programs with a token: ci, guest, me (admin), stranger",
        )


async def test_the_doctor_knows_a_program_that_is_not_goodbot(unused_tcp_port: int) -> None:
    from aiohttp import web

    runner = web.ServerRunner(web.Server(_empty))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    answers, _ = await made(Path("/nowhere"), unused_tcp_port).examine()
    assert answers.state is CheckState.FAIL
    assert "is no API of goodbot's (200)" in answers.text
    await runner.cleanup()


async def _empty(request: object) -> object:
    from aiohttp import web

    return web.Response()


def test_programs_come_and_go_by_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "home"

    def run(*words: str) -> tuple[int, str]:
        code = main(["--home", str(home), "api", "token", *words])
        out = capsys.readouterr()
        return code, out.out + out.err

    connected(home)
    assert run("list") == (0, "No program has a token: `goodbot api token add NAME` makes one.\n")
    code, said = run("add", "ci", "--json")
    assert code == 0
    token = json.loads(said)["token"]
    known = Clients(home / "connectors" / "api")
    assert (client := known.who(token)) is not None
    assert (client.name, client.admin) == ("ci", False)
    main(["--home", str(home), "people", "--json"])
    roles = {one["person"]: one["role"] for one in json.loads(capsys.readouterr().out)["people"]}
    assert roles["api:ci"] == "rater", "else its token would open nothing"
    code, said = run("add", "me", "--admin")
    assert (code, "train and roll back" in said, "gb_" in said) == (0, True, True)
    code, said = run("list", "--json")
    listed = [(one["name"], one["admin"]) for one in json.loads(said)["clients"]]
    assert listed == [("ci", False), ("me", True)]
    assert "gb_" not in said
    assert run("remove", "ci")[0] == 0
    assert known.who(token) is None
    main(["--home", str(home), "people", "--json"])
    assert "api:ci" not in capsys.readouterr().out
    code, said = run("remove", "ci")
    assert (code, "no program is called 'ci'" in said) == (2, True)
    code, said = run("add", "a b")
    assert (code, "cannot name a client" in said) == (2, True)


def test_a_program_is_its_owner_s_own_unless_it_is_said_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, terminal = tmp_path / "home", f"terminal:{os.geteuid()}"

    def add(*words: str) -> str:
        assert main(["--home", str(home), "api", "token", "add", *words]) == 0
        return capsys.readouterr().out

    connected(home)
    said = add("editor")
    assert "api:editor and you are one person: one vote, one inbox" in said
    assert "goodbot people unlink api:editor" in said
    assert "share" in said
    assert '"args": "on"' not in said, "it need not agree for itself"
    said = add("bot", "--separate")
    assert "api:bot may talk and rate now. What you rate in private goes on teaching me" in said
    assert '{"name": "share", "args": "on"}' in said
    assert "one person" not in said
    assert "one vote" in add("boss", "--admin")
    assert '{"name": "share", "args": "on"}' in add("stranger", "--admin", "--separate")
    assert linked(home) == {terminal, "api:me", "api:editor", "api:boss"}
    add("editor", "--separate")
    assert linked(home) == {terminal, "api:me", "api:boss"}, "the same name, by somebody else"
    main(["--home", str(home), "people", "--json"])
    found = json.loads(capsys.readouterr().out)["people"]
    assert {one["person"]: one["role"] for one in found} == {
        terminal: "owner",
        "api:me": "owner",
        "api:boss": "owner",
        "api:stranger": "owner",
        "api:bot": "rater",
        "api:editor": "rater",
    }


def linked(home: Path) -> set[str]:
    with contextlib.closing(sqlite3.connect(home / "goodbot.db")) as db:
        return {person for (person,) in db.execute("SELECT person FROM links")}


def test_without_the_connector_no_token_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--home", str(tmp_path), "api", "token", "add", "ci"]) == 2
    assert "`goodbot connect api` first" in capsys.readouterr().err
    assert clients.listed(tmp_path, "api") == []
