# SPDX-License-Identifier: Apache-2.0
"""Write docs/reference.md and docs/plugin-api.md of what the code has.

The first lists every command and every setting of a training, the second tells the plugin API by its
docstrings. `python docs/tools/reference.py`, in an environment that has goodbot.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import goodbot
from goodbot.api.commands import TABLE, Arg, Command, Grant, Where
from goodbot.api.commands.entry import GROUPS
from goodbot.config.described import docstrings
from goodbot_training.job.settings import TrainingSettings

PAGE = Path(__file__).parents[1] / "reference.md"
API_PAGE = PAGE.with_name("plugin-api.md")
PLACES: tuple[Where, ...] = ("chat", "terminal")
WHO = {
    Grant.NONE: "everybody",
    Grant.TALK: "whoever may talk",
    Grant.RATE: "raters",
    Grant.ADMINISTER: "owners",
}
HEAD = """\
# Reference

This page is made from the code, by `docs/tools/reference.py`. [Commands](commands.md) explains what needs it,
and [Settings](config.md) lists all other settings.

## Every command

In a chat type `/rl` before it, in a terminal `goodbot`. A word in `[ ]` can be left out. Options such as
`--yes` are for the terminal. *Who* counts in chats: whoever has the terminal is an owner.
"""
SETTINGS = """\
## Every setting of a training

