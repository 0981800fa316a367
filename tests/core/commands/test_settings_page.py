# SPDX-License-Identifier: Apache-2.0
"""The settings for a page: what is told, what can be changed, what the file is like then, and who may."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import AsyncGenerator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import goodbot_connectors.slack
import goodbot_connectors.terminal
import goodbot_connectors.web
import pytest
from goodbot import config
from goodbot.api.events import UserRef
from goodbot.api.plugins import PluginHost
from goodbot.api.settings_page import Setting, SettingsSeen, SettingWanted
from goodbot.api.texts import say
from goodbot.base.errors import ConfigError, GoodbotError, StoreError, UsageError
from goodbot.commands import settings_open
from goodbot.config import HttpConfig
from goodbot.config.described import described
from goodbot.config.file import ConfigFile
from goodbot.daemon.control import execute
from goodbot.features.filters import plugin as filters
from goodbot.features.judges import plugin as judges
from goodbot.features.reports import plugin as reports
from goodbot.features.webhooks import plugin as webhooks
from goodbot.store import Store, settings

from tests.core.builders import Bot, open_bot, rows, until

PLUGGED = (goodbot_connectors.slack, goodbot_connectors.terminal, filters, judges, reports)
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
WRITTEN = """\
# Our bot.
[serving]
language = "de"  # for the team
history = 4

[training]
min_ratings = 40
held_out = 8

