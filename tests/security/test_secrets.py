# SPDX-License-Identifier: Apache-2.0
"""Keys and tokens that people paste are masked before anything of them is stored."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import CaptureEvent, OrderKey, RatingEvent, RatingKind
from goodbot.base.errors import GoodbotError
from goodbot.base.redact import redact
from goodbot.cli.backup.make import make
from goodbot.config.secrets import SecretStore
from goodbot.daemon import control
from goodbot.store import turns
from goodbot_connectors.claude_code.sessions import Session as ClaudeSession
from goodbot_connectors.claude_code.sessions import SessionAnswer
from goodbot_connectors.codex.session import Session as CodexSession

from tests.core.builders import CHANNEL, OWNER, Bot, open_bot
from tests.support import within

_WORD = "C4naryPq7" * 12
_HEX = "c4a7e" * 16
_BIG = "C4NARY" * 12
SECRETS = {
    "OpenAI": f"sk-{_WORD[:48]}",
    "OpenAI, a project's": f"sk-proj-{_WORD[:70]}-x_{_WORD[:70]}",
    "OpenAI, a service's": f"sk-svcacct-{_WORD[:90]}",
    "Anthropic": f"sk-ant-api03-{_WORD[:80]}_x-AA",
    "OpenRouter": f"sk-or-v1-{_HEX[:64]}",
    "Hugging Face": f"hf_{_WORD[:34]}",
    "Groq": f"gsk_{_WORD[:52]}",
    "xAI": f"xai-{_WORD[:80]}",
    "Perplexity": f"pplx-{_WORD[:48]}",
    "Cerebras": f"csk-{_WORD[:48]}",
    "Replicate": f"r8_{_WORD[:37]}",
    "NVIDIA": f"nvapi-{_WORD[:50]}_x-{_WORD[:9]}",
    "Tavily": f"tvly-{_WORD[:32]}",
    "ElevenLabs": f"sk_{_HEX[:48]}",
    "LangSmith": f"lsv2_pt_{_HEX[:32]}_{_HEX[:10]}",
    "Pinecone": f"pcsk_{_WORD[:9]}_{_WORD[:60]}",
    "Together": f"tgp_v1_{_WORD[:43]}",
    "goodbot": f"gb_{_WORD[:43]}",
    "GitHub, a person's": f"ghp_{_WORD[:36]}",
    "GitHub, OAuth": f"gho_{_WORD[:36]}",
    "GitHub, an app's user": f"ghu_{_WORD[:36]}",
    "GitHub, an app's": f"ghs_{_WORD[:36]}",
    "GitHub, to renew": f"ghr_{_WORD[:76]}",
    "GitHub, fine": f"github_pat_11{_WORD[:20]}_{_WORD[:59]}",
    "GitLab": f"glpat-{_WORD[:20]}",
    "GitLab, a runner's": f"glrt-{_WORD[:20]}",
    "npm": f"npm_{_WORD[:36]}",
    "PyPI": f"pypi-AgEIcHlwaS5vcmc{_WORD}",
    "Docker": f"dckr_pat_{_WORD[:27]}-{_WORD[:20]}",
    "RubyGems": f"rubygems_{_HEX[:48]}",
    "DigitalOcean": f"dop_v1_{_HEX[:64]}",
    "Atlassian": f"ATATT3{_WORD}=",
    "Bitbucket": f"ATBB{_WORD[:32]}",
    "Sentry": f"sntrys_{_WORD[:60]}",
    "Postman": f"PMAK-{_WORD[:24]}{_WORD[:34]}",
    "Figma": f"figd_{_WORD[:43]}",
    "Grafana": f"glsa_{_WORD[:32]}_{_HEX[:8]}",
    "Tailscale": f"tskey-auth-{_WORD[:40]}",
    "Supabase": f"sbp_{_HEX[:40]}",
    "Slack, a bot's": f"xoxb-123456789012-{_WORD[:24]}",
    "Slack, a person's": f"xoxp-123456789012-{_WORD[:24]}",
    "Slack, an app's": f"xapp-1-A1-{_WORD[:60]}",
    "Slack, to renew": f"xoxe-1-{_WORD[:60]}",
    "Slack, a browser's": f"xoxd-{_WORD[:60]}",
    "Telegram": f"1234567890:AA{_WORD[:33]}",
    "Discord": f"MTIzNDU2Nzg5MDEyMzQ1Njc4.G{_WORD[:5]}.{_WORD[:38]}",
    "AWS": f"AKIA{_BIG[:16]}",
    "AWS, for a while": f"ASIA{_BIG[:16]}",
    "Google": f"AIza{_WORD[:35]}",
    "Google, OAuth": f"ya29.{_WORD}",
    "Google, a client's": f"GOCSPX-{_WORD[:28]}",
    "Azure": f"AccountKey={_WORD[:86]}==",
    "Databricks": f"dapi{_HEX[:32]}",
    "Vault": f"hvs.{_WORD[:90]}",
    "Doppler": f"dp.pt.{_WORD[:43]}",
    "Typeform": f"tfp_{_WORD[:44]}",
    "Stripe": f"sk_live_{_WORD[:24]}",
    "Stripe, a test's": f"sk_test_{_WORD[:24]}",
    "Stripe, restricted": f"rk_live_{_WORD[:24]}",
    "a webhook's": f"whsec_{_WORD[:32]}",
    "Square": f"sq0atp-{_WORD[:22]}",
    "Shopify": f"shpat_{_HEX[:32]}",
    "SendGrid": f"SG.{_WORD[:22]}.{_WORD[:43]}",
    "Mailgun": f"key-{_HEX[:32]}",
    "Linear": f"lin_api_{_WORD[:40]}",
    "Notion": f"ntn_{_WORD[:46]}",
    "Notion, older": f"secret_{_WORD[:43]}",
    "age": f"AGE-SECRET-KEY-1{_BIG[:58]}",
    "a JSON web token": f"eyJ{_WORD[:20]}.eyJ{_WORD[:40]}.{_WORD[:43]}",
    "one that is encrypted": f"eyJ{_WORD[:20]}..{_WORD[:16]}.{_WORD[:30]}.{_WORD[:22]}",
    "a key file": f"-----BEGIN RSA PRIVATE KEY-----\n{_WORD}\n{_WORD}\n-----END RSA PRIVATE KEY-----",
}
WITHIN = {
    "postgres://me:hunter2@db:5432/x": "postgres://***@db:5432/x",
    "redis://:hunter2@cache": "redis://***@cache",
    "mysql://me:12345@db": "mysql://***@db",
    "postgres://me:p@ss@db": "postgres://***@db",
    f"Authorization: Bearer {_WORD[:40]}==": "Authorization: Bearer ***",
    "Authorization: Basic bWU6aHVudGVyMjE=": "Authorization: Basic ***",
    f"https://hooks.slack.com/services/T0/B0/{_WORD[:24]}": "https://hooks.slack.com/***",
    f"https://discord.com/api/webhooks/{'12' * 9}/{_WORD[:68]}": "https://discord.com/api/webhooks/***",
    f"AWS_SECRET_ACCESS_KEY={_WORD[:40]}": "AWS_SECRET_ACCESS_KEY=***",
    f'"secretAccessKey": "{_WORD[:40]}"': '"secretAccessKey": "***"',
}
HARMLESS = (
    "The key-value store holds task-force data; sk-learn is a library.",
    "d41d8cd98f00b204e9800998ecf8427e and 550e8400-e29b-41d4-a716-446655440000",
    "cache-key-d41d8cd98f00b204e9800998ecf8427e",
    "https://example.org/a/very/long/path?with=a&long=query#and-a-fragment-of-some-length",
    "mailto:somebody.with.a.long.name@example.org at 12345678:30",
    "git@github.com:owner/repository and ssh://git@github.com:22/owner/repository",
    '{"url":"http://localhost:8080","to":"me@example.org"}',
    '{"proxy":"http://localhost:3001","dependencies":{"@mui/material":"^5"}}',
    "http://h:8000\\n@app.route and http://host:80/a@b and https://host:8080?email=a@b.com",
    "[docs](http://localhost:8080),@alice; http://localhost:8080，然后@小明",
    "NotificationManagerService.notify.userNotificationCenterDelegate",
    "gb_population_by_local_authority_2021_v2 and sk-or-something-that-is-a-long-css-class-name",
    "sk-ant-colony-optimisation-for-beginners, hvs.something_long_variable_name_here",
    "SG.someModuleNameWhichIs.anotherLongIdentifierNameForTests",
    "this-is-a-rather-long-name-with-many-parts.and.dots_in_it.or.more",
    "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
    "Bearer token_authentication/authorization; Basic authenticationRequired",
    "MODULE.SECRET.CONSTANT = secret_handshake_of_the_masons; Bearer of good tidings",
    "Wörter, die länger als zwanzig Zeichen sind: Donaudampfschifffahrtsgesellschaft",
)


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_it_is_masked_and_the_words_around_it_stay(secret: str) -> None:
    assert redact(f"Look: {secret}, is it right?") == "Look: ***, is it right?"
    assert redact(f'export KEY="{secret}"') == 'export KEY="***"'
    assert redact(f"{secret}\n{secret}") == "***\n***"
    assert redact(f"A=1\\n{secret}\\n") == "A=1\\n***\\n", "as a tool call has it, in JSON"
    assert redact(f"\x1b[32m{secret}\x1b[0m") == "\x1b[32m***\x1b[0m"


@pytest.mark.parametrize("text", WITHIN)
def test_what_says_whose_it_is_stays(text: str) -> None:
    assert redact(text) == WITHIN[text]


def test_a_key_file_without_an_end_goes_on_to_the_end() -> None:
    text = f"Mine:\n-----BEGIN OPENSSH PRIVATE KEY-----\n{_WORD}\n{_WORD[:7]}"
    assert redact(text) == "Mine:\n***"


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "part",
    [
        "sk-",
        "sk-proj-",
        "-eyJ",
        "eyJaaaaaaaaaaa.",
        "://a:b",
        "-----BEGIN ",
        "MNOM",
        "1",
        "a.",
        "-----BEGIN PRIVATE KEY-----",
        "SG.aaaaaaaaaaaaaaaaaaaa.",
        "Bearer ",
        "xoxb-",
        "key-",
        "AKIA",
        "A ",
        "-ghp_",
        "\\nghp_",
        "://:@",
        "@a",
        "MTIz",
        "secretaccesskey=",
        "SECRET_ACCESS_KEY  ",
        "eyJaaaaaaaaaaa..",
    ],
)
def test_no_text_takes_long(part: str) -> None:
    text = (part * 1_000_000)[:1_000_000] + "!"
    with within(3.0):  # quadratic would be minutes
        redact(text)


async def test_nothing_of_it_reaches_the_disk(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """By every kind of event that carries words: the database, its log, a backup and what is logged."""
    caplog.set_level(logging.INFO)
    async with open_bot(tmp_path) as bot:
        for number, secret in enumerate(SECRETS.values()):
            answer = await bot.say(f"Is {secret} a good key?")
            await bot.command("good", reply_to=answer.message.id)
            await bot.command("reason", f"it said {secret}", reply_to=answer.message.id)
            await _capture(bot, number, secret)
            assert "***" in answer.text, "the model has not seen it either"
    make(tmp_path / "bot", tmp_path / "backup.tar", {}, now=0.0)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"goodbot.db", "backup.tar"} <= {path.name for path in files}
    kept = [path.name for path in files for secret in SECRETS.values() if _in(path, secret)]
    assert kept == []
    assert not [name for name, secret in SECRETS.items() if secret in caplog.text]


def _in(path: Path, secret: str) -> bool:
    """Whether it, or the most telling part of it, lies in a file."""
    return max(secret.split("\n"), key=len).encode() in path.read_bytes()


async def _capture(bot: Bot, number: int, secret: str) -> None:
    """A capture with it in a tool's result, a tool call and the answer, and what is said of that."""
    call = {"name": "read", "arguments": f'{{"path": ".env", "key": "{secret}"}}'}
    common: dict[str, Any] = {"order": OrderKey(number), "user": OWNER, "channel": CHANNEL}
    taken = CaptureEvent(
        **common,
        event_id=f"capture-{number}",
        response=f"It is {secret}.",
        messages=(
            {"role": "user", "content": [{"type": "text", "text": f"Read {secret}"}]},
            {"role": "assistant", "content": None, "tool_calls": [{"function": call}]},
            {"role": "tool", "content": f"KEY={secret}"},
        ),
        prompt_tokens=(1, 2),
        tokens=(3,),
        logprobs=(-0.5,),
    )
    [receipt] = await bot.app.dispatcher.submit([taken], CHANNEL.connector)
    turn = await bot.store.read(lambda db: turns.get(db, receipt.turn))
    assert turn is not None
    assert turn.response == "It is ***."
    assert (turn.prompt_tokens, turn.tokens, turn.logprobs) == ((), (), ()), "they would spell it"
    for kind in (RatingKind.COMMENT, RatingKind.BETTER):
        said = RatingEvent(
            **common,
            event_id=f"{kind}-{number}",
            kind=kind,
            turn=receipt.turn,
            source="typed",
            text=f"Rather {secret}",
        )
        await bot.app.dispatcher.submit([said], CHANNEL.connector)


