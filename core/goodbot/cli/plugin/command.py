# SPDX-License-Identifier: Apache-2.0
"""`goodbot plugin new NAME`: a package whose tests pass as it stands, for whoever writes a plugin."""

from __future__ import annotations

import argparse
import keyword
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from textwrap import indent

from goodbot.api.texts.terminal import phrase
from goodbot.base.errors import UsageError
from goodbot.base.printing import say, say_json

KINDS: Mapping[str, tuple[str, str]] = {
    # kind: what the package is, and what the config says to use it
    "connector": (
        "A place where people talk to goodbot.",
        '[connectors.EXAMPLE]\nfolder = "EXAMPLE"\nowners = ["ann"]',
    ),
    "server": (
        "A model server that answers.",
        '[serving]\nserver = "EXAMPLE"\nurl = "http://127.0.0.1:8000"',
    ),
    "reward": ("A rule for what a rating is worth.", '[training]\nreward = "EXAMPLE"'),
    "objective": ("A way to learn from ratings.", '[training.settings]\nobjective = "EXAMPLE"'),
    "tracker": ("A place for the numbers of each training.", "[tracking.EXAMPLE]"),
}
_FILES = {
    # file of the package: template
    "pyproject.toml": "common/pyproject.toml.txt",
    "README.md": "common/README.md.txt",
    "goodbot_EXAMPLE.py": "KIND/plugin.py.txt",
    "test_goodbot_EXAMPLE.py": "KIND/test.py.txt",
}
_MORE = {"server": {"goodbot_EXAMPLE_driver.py": "KIND/driver.py.txt"}}
"""A driver imports an HTTP library: goodbot imports it only where it is chosen."""
_LONGEST = 40


def main(arguments: argparse.Namespace) -> int:
    """Write the package; nothing that is there already is touched."""
    name = str(arguments.name)
    directory = Path(arguments.out or f"goodbot-{name}")
    package = render(str(arguments.kind), name)
    if directory.exists() and any(directory.iterdir() if directory.is_dir() else (directory,)):
        raise UsageError(phrase("plugin_there", path=directory))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for file, text in package.items():
            (directory / file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(phrase("plugin_unwritten", path=directory, why=error.strerror)) from error
    if arguments.json:
        say_json({"directory": str(directory), "files": sorted(package)})
    else:
        say(phrase("plugin_made", path=directory))
    return 0


def render(kind: str, name: str) -> dict[str, str]:
    """The files of a package by name. Raises UsageError for a name that is no plugin's."""
    if not (name.isidentifier() and name.isascii() and name.islower()) or keyword.iskeyword(name):
        raise UsageError(phrase("plugin_name", name=repr(name[:_LONGEST])))
    if len(name) > _LONGEST:
        raise UsageError(phrase("plugin_long", most=_LONGEST))
    summary, config = KINDS[kind]
    more = _MORE.get(kind, {})
    modules = ", ".join(f'"{file}"' for file in ("goodbot_EXAMPLE.py", *more))
    words = {
        "SUMMARY": summary,
        "CONFIG": indent(config, "    "),
        "MODULES": modules,  # before the name, which stands in it
        "EXAMPLE": name,
    }
    return {
        _filled(file, words): _filled(template(path.replace("KIND", kind)), words)
        for file, path in {**_FILES, **more}.items()
    }


def template(path: str) -> str:
    """The text of one of the templates."""
    return (files("goodbot.cli.plugin") / "templates" / path).read_text(encoding="utf-8")


def _filled(text: str, words: Mapping[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text