[connectors.slack]
owners = ["U1"]
"""


def user(id_: str) -> UserRef:
    return UserRef(connector="loopback", account="loopback", id=id_)


@contextlib.asynccontextmanager
async def configured(home: Path, text: str = WRITTEN, extra: tuple[object, ...] = ()) -> AsyncGenerator[Bot]:
    """A bot whose file says the same as it was started with, as far as the tests go."""
    (home / "bot").mkdir(parents=True)
    (home / "bot/config.toml").write_text(text, "utf-8")
    async with open_bot(home, extra=extra) as bot:
        yield bot


async def seen(bot: Bot, by: str = "owner") -> SettingsSeen:
    return await bot.chat.host.settings(user(by))


async def one(bot: Bot, key: str) -> Setting:
    return next(each for each in (await seen(bot)).settings if each.key == key)


async def change(bot: Bot, key: str, value: Any, before: Any = ..., by: str = "owner", code: str = "") -> str:
    before = (await one(bot, key)).value if before is ... else before
    wanted = SettingWanted(key=key, value=value, before=before, code=code)
    return await bot.chat.host.change_setting(user(by), wanted)


def written(bot: Bot) -> str:
    return (bot.app.config.home / "config.toml").read_text("utf-8")


async def trail(bot: Bot) -> list[tuple[str, dict[str, Any]]]:
    entries, _ = await bot.store.read(settings.audit)
    return [(entry.actor, json.loads(entry.detail)) for entry in entries if entry.action == "settings"]


async def test_every_place_is_told_with_the_command_that_connects_it(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    (tmp_path / "a b").mkdir()
    sections = {"http": HttpConfig(port=unused_tcp_port), "connectors": {"web": {}}}
    extra = (goodbot_connectors.slack, goodbot_connectors.web)
    async with open_bot(tmp_path / "a b", extra=extra, sections=sections, terminal=True) as bot:

        async def works() -> bool:
            return (await seen(bot)).places[0].works

        await until(works)
        web, slack = (await seen(bot)).places
        assert (web.title, web.connected, slack.title, slack.connected, slack.works) == (
            "The browser",
            True,
            "Slack",
            False,
            False,
        )
        home = shlex.quote(str(tmp_path / "a b/bot"))
        assert slack.command == f"goodbot --home {home} connect slack --browser"
        with pytest.raises(UsageError):
            await seen(bot, "rater")


async def test_every_setting_is_told_with_words_its_value_and_its_default(tmp_path: Path) -> None:
    async with configured(tmp_path) as bot:
        found = await seen(bot)
        told = [each for each in found.settings if not each.key.startswith("training.settings.")]
        assert not [each.key for each in told if not each.told], "those are the fake backend's"
        language = await one(bot, "serving.language")
        assert (language.value, language.default, language.kind, language.written) == (
            "de",
            "en",
            "choice",
            True,
        )
        assert language.choices == ("en", "de", "es", "fr", "ja", "pt", "zh")
        assert (await one(bot, "training.max_load")).written is False
        assert (await one(bot, "connectors.slack.owners")).value == ["U1"]
        assert found.trouble == ""
        assert found.file == str(tmp_path / "bot/config.toml")
        assert {each.key for each in found.settings} >= settings_open.OPEN - {
            "training.settings.preset",
            "training.settings.objective",
        }


def test_every_key_of_every_plugin_of_ours_has_words() -> None:
    host = PluginHost()
    host.load_entry_points()
    assert not [one for one in host.infos() if one.state == "failed"]
    kinds: dict[str, Mapping[str, Any]] = {
        "connectors": host.connectors(),
        "features": host.features(),
        "tracking": host.trackers(),
        "filters": host.filters(),
        "reports": {name: spec for name, spec in host.reports().items() if spec.settings},
        "judge": host.judges(),
        "serving": host.servers(),
        "training": host.backends(),
    }
    found = [
        one
        for kind, specs in kinds.items()
        for name, spec in specs.items()
        for one in described(f"{kind}.{name}", spec.settings)
    ]
    keys = {"connectors.telegram.webhook_port", "judge.model.votes", "filters.words.block"}
    assert {*keys, "reports.flags.insults"} <= {one.key for one in found}
    assert not [one.key for one in found if not one.told]


async def test_what_is_not_switched_on_is_told_too_as_not_set(tmp_path: Path) -> None:
    text = '[judge]\nby = "model"\n[judge.settings]\nvotes = 5\n'
    async with configured(tmp_path, text, PLUGGED) as bot:
        found = {each.key: each for each in (await seen(bot)).settings}
        for key, default in (
            ("connectors.slack.port", 3000),
            ("connectors.slack.owners", []),
            ("filters.words.block", []),
            ("reports.flags.insults", []),
        ):
            each = found[key]
            assert (each.value, each.now, each.default, each.written) == (None, None, default, False)
            assert each.why_not
            assert each.told
        votes, seconds = found["judge.settings.votes"], found["judge.settings.seconds"]
        assert (votes.value, votes.now, votes.default, votes.written) == (5, 3, 3, True)
        assert (seconds.value, seconds.written) == (60.0, False)
        assert not [key for key in found if key.startswith("connectors.terminal.")]
    async with configured(tmp_path / "on", WRITTEN, PLUGGED) as bot:
        found = {each.key: each for each in (await seen(bot)).settings}
        assert (found["connectors.slack.port"].value, found["connectors.slack.port"].now) == (3000, None)
        assert not [key for key in found if key.startswith("judge.settings")], "no judge is named"


async def test_one_is_changed_and_comments_and_order_stay_and_a_line_is_left(tmp_path: Path) -> None:
    async with configured(tmp_path) as bot:
        assert (
            await change(bot, "serving.language", "fr") == "Saved. It counts from the next start of goodbot."
        )
        assert written(bot) == WRITTEN.replace('"de"', '"fr"')
        language = await one(bot, "serving.language")
        assert (language.value, language.now) == ("fr", bot.app.config.serving.language)
        await change(bot, "serving.history", None)
        assert written(bot) == WRITTEN.replace('"de"', '"fr"').replace("history = 4\n", "")
        await change(bot, "serving.system_prompt", "Be brief.\nBe kind.")
        assert config.load(bot.app.config.home).serving.system_prompt == "Be brief.\nBe kind."
        assert await trail(bot) == [
            ("loopback:owner", {"args": "", "channel": "private", "done": True, **detail})
            for detail in (
                {"setting": "serving.language", "from": "de", "to": "fr"},
                {"setting": "serving.history", "from": 4, "to": "default"},
                {"setting": "serving.system_prompt"},
            )
        ]


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("training.held_out", 50, "held_out must lie between 1 and min_ratings - 1"),
        ("training.min_ratings", "many", "must be a whole number"),
        ("training.schedule", "25:00", "schedule"),
        ("training.max_load", float("nan"), "no number"),
        ("training.max_load", 1 << 60, "too large"),
        ("serving.language", "xx", "one of"),
        ("training.reward", "none", "one of"),
        ("serving.system_prompt", "x" * 30_000, "too long"),
        ("training.anchors", ["x" * 5000], "1 to 4,000 characters"),
        ("serving.nothing", 1, "no such setting"),
        ("", 1, "no such setting"),
    ],
)
async def test_what_the_next_start_would_not_take_is_not_written(
    tmp_path: Path, key: str, value: Any, says: str
) -> None:
    async with configured(tmp_path) as bot:
        known = {each.key: each.value for each in (await seen(bot)).settings}
        with pytest.raises(GoodbotError, match=says) as error:
            await change(bot, key, value, known.get(key))
        assert str(tmp_path) not in str(error.value)
        assert written(bot) == WRITTEN
        assert [detail["refused"] for _, detail in await trail(bot)] == ["kept_not_done"]


@pytest.mark.parametrize(
    ("anchors", "says"),
    [
        ('["a",  # why\n "b#c"]', "Comments stand within this list"),
        ('["a\\nb", "c"]', "several lines"),
        ('["a#b", "c"]', ""),
    ],
)
async def test_a_list_that_the_page_cannot_write_as_it_was_is_left(
    tmp_path: Path, anchors: str, says: str
) -> None:
    text = f"[training]\nanchors = {anchors}\n"
    async with configured(tmp_path, text) as bot:
        if says:
            with pytest.raises(UsageError, match=says):
                await change(bot, "training.anchors", ["x"])
            assert written(bot) == text
        else:
            await change(bot, "training.anchors", ["x"])
            assert 'anchors = ["x"]' in written(bot)


async def test_who_reads_another_language_is_told_in_it(tmp_path: Path, unused_tcp_port: int) -> None:
    sections: dict[str, Any] = {"http": HttpConfig(port=unused_tcp_port), "connectors": {"web": {}}}
    (tmp_path / "bot").mkdir()
    (tmp_path / "bot/config.toml").write_text("[serving]\nhistory = 4\n", "utf-8")
    async with open_bot(tmp_path, extra=(goodbot_connectors.web,), sections=sections, terminal=True) as bot:
        reader = replace(user("owner"), language="fr")
        found = await bot.chat.host.settings(reader)
        [host] = [each for each in found.settings if each.key == "http.host"]
        assert host.why_not == say("set_closed", "fr")
        assert [place.title for place in found.places] == ["Le navigateur"]
        stars = SettingWanted(key="serving.stars", value=True, before=False)
        assert await bot.chat.host.change_setting(reader, stars) == say("set_saved", "fr")
        for key, value, why in (
            ("serving.language", "xx", "serving.language doit être l’un de"),
            ("serving.nothing", 1, say("set_unknown", "fr")),
            ("serving.system_prompt", "x" * 30_000, say("too_long", "fr", most=20_000)),
        ):
            before = next((each.value for each in found.settings if each.key == key), None)
            wanted = SettingWanted(key=key, value=value, before=before)
            with pytest.raises(UsageError) as error:
                await bot.chat.host.change_setting(reader, wanted)
            assert str(error.value).startswith(why)
        with pytest.raises(UsageError) as error:
            await bot.chat.host.settings(replace(user("rater"), language="ja"))
        assert str(error.value) == say("see_settings", "ja")


async def test_what_gives_power_is_shown_and_not_changed(tmp_path: Path) -> None:
    async with configured(tmp_path) as bot:
        closed = {each.key: each for each in (await seen(bot)).settings if each.why_not}
        assert set(closed) >= {
            *("connectors.slack.owners", "connectors.slack.channels", "http.host", "http.port", "http.names"),
            *("serving.url", "serving.hosts", "serving.server", "judge.url", "judge.by", "plugins.enable"),
            *("training.anchors_file", "model.path", "adapters.path_on_server", "training.backend"),
        }
        for key, each in closed.items():
            for value in (["loopback:rater"], "0.0.0.0", 1, None):
                with pytest.raises(UsageError):
                    await change(bot, key, value, each.value)
        assert written(bot) == WRITTEN


@contextlib.asynccontextmanager
async def at_the_machine(home: Path, port: int, text: str, *extra: object) -> AsyncGenerator[Bot]:
    """A bot with the browser, at whose machine somebody sits."""
    (home / "bot").mkdir()
    (home / "bot/config.toml").write_text(text, "utf-8")
    sections: dict[str, Any] = {"http": HttpConfig(port=port), "connectors": {"web": {}}}
    async with open_bot(
        home, extra=(goodbot_connectors.web, *extra), sections=sections, terminal=True
    ) as bot:
        yield bot


async def allowed(bot: Bot, key: str) -> str:
    """The code that `goodbot web --allow KEY` prints."""
    return str((await execute(bot.app, "web", ("allow", key))).data["code"])


async def test_a_code_from_the_machine_opens_one_setting_once(tmp_path: Path, unused_tcp_port: int) -> None:
    async with at_the_machine(tmp_path, unused_tcp_port, WRITTEN) as bot:
        home = str(tmp_path / "bot")
        port = await one(bot, "http.port")
        assert port.typed == shlex.join(["goodbot", "--home", home, "web", "--allow", "http.port"])
        code, link = await allowed(bot, "http.port"), await execute(bot.app, "web", ())
        for wrong in ("", "x" * 22, str(link.data["url"]).partition("#")[2]):
            with pytest.raises(UsageError, match=r"No such code holds for http\.port"):
                await change(bot, "http.port", 8400, code=wrong)
        with pytest.raises(UsageError, match=r"No such code holds for http\.host"):
            await change(bot, "http.host", "0.0.0.0", code=code)
        with pytest.raises(UsageError, match="Only owners"):
            await change(bot, "http.port", 8400, port.value, "rater", code)
        assert written(bot) == WRITTEN
        with pytest.raises(ConfigError, match="between 0"):
            await change(bot, "http.port", 70_000, code=code)
        await change(bot, "http.port", 8400, code=code)  # what was refused has not used it up
        assert written(bot) == f"{WRITTEN}\n[http]\nport = 8400\n"
        _, detail = (await trail(bot))[-1]
        assert (detail["setting"], detail["from"], detail["to"]) == ("http.port", 0, 8400)
        with pytest.raises(UsageError, match="No such code"):
            await change(bot, "http.port", 8500, code=code)
        said = await bot.command("web", "allow http.port")
        assert "nothing else" in said, "no chat makes one"
        await execute(bot.app, "web", ("allow", "http.port"))
        kept = await rows(bot.store, "SELECT purpose, subject FROM codes WHERE purpose = 'setting'")
        assert kept == [("setting", "http.port")]
        await execute(bot.app, "web", ("sign-out",))
        assert await rows(bot.store, "SELECT purpose FROM codes") == [], "who signs all out ends these, too"


async def test_what_may_be_secret_is_changed_unseen_and_the_trail_does_not_have_it(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    text = f'[connectors.slack]\npath = "/{TOKEN}"\n'
    async with at_the_machine(tmp_path, unused_tcp_port, text, goodbot_connectors.slack) as bot:
        key = "connectors.slack.path"
        for value in (f"/{TOKEN[:-1]}9", "/hook"):
            await change(bot, key, value, None, code=await allowed(bot, key))
        assert written(bot) == '[connectors.slack]\npath = "/hook"\n'
        assert TOKEN[:-1] not in json.dumps(await trail(bot))
        assert [detail.get("to") for _, detail in await trail(bot)] == [None, None]


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("connectors.slack.port", "many", "whole number"),
        ("filters.words.block", [""], ""),
        ("serving.server", "nothing", "there are:"),
        ("serving.url", "http://10.0.0.1:1", "has no address"),
        ("judge.by", "nobody", "there are:"),
        ("training.backend", "nothing", "there are:"),
        ("training.anchors_file", "no/such/file", "no/such/file"),
    ],
)
async def test_what_a_plugin_would_not_take_is_not_written_with_a_code_either(
    tmp_path: Path, unused_tcp_port: int, key: str, value: Any, says: str
) -> None:
    text = f"{WRITTEN}\n[connectors.web]\n"
    async with at_the_machine(tmp_path, unused_tcp_port, text, *PLUGGED[:1], *PLUGGED[2:]) as bot:
        if not says:
            await change(bot, key, value, code=await allowed(bot, key))
            assert "[filters.words]" in written(bot)
            return
        with pytest.raises(GoodbotError, match=says):
            await change(bot, key, value, code=await allowed(bot, key))
        assert written(bot) == text


async def test_what_a_command_changes_names_it_and_takes_no_code(tmp_path: Path) -> None:
    async with configured(tmp_path, extra=PLUGGED) as bot:
        found = {each.key: each for each in (await seen(bot)).settings}
        for key, command in (("model.path", "model use"), ("encryption.enabled", "encrypt")):
            assert f"`goodbot {command}" in found[key].why_not
            assert found[key].typed == ""
        for each in found.values():
            assert not each.why_not or each.typed or "`goodbot " in each.why_not, each.key


async def test_a_hand_in_the_file_meanwhile_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with configured(tmp_path) as bot:
        file = bot.app.config.home / "config.toml"
        file.write_text(WRITTEN.replace('"de"', '"es"'), "utf-8")
        with pytest.raises(UsageError, match="meanwhile"):
            await change(bot, "serving.language", "fr", "de")
        await change(bot, "serving.history", 6, 4)  # another one than the hand has changed
        assert written(bot) == WRITTEN.replace('"de"', '"es"').replace("history = 4", "history = 6")
        text = ConfigFile.text

        def typed(self: ConfigFile) -> str:
            file.write_text(WRITTEN, "utf-8")  # between the look and the writing
            return text(self)

        monkeypatch.setattr(ConfigFile, "text", typed)
        with pytest.raises(ConfigError, match="meanwhile"):
            await change(bot, "serving.stars", True, False)
        assert written(bot) == WRITTEN
        assert not list(bot.app.config.home.glob("config.toml.*"))


async def test_a_file_that_is_broken_by_hand_is_told_and_left(tmp_path: Path) -> None:
    async with configured(tmp_path) as bot:
        (bot.app.config.home / "config.toml").write_text("[serving]\nlanguage = 5\n", "utf-8")
        found = await seen(bot)
        assert "language must be" in found.trouble
        with pytest.raises(ConfigError):
            await change(bot, "serving.stars", True, False)
        assert written(bot) == "[serving]\nlanguage = 5\n"


async def test_no_secret_is_told(tmp_path: Path) -> None:
    text = (
        f'[serving]\nurl = "http://me:hunter2@gpu.lan"\nsystem_prompt = "Say {TOKEN}."\n'
        f'[connectors.slack]\npath = "/{TOKEN}"\n'
    )
    async with configured(tmp_path, text) as bot:
        found = json.dumps(asdict(await seen(bot)))
        for kept in (TOKEN, "hunter2"):
            assert kept not in found
        prompt = await one(bot, "serving.system_prompt")
        assert (prompt.secret, prompt.value, bool(prompt.why_not)) == (True, None, True)
        with pytest.raises(UsageError):
            await change(bot, "serving.system_prompt", "x", None)


async def test_sections_of_free_names_are_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address may hold a key in its path."""
    monkeypatch.setenv(webhooks.KEY, "0123456789abcdef")
    sections = {"features": {"webhooks": {"to": {"crm": {"url": "https://crm.example.org/T0P"}}}}}
    async with open_bot(tmp_path, extra=(webhooks,), sections=sections) as bot:
        found = await seen(bot)
        assert "crm.example" not in json.dumps(asdict(found))
        assert not [each.key for each in found.settings if each.kind == "section"]


