# SPDX-License-Identifier: Apache-2.0
"""The real Claude Code and Codex behind the proxy, each with a login of its own for the upstream."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.agents import programs
from tests.connectors.api.proxy.ground import proxied
from tests.connectors.api.proxy.upstream import TEXT, Got, Upstream, upstream
from tests.support import patience

pytestmark = pytest.mark.agents

QUESTION = "What do good dogs do?"


async def runs(command: list[str], env: dict[str, str], cwd: Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *command,
        env=env,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await asyncio.wait_for(process.communicate(), patience(110))
    assert process.returncode == 0, out.decode()
    return out.decode()


async def test_claude_code_keeps_its_own_login(tmp_path: Path) -> None:
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir(), home.mkdir()
    async with (
        upstream() as fake,
        proxied(tmp_path, upstream=fake.url, upstream_dialect="both", pass_credentials=True) as ground,
    ):
        fake.toolless = True
        env = {
            "HOME": str(home),
            "PATH": programs.path(),
            "ANTHROPIC_BASE_URL": ground.url,
            "ANTHROPIC_API_KEY": "sk-ant-theirs",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "ANTHROPIC_CUSTOM_HEADERS": f"X-Goodbot-Token: {ground.token}",
        }
        assert TEXT in await runs([str(programs.claude()), "-p", QUESTION], env, work)
        asked = _asked(fake, "/v1/messages")
        assert {got.headers["x-api-key"] for got in asked} == {"sk-ant-theirs"}
        assert ground.token not in str([got.headers for got in fake.got])
        [turn] = [event for event in await ground.captured() if event.kind == "main"]
        assert turn.trace.startswith("claude:")
        assert [one for one in turn.messages if one["role"] == "user" and QUESTION in one["content"]]
        assert turn.messages[0]["tools"]
        assert turn.response == TEXT
        session = asked[-1].headers["X-Claude-Code-Session-Id"]
        assert turn.channel.thread == session


async def test_codex_sends_our_token_from_its_own_variable(tmp_path: Path) -> None:
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir(), home.mkdir()
    async with (
        upstream() as fake,
        proxied(tmp_path, upstream=fake.url, upstream_dialect="both", pass_credentials=True) as ground,
    ):
        fake.toolless = True
        (home / "config.toml").write_text(
            'model = "fake-1"\nmodel_provider = "goodbot"\n\n'
            f'[model_providers.goodbot]\nname = "goodbot"\nbase_url = "{ground.url}/v1"\n'
            'wire_api = "responses"\nenv_key = "THEIR_KEY"\n'
            'env_http_headers = { "X-Goodbot-Token" = "GOODBOT_TOKEN" }\n'
            f'\n[projects."{work}"]\ntrust_level = "trusted"\n'
        )
        env = {
            "HOME": str(home),
            "CODEX_HOME": str(home),
            "PATH": programs.path(),
            "THEIR_KEY": "sk-theirs",
            "GOODBOT_TOKEN": ground.token,
            "LANG": "C.UTF-8",
        }
        command = [*programs.codex(), "exec", "--skip-git-repo-check", QUESTION]
        assert TEXT in await runs(command, env, work)
        asked = _asked(fake, "/v1/responses")
        assert {got.headers["Authorization"] for got in asked} == {"Bearer sk-theirs"}
        assert ground.token not in str([got.headers for got in fake.got])
        [turn] = [event for event in await ground.captured() if event.kind == "main"]
        assert turn.trace.startswith("codex:")
        assert QUESTION in str(turn.messages[-1]["content"])
        assert turn.response == TEXT


def _asked(fake: Upstream, path: str) -> list[Got]:
    found = [got for got in fake.got if got.path.partition("?")[0] == path]
    assert found, [got.path for got in fake.got]
    return found
