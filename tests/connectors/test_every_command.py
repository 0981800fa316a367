# SPDX-License-Identifier: Apache-2.0
"""The table of commands against every place where commands are typed, offered or explained.

Each place has what the table declares for it, with its texts and arguments, and nothing else.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import goodbot_connectors
import pytest
import shtab
from goodbot.api.commands import GROUPS, OLD, TABLE, Arg, Command, Grant, find, of, rates
from goodbot.api.texts import LANGUAGES, say
from goodbot.base.columns import wide
from goodbot.cli import parser
from goodbot.commands.base import Call
from goodbot.config import ServingConfig
from goodbot_connectors.api import table as api
from goodbot_connectors.codex import shim
from goodbot_connectors.slack.config import SlackSettings
from goodbot_connectors.slack.manifest import manifest as slack
from goodbot_connectors.teams.config import TeamsSettings
from goodbot_connectors.teams.manifest import manifest as teams
from goodbot_connectors.telegram.menus import menus as telegram

from tests.core.builders import open_bot
from tests.support import require


def offered(kind: str, *, owners: bool) -> dict[str, str]:
    """What a menu of that kind shall show, by name."""
    return {
        command.name: command.label
        for command in TABLE
        if kind in command.menus and (owners or command.grant < Grant.ADMINISTER)
    }


def test_a_command_is_where_something_does_it() -> None:
    assert len({command.name for command in TABLE}) == len(TABLE)
    for command in TABLE:
        assert command.run or "chat" not in command.where, command.name
        assert not command.run or "chat" in command.where or command.program != "client:main", command.name
        assert command.where, command.name
        assert {"chat"} >= {"chat" for where in command.where if where == "api"}
        if command.menus or "api" in command.where:
            assert "chat" in command.where, command.name
        assert command.summary, command.name


@pytest.mark.parametrize("command", of("chat"), ids=lambda command: command.name)
def test_what_it_does_in_a_chat_is_there(command: Command) -> None:
    module, _, name = command.run.partition(":")
    function = getattr(importlib.import_module(f"goodbot.commands.{module}"), name)
    assert inspect.iscoroutinefunction(function)
    [parameter] = inspect.signature(function, eval_str=True).parameters.values()
    assert parameter.annotation is Call


def test_nothing_else_is_a_word_in_a_chat() -> None:
    words: list[str] = []
    for command in (*TABLE, *OLD):
        assert (find(command.name) is command) == ("chat" in command.where), command.name
        assert all(find(alias) is command for alias in command.aliases)
        words += [command.name, *command.aliases] if "chat" in command.where else []
    assert len(set(words)) == len(words), "one word means one thing"


async def test_help_in_a_chat_explains_each(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        told = await bot.command("help", "all")
        by_group = [await bot.command("help", group) for group in GROUPS]
    lines = [line for line in told.splitlines() if line.startswith("/rl ")]
    assert lines == [
        f"/rl {command.name} {command.usage}".strip() + f" – {command.summary}" for command in of("chat")
    ]
    assert told == "\n\n".join(by_group)
    assert all(
        part.startswith(f"{heading}\n") for part, heading in zip(by_group, GROUPS.values(), strict=True)
    )
    for command in of("chat"):
        for argument in command.words("chat"):
            assert argument.usage in command.usage


PHONE = 12
"""Lines that a phone shows of one message without scrolling, about."""
SMALLEST = 2000
"""Characters of a message on the platform that takes the fewest: Discord."""


@pytest.mark.parametrize("language", LANGUAGES)
async def test_the_first_help_fits_a_phone_in_every_language(tmp_path: Path, language: str) -> None:
    async with open_bot(tmp_path, sections={"serving": ServingConfig(language=language)}) as bot:
        for role in ("owner", "rater", "talker"):
            told = await bot.command("help", user=role)
            assert told.startswith(say("help_talk" if role == "talker" else "help_rate", language))
            for said in (told, await bot.command("help", user=role, channel="#room")):
                lines = said.splitlines()
                assert len(lines) <= PHONE, role
                assert [line for line in lines if line.startswith("/rl ") and wide(line) > 64] == [], role
            more = [await bot.command("help", group, user=role) for group in GROUPS]
            assert all(len(said) <= SMALLEST for said in more), role


@pytest.mark.parametrize("role", ["owner", "rater", "talker"])
async def test_the_first_help_fits_a_phone(tmp_path: Path, role: str) -> None:
    async with open_bot(tmp_path) as bot:
        told = await bot.command("help", user=role)
        shared = await bot.command("help", user=role, channel="#room")
        more = [await bot.command("help", group, user=role) for group in GROUPS]
    for said in (told, shared):
        lines = said.splitlines()
        assert len(lines) <= PHONE
        assert all(len(line) <= 64 for line in lines if line.startswith("/rl "))
    assert ("/rl good – " in told) == (role != "talker")
    assert ("/rl rollback – " in told) == (role == "owner")
    assert "/rl rollback" not in shared, "what only an owner may type is not for a shared channel"
    assert all(len(said) <= SMALLEST for said in more)
    assert ("`/rl help all`" in told) == (role != "talker"), "who may type little is shown all of it"


async def test_help_for_something_else_says_what_there_is(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        assert "did you mean 'watch'" in await bot.command("help", "wach")


@pytest.mark.parametrize("command", [one for one in OLD if one.instead], ids=lambda one: one.name)
def test_an_old_word_is_shown_nowhere_and_stands_for_one_that_is(command: Command) -> None:
    name, *words = command.instead.split()
    new = find(name)
    assert new is not None
    assert new in TABLE
    assert set(new.where) == set(command.where)
    assert new.grant is command.grant
    assert words[0] in " ".join([*new.arguments[0].choices, new.arguments[0].metavar]).split()
    assert not command.menus


async def test_an_old_word_does_what_it_did_and_says_the_new_one(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for old, new in (("off", "pause all"), ("cancel", "train stop"), ("release", "train retry")):
            said = await bot.command(old)
            name, words = new.split()
            assert said == f"{await bot.command(name, words)}\n`{old}` is called `{new}` now."
        asked = await bot.command("reset")
        assert "`/rl rollback all yes`" in asked
        assert asked.endswith("`reset` is called `rollback all` now.")
        assert "left out" in await bot.command("rollback", "all yes"), "it is the same question"


def shown(found: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """The words and options of one parser, as one types them."""
    actions = [one for one in found._actions if not isinstance(one, argparse._SubParsersAction)]
    return {(one.option_strings or [one.dest])[-1]: one for one in actions}


def check(found: argparse.ArgumentParser, command: Command) -> None:
    assert found.description == command.summary
    module, _, function = found.get_default("run").partition(":")
    assert callable(getattr(importlib.import_module(module), function))
    there = shown(found)
    declared = {argument.name: argument for argument in command.arguments if "terminal" in argument.where}
    assert set(there) == {"--help", *declared, *(["--json"] if command.json else [])}
    for name, argument in declared.items():
        check_argument(there[name], argument)


def check_argument(action: argparse.Action, argument: Arg) -> None:
    assert action.help == (argument.help or (argparse.SUPPRESS if argument.is_option else None))
    assert action.metavar == (argument.metavar or None)
    assert tuple(action.choices or ()) == argument.choices
    assert (action.type is Path) == argument.path
    if argument.is_option:
        assert action.required == argument.required
    else:
        assert action.nargs in ({"+", None} if argument.required else {"*", "?"})
        assert (action.nargs in ("*", "+")) == argument.many


def subparsers(found: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    [actions] = [one for one in found._actions if isinstance(one, argparse._SubParsersAction)] or [None]
    return dict(actions.choices) if actions else {}


def test_the_program_has_each_with_its_words() -> None:
    whole, commands = parser._parser()
    terminal = of("terminal")
    hidden = [command.name for command in OLD if "terminal" in command.where]
    assert list(commands.choices) == [command.name for command in terminal] + hidden
    told = {one.dest: one.help for one in commands._choices_actions}
    assert told == {command.name: command.summary for command in terminal}
    for command in terminal:
        check(commands.choices[command.name], command)
        actions = subparsers(commands.choices[command.name])
        assert list(actions) == [action.name for action in command.actions]
        for action in command.actions:
            check(actions[action.name], action)
    assert not {name for name in hidden if name in told}
    completion = shtab.complete(whole, "bash")
    for command in terminal:
        [known] = re.findall(rf"_shtab_goodbot_{command.name}_option_strings=\((.*)\)", completion)
        seen = {one.name for one in command.words("terminal") if one.is_option and one.help}
        assert set(known.split()) - {"-h", "--help", "--json"} == seen


def test_one_command_is_read_as_with_all_of_them() -> None:
    """The program builds only the one that is asked for."""
    for command in of("terminal"):
        _, alone = parser._parser(command.name)
        assert list(alone.choices) == [command.name]
        check(alone.choices[command.name], command)


def test_discord_offers_what_a_long_menu_has_room_for() -> None:
    require("discord")
    from goodbot_connectors.discord import commands

    [slash, *_] = commands.commands()
    there = {one["name"]: one for one in slash["options"]}
    assert {name: one["description"] for name, one in there.items() if name != "do"} == offered(
        "long", owners=True
    )
    for name, one in there.items():
        options = {option["name"]: option for option in one["options"]}
        command = find(name)
        if command is None:
            assert (name, list(options)) == ("do", ["words"])
            continue
        declared = {argument.name.lstrip("-"): argument for argument in command.words("chat")}
        assert set(options) == set(declared)
        for option, argument in declared.items():
            assert options[option]["description"] == argument.label
            assert options[option]["required"] == argument.required
            assert options[option].get("max_value", 0) == argument.largest
            assert tuple(each["value"] for each in options[option].get("choices", ())) == argument.choices
        required = [option["required"] for option in one["options"]]
        assert required == sorted(required, reverse=True), "Discord wants those first"


def test_telegram_offers_the_short_menus() -> None:
    english = {menu.scope: dict(menu.commands) for menu in telegram() if not menu.language}
    private, shared = (
        {f"rl_{name}": text for name, text in offered(kind, owners=False).items()}
        for kind in ("private", "shared")
    )
    owners = {f"rl_{name}": text for name, text in offered("shared", owners=True).items()}
    assert english == {
        "default": shared,
        "all_group_chats": shared,
        "all_private_chats": private,
        "all_chat_administrators": private | owners,
    }


def test_teams_suggests_the_short_menus() -> None:
    [bot] = teams(TeamsSettings())["bots"]
    for listed in bot["commandLists"]:
        kind = "private" if listed["scopes"] == ["personal"] else "shared"
        found: list[dict[str, Any]] = listed["commands"]
        told = {one["title"]: one["description"] for one in found}
        assert told == {f"/rl {name}": text for name, text in offered(kind, owners=True).items()}


def test_slack_hints_at_the_short_menu() -> None:
    [command] = slack(SlackSettings())["features"]["slash_commands"]
    assert command["usage_hint"].split(" | ") == list(offered("private", owners=False))


def test_programs_may_pass_on_what_the_table_lets_them() -> None:
    passed_on = [command for command in (*TABLE, *OLD) if "api" in command.where]
    everybody = {command.name for command in passed_on if command.grant < 3}
    owners = {command.name for command in passed_on} - everybody
    assert (set(api.EVERYBODY), set(api.ADMIN)) == (everybody, owners)
    # Who may come in, what is said of an answer, and what leaves the machine are not for programs.
    closed = {"pair", "people", "channels", "enable", "disable", "link", "unlink", "web", "forget", "export"}
    assert not closed & (everybody | owners)


def test_what_codex_takes_without_a_slash_is_a_command_without_a_word_that_is_missing() -> None:
    for word in shim.WORDS:
        command = find(word)
        assert command is not None
        assert command.name == word
        assert not [argument for argument in command.words("chat") if argument.required]


def test_what_is_typed_in_other_programs_is_in_the_table() -> None:
    """Claude Code's files and OpenClaw's patterns are no Python, and name commands all the same."""
    plugins = Path(goodbot_connectors.__file__).parent
    files = sorted((plugins / "claude_code" / "plugin" / "commands").glob("*.md"))
    assert files
    assert {file.stem for file in files} <= {one.name for one in of("chat")}
    source = (plugins / "openclaw" / "plugin" / "src" / "ratings.ts").read_text()
    patterns = re.findall(r"const (?:THUMBS|STARS|SAYS) = /\^\((.+)\)\$/u?;", source)
    assert len(patterns) == 3
    for pattern in patterns:
        for word in pattern.replace("\\", "").split("|"):
            long = word.removesuffix("?")
            assert rates(long), word
            assert long == word or rates(long[:-1]), word