async def test_a_capture_without_any_keeps_its_tokens(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        taken = CaptureEvent(
            order=OrderKey(1),
            user=OWNER,
            channel=CHANNEL,
            event_id="capture",
            response="4",
            messages=({"role": "user", "content": "What is 2 + 2?"},),
            prompt_tokens=(1, 2),
            tokens=(3,),
            logprobs=(-0.5,),
        )
        [receipt] = await bot.app.dispatcher.submit([taken], CHANNEL.connector)
        turn = await bot.store.read(lambda db: turns.get(db, receipt.turn))
    assert turn is not None
    assert turn.tokens == (3,)


@pytest.mark.parametrize("command", ["reason", "better", "rollback", "nonsense"])
async def test_nothing_of_it_stays_of_the_command_line(tmp_path: Path, command: str) -> None:
    """It comes by the control socket; what was asked stands in the audit trail for ever."""
    secret = SECRETS["GitHub, a person's"]
    async with open_bot(tmp_path) as bot:
        await bot.say("A question")
        for name, args in ((command, ["it", "said", secret]), (secret, [])):
            with contextlib.suppress(GoodbotError):
                await control.execute(bot.app, name, args)
        await bot.command(secret)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in files if _in(path, secret)] == []


def test_nothing_of_it_stays_in_what_agents_wait_with() -> None:
    """Also where the cut goes through it: the rest of a key has no form that could be told."""
    secret = SECRETS["Google"]
    session = ClaudeSession(id="s", user="me")
    session.ask("one", f"It is {secret}", person=True)
    session.answered(
        "two",
        "x" * 1980 + " " + secret,
        SessionAnswer(turn="t", event_id="e", text="y" * 1980 + " " + secret),
    )
    assert "C4nary" not in repr(session)
    codex = CodexSession().begin("one", secret)
    codex = codex.end("one", f"It is {secret}", "turn").begin("two", "Go on")
    assert "C4nary" not in repr(codex)


def test_windows_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    """Notepad writes one."""
    file = tmp_path / "secrets.env"
    file.write_bytes(b"\xef\xbb\xbfGOODBOT_TELEGRAM_TOKEN=1:x\n")
    file.chmod(0o600)
    assert SecretStore(tmp_path)._read() == {"GOODBOT_TELEGRAM_TOKEN": "1:x"}