They stand under `[training.settings]`. What is set there wins over the [preset](training.md#how-boldly).
A default of `None` means that goodbot chooses. The words are those of the [glossary](glossary.md).

| key | default | what |
|---|---|---|
"""

API_HEAD = """\
# The plugin API

Every class that a plugin uses, with its fields and methods. This page is made from the code, by
`docs/tools/reference.py`. [Writing a plugin](plugins.md) shows how they go together. [Hooks](hooks.md) has
every hook.

Most names are imported from `goodbot`: `from goodbot import Connector`. The others are imported from the
module that stands above them. A field without a default must be given.
"""
PARTS = {
    "connector": "A connector",
    "host": "What a connector may ask of goodbot",
    "reply_stream": "A streamed answer",
    "events": "Events, receipts and replies",
    "setup": "Setting a platform up, and looking at it",
    "testing.platform": "The far side that a connector's tests drive",
    "testing.pilot": "A whole goodbot in a test",
    "turns": "A turn",
    "rewards": "A reward policy",
    "server": "A model server",
    "backend": "A training backend",
    "step": "What one step of a training takes and reports",
    "sampler": "What a backend answers with",
    "objective": "An objective",
    "judge": "A judge",
    "content_filter": "A filter of what a training takes",
    "export": "A form of exported answers",
    "feature": "What runs beside the bot",
    "report": "A part of a report",
    "predicted": "What the reward model predicts",
    "tracker": "An experiment tracker",
    "model": "A model that a plugin ships",
}
"""The modules that the page tells of, with their room where that is not `goodbot.api`, and their headings."""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_commands(), SETTINGS + "\n".join(_settings()), ""])


def _commands() -> Iterator[str]:
    for group, heading in GROUPS.items():
        yield f"### {heading}\n\n| command | where | who | what |\n|---|---|---|---|"
        for command in TABLE:
            if command.group == group:
                yield _row(command.name, command, command.grant)
                for action in command.actions:
                    yield _row(f"{command.name} {action.name}", action, command.grant)
        yield ""


def _row(name: str, command: Command, grant: Grant) -> str:
    places: list[Where] = [one for one in PLACES if one in command.where]
    words = {place: " ".join(one.usage for one in _words(command, place)) for place in places}
    usages = dict.fromkeys(f"`{name} {said}`".replace(" `", "`") for said in words.values())
    options = [_option(one) for one in command.arguments if one.is_option and one.help]
    what = "; ".join([command.summary, *options])
    cells = (" or ".join(usages), ", ".join(places), WHO[grant], what)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _words(command: Command, place: Where) -> list[Arg]:
    return [one for one in command.words(place) if not one.is_option]


def _option(one: Arg) -> str:
    return f"`{f'{one.name} {one.metavar}'.strip()}`: {one.help}"


def _settings() -> Iterator[str]:
    told = docstrings(TrainingSettings)
    for field in dataclasses.fields(TrainingSettings):
        default = "true" if field.default is True else str(field.default)
        yield f"| `{field.name}` | `{default}` | {told[field.name]} |"


def api_page() -> str:
    """The page of the plugin API."""
    return "\n".join([API_HEAD, *_parts()])


def _parts() -> Iterator[str]:
    for name, about in PARTS.items():
        module = importlib.import_module(f"goodbot.{name}" if "." in name else f"goodbot.api.{name}")
        yield f"## {about}\n\n`{module.__name__}`\n"
        for one in vars(module).values():
            if (
                inspect.isclass(one)
                and one.__module__ == module.__name__
                and not one.__name__.startswith("_")
            ):
                yield from _class(one)
    yield "## Errors\n\n| name | what |\n|---|---|"
    for name in goodbot.__all__:
        one = getattr(goodbot, name)
        if inspect.isclass(one) and issubclass(one, goodbot.GoodbotError):
            yield f"| `{name}` | {_cell(inspect.getdoc(one) or '')} |"
    yield ""


def _class(one: type[Any]) -> Iterator[str]:
    """Its docstring, its fields as a table, and its methods."""
    yield f"### `{one.__name__}`\n\n{_markdown(inspect.getdoc(one) or '')}\n"
    yield from (
        f"It has the fields of `{base.__name__}`, too.\n"
        for base in one.__bases__
        if base.__doc__ and dataclasses.is_dataclass(base)
    )
    told = docstrings(one)
    if issubclass(one, enum.Enum):
        yield "| value | what |\n|---|---|"
        yield from (f"| `{each.name}` | {told.get(str(each.name), '')} |" for each in one)
        yield ""
    elif rows := list(_fields(one, told)):
        yield from ("| field | type | default | what |\n|---|---|---|---|", *rows, "")
    for name, member in vars(one).items():
        function = getattr(member, "fget", None) or getattr(member, "__func__", member)
        if not inspect.isfunction(function) or name.startswith("_") or not function.__doc__:
            continue
        if isinstance(member, property):
            yield f"**`{name}`**: `{function.__annotations__['return']}`\n"
        else:
            begin = "async " if inspect.iscoroutinefunction(function) else ""
            signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(function)))
            signature = re.sub(r"\((?:self|cls)(?:, )?", "(", signature, count=1)
            yield f"**`{begin}{name}{signature}`**\n"
        yield f"{_markdown(inspect.getdoc(function) or '')}\n"


def _fields(one: type[Any], told: Mapping[str, str]) -> Iterator[str]:
    defaults = dict(getattr(one, "_field_defaults", vars(one)))
    for each in dataclasses.fields(one) if dataclasses.is_dataclass(one) else ():
        made: Any = each.default_factory
        defaults[each.name] = each.default if made is dataclasses.MISSING else made()
    for name, kind in inspect.get_annotations(one).items():
        kind = str(getattr(kind, "__forward_arg__", kind)).replace("'", "")
        default = _default(defaults.get(name, dataclasses.MISSING))
        cells = (f"`{name}`", f"`{kind}`", default, told.get(name, ""))
        yield f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _default(value: object) -> str:
    if value is dataclasses.MISSING:
        return ""
    if isinstance(value, enum.Enum):
        return f"`{type(value).__name__}.{value.name}`"
    return f"`{value!r}`"


def _markdown(docstring: str) -> str:
    """A docstring's paragraphs, with its sections as lists."""
    text = re.sub(r"^(Args|Returns|Yields|Raises):\n", r"*\1*\n\n", docstring, flags=re.M)
    text = re.sub(r"^    (\w+): ", r"* `\1`: ", text, flags=re.M)
    return re.sub(r"\n {4,}", " ", re.sub(r"\n\n    ", "\n\n", text))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", chr(92) + "|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    API_PAGE.write_text(api_page(), encoding="utf-8")