async def test_without_a_line_in_the_trail_nothing_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with configured(tmp_path) as bot:

        async def full(*_: Any) -> None:
            raise StoreError("the disk is full")

        monkeypatch.setattr(Store, "write", full)
        with pytest.raises(StoreError):
            await change(bot, "serving.stars", True, False)
        assert written(bot) == WRITTEN


async def test_nobody_but_an_owner_sees_or_changes_any(tmp_path: Path) -> None:
    async with configured(tmp_path) as bot:
        for by in ("rater", "talker", "stranger"):
            with pytest.raises(UsageError):
                await seen(bot, by)
            for _ in range(2):
                with pytest.raises(UsageError):
                    await change(bot, "serving.stars", True, False, by)
        assert written(bot) == WRITTEN
        assert [detail["refused"] for _, detail in await trail(bot)] == ["kept_not_allowed"] * 3


async def test_an_owner_lets_it_begin_anew_where_the_file_is_sound_and_nobody_else(tmp_path: Path) -> None:
    async with configured(tmp_path) as bot:
        for by in ("rater", "talker"):
            with pytest.raises(UsageError, match="Only owners"):
                await bot.chat.host.begin_anew(user(by))
        for wrong in ("[serving]\nhistory = 'many'\n", "[reports.nothing]\n"):
            (tmp_path / "bot/config.toml").write_text(wrong, "utf-8")
            with pytest.raises(UsageError, match="would not start with the file as it is now"):
                await bot.chat.host.begin_anew(user("owner"))
        assert not bot.app.restart.is_set()
        (tmp_path / "bot/config.toml").write_text(WRITTEN, "utf-8")
        assert (await bot.chat.host.begin_anew(user("owner"))).startswith("goodbot starts again now.")
        assert not bot.app.restart.is_set(), "whoever asked is told first"
        await until(bot.app.restart.is_set)
        assert (await seen(bot)).started_at == bot.app.started_at
        found = await rows(bot.store, "SELECT detail FROM audit WHERE detail LIKE '%restart%' ORDER BY seq")
        said = [json.loads(detail) for (detail,) in found]
        refused = [*["kept_not_allowed"] * 2, *["kept_not_done"] * 2, ""]
        assert [one.get("refused", "") for one in said] == refused
