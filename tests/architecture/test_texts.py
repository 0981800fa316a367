# SPDX-License-Identifier: Apache-2.0
"""What people who talk and rate are told stands in the catalogue (`goodbot.api.texts`), and nowhere else.

What is elsewhere today is counted by module. The list only gets shorter: what is new fails, and what is
gone is to be taken off. The keys of the catalogue and the code agree: none is missing, none is left over.
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator

import pytest
from goodbot.api.commands import TABLE
from goodbot.api.texts import BY, catalogue
from goodbot_connectors.web.wording import PREFIX

from tests.architecture.source import Module, modules

ROOMS = (
    *("goodbot.access", "goodbot.conversation", "goodbot.commands.rating", "goodbot.commands.runner"),
    *("goodbot.commands.activity", "goodbot.commands.state", "goodbot.commands.status"),
    *("goodbot.commands.taught", "goodbot.commands.why", "goodbot.commands.confirm"),
    *("goodbot.commands.rollback_window", "goodbot.commands.training"),
    *("goodbot.commands.adapters", "goodbot.commands.lineage", "goodbot.commands.liked"),
    *("goodbot.commands.compare", "goodbot.commands.dry_run", "goodbot.commands.privacy"),
    *("goodbot.commands.notes", "goodbot.commands.links", "goodbot.commands.thought"),
    *("goodbot.commands.channels", "goodbot.commands.help", "goodbot.commands.people"),
    *("goodbot.commands.queues", "goodbot.commands.report", "goodbot.commands.report_page"),
    *("goodbot.commands.settings_page", "goodbot.commands.places", "goodbot.features.reports"),
    *("goodbot.commands.settings_open", "goodbot.commands.settings_usable"),
    "goodbot.commands.exporting_version",
    *("goodbot.commands.waiting", "goodbot.commands.probe", "goodbot.commands.web"),
    *("goodbot.commands.versions", "goodbot.commands.rated", "goodbot.commands.people_page"),
    "goodbot.features.reward_model",
    *(f"goodbot.learning.evaluation.{name}" for name in ("blind", "report", "side_by_side", "weekly")),
    *("goodbot.api.actions", "goodbot.api.events", "goodbot.api.reply_stream", "goodbot.api.sentences"),
    *("goodbot.inference.prompts", "goodbot.inference.servers.wordless", "goodbot.daemon.alerts"),
    *(f"goodbot_connectors.{name}" for name in ("discord", "slack", "teams", "telegram", "terminal", "web")),
    *("goodbot.cli", "goodbot.api.progress", "goodbot.api.commands", "goodbot_connectors.kit.dates"),
    *(f"goodbot_connectors.{name}.setup" for name in ("api", "claude_code", "codex", "openclaw")),
    *(f"goodbot_connectors.claude_code.{name}" for name in ("connector", "examining", "target")),
    *(f"goodbot_connectors.codex.{name}" for name in ("connector", "replies", "session", "words")),
    *("goodbot_connectors.openclaw.connector", "goodbot_connectors.kit.bridge.local"),
    *(f"goodbot_training.tiny.{name}" for name in ("show", "demo", "plugin")),
)
"""Where what talkers and raters are told is said, and what whoever types commands reads."""
OWNERS = re.compile(
    r"_connectors\.\w+\.(?:manifest|cli|config|words|client|api|tokens|keys|auth|access"
    r"|sender|members|gateway|transport|polling|webhook|connector|daemon|live|guard|outbox|sessions|commands)$"
    r"|\.(?:judging|login|linking|inbox|note_rules|note_trial)$"
    r"|_connectors\.terminal$|conversation\.imports\.\w+$"
)
"""Modules of these rooms that speak to owners, to their log, to programs or to the model: a later piece."""
TERMINAL = {
    *(f"goodbot_connectors.terminal.{name}" for name in ("client", "daemon", "live", "words")),
    *("goodbot_connectors.claude_code.connector", "goodbot_connectors.codex.connector"),
    *("goodbot_connectors.codex.words", "goodbot_connectors.openclaw.connector"),
}
"""Modules that are called like such, and speak to whoever chats."""
ELSEWHERE: dict[str, int] = {
    # module: how many sentences
    "goodbot.access.requests": 2,  # commands
    "goodbot.api.actions": 5,  # to the model
    "goodbot.api.commands.chat": 1,  # how it is typed
    "goodbot.api.commands.learning": 1,  # of a command that is shown nowhere
    "goodbot.api.commands.people": 1,  # how it is typed
    "goodbot.cli.plugin.command": 5,  # files that it writes, for whoever goes on with them
    "goodbot.cli.service.systemd": 1,  # its file
    "goodbot.cli.setup.template": 11,  # comments of the config file, which whoever sets it up may share
    "goodbot.cli.doctor.model": 1,  # a program
    "goodbot.cli.doctor.model_server": 2,  # to the model, and what is made of nothing
    "goodbot.commands.activity": 1,  # to programs
    "goodbot.commands.adapters": 1,  # the names of its actions
    "goodbot.commands.settings_open": 3,  # names of settings
    "goodbot.commands.probe": 2,  # to the model
    "goodbot.commands.rollback_window": 1,  # a command
    "goodbot.commands.runner": 1,  # a name in the log
    "goodbot.conversation.completions": 2,  # to programs
    "goodbot.conversation.ingest": 1,  # to connectors
    "goodbot.conversation.notifications.owners": 1,  # to the log
    "goodbot.conversation.presence": 1,  # a task's name
    "goodbot.features.reports.kinds": 7,  # frequent words of languages, and what programs are told
    "goodbot.inference.servers.wordless": 2,  # to the log
    "goodbot_connectors.api.setup": 1,  # a command
    "goodbot_connectors.claude_code.examining": 1,  # a command
    "goodbot_connectors.codex.connector": 2,  # to whoever calls in place of a hook
    "goodbot_connectors.codex.setup": 1,  # a command
    "goodbot_connectors.discord.setup": 2,  # what Discord's pages are called
    "goodbot_connectors.kit.bridge.local": 1,  # to connectors
    "goodbot_connectors.openclaw.connector": 3,  # to programs
    "goodbot_connectors.openclaw.setup": 2,  # commands
    "goodbot_connectors.slack.presses": 1,  # to the log
    "goodbot_connectors.slack.setup": 4,  # what Slack's pages say, and the name of a part
    "goodbot_connectors.teams.setup": 4,  # what Microsoft's pages say
    "goodbot_connectors.teams.stream": 1,  # to the log
    "goodbot_connectors.telegram.setup": 1,  # what BotFather says
    "goodbot_connectors.web.normalize": 1,  # to programs: no page of ours sends such a thing
    "goodbot_connectors.web.stream": 1,  # to the log
}
PROSE = re.compile(r"[A-Za-z’']{2,}[,:]? [A-Za-z’']+[,:]? [A-Za-z’']{2,}")
COPIED = re.compile(r"goodbot ([a-z]+)(?: [a-z]*){0,2}(?: [A-Z]+)?")
"""A command that is copied as it is: no language has another. A sentence has more words."""
LOGS = {"debug", "info", "warning", "error", "exception"}


def prose(module: Module) -> Iterator[str]:
    """Texts of three words and more, but for docstrings, lines of the log and copied commands."""
    quiet: set[int] = set()
    for node in ast.walk(module.tree):
        match node:
            case ast.Expr(value=ast.Constant() as text):
                quiet.add(id(text))
            case ast.Call(func=ast.Attribute(attr=name), args=args) if name in LOGS:
                quiet |= {id(one) for arg in args for one in ast.walk(arg)}
            case ast.Call(func=ast.Name(id="AssertionError"), args=args):
                quiet |= {id(one) for one in args}
            case _:
                pass
    kept = {text for text in catalogue("en").values() if isinstance(text, str)}  # `reworded`, `rephrased`
    for node in ast.walk(module.tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in quiet and PROSE.search(text):
                if text not in kept and not _copied(text):
                    yield text
            case _:
                pass


def _copied(text: str) -> bool:
    command = COPIED.fullmatch(text)
    return command is not None and command[1] in {one.name for one in TABLE}


def of_the_slice(module: Module) -> bool:
    inside = any(module.name == room or module.name.startswith(f"{room}.") for room in ROOMS)
    return inside and (module.name in TERMINAL or not OWNERS.search(module.name))


def test_what_people_are_told_is_in_the_catalogue() -> None:
    found = {module.name: len([*prose(module)]) for module in modules() if of_the_slice(module)}
    found = {name: count for name, count in found.items() if count}
    more = {name: count for name, count in found.items() if count > ELSEWHERE.get(name, 0)}
    assert more == {}, "a sentence for people stands in goodbot/api/texts, with a key"
    assert found == ELSEWHERE, "some is gone: take it off the list"


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ('reply("You may not do that here.")', 1),
        ('f"It has {n} ratings of yours by now"', 1),
        ('logger.info("nothing was told to anybody")', 0),
        ('"""Says what it does in a docstring."""', 0),
        ('find("two words")', 0),
        ('fix = "goodbot model use auto"', 0),
        ('fix = "goodbot restore BACKUP"', 0),
        ('say("goodbot runs here")', 1),
    ],
)
def test_a_sentence_is_seen(line: str, count: int) -> None:
    assert len([*prose(Module(name="made", path="made.py", text=line, tree=ast.parse(line)))]) == count


# -- keys


def asked_for(module: Module) -> Iterator[tuple[str, ast.Call]]:
    """The first word of each `say`, `phrase`, `because` or `wrong`, as far as it is written there."""
    ours = any(name == "goodbot.api.texts.say" for name, _ in module.imported())
    for name, call in module.calls():
        args = call.args[1:] if name == "wrong" else call.args
        said = name in ("because", "wrong") or name.rpartition(".")[2] == "phrase"
        if args and (said or (ours and name == "say")):
            yield from ((key, call) for key in _keys(args[0]))


def _keys(of: ast.expr) -> Iterator[str]:
    match of:
        case ast.Constant(value=str(key)):
            yield key
        case ast.JoinedStr(values=[ast.Constant(value=str(begin)), *_]):
            yield f"{begin}…"
        case ast.IfExp():
            yield from (*_keys(of.body), *_keys(of.orelse))
        case _:
            return


MADE = {
    "soon": ("soon_auto", "soon_manual", "soon_at", "takes_seconds", "takes_minutes"),
    "trial_figures": ("rated_good", "trial_before"),
}
"""Codes that are made of several texts."""
ARGPARSE = {"help_positional", "help_itself", "help_version"}
"""Texts of argparse, which the help of a command is made of."""
BY_SQL = {"unused", "from_others", "set_aside", "filtered", "other_model", "used"}
"""Codes that a query of the store answers with."""
DERIVED = {"until": {"more"}}
"""Values that are computed of those that are kept."""


def test_every_key_that_is_asked_for_is_there() -> None:
    there = {*catalogue("en"), *MADE}
    for module in modules():
        for key, _ in asked_for(module):
            begins = any(one.startswith(key[:-1]) for one in there)
            assert begins if key.endswith("…") else key in there, (module.path, key)


def test_no_key_is_left_over() -> None:
    words: set[str] = set()
    for module in modules():
        for node in ast.walk(module.tree):
            match node:
                case ast.Constant(value=str(text)):
                    words |= {text, " ".join(text.split())}  # what stands below a setting, on one line
                case ast.JoinedStr(values=[ast.Constant(value=str(begin)), *_]):
                    words.add(f"{begin}…")
                case _:
                    pass
    known = {*words, *BY_SQL, *ARGPARSE, *(key for code in words & MADE.keys() for key in MADE[code])}
    known |= {
        key for key, text in catalogue("en").items() if isinstance(text, str) and text in words
    }  # `reworded`
    known |= {key for key in catalogue("en") if key.startswith(PREFIX)}  # of pages: test_pages.py looks
    assert [key for key in catalogue("en") if key not in known and not _begun(key, words)] == []


def test_what_the_store_keeps_by_code_is_nowhere_compared_by_its_words() -> None:
    """An error may have the same words, for its own reason."""
    texts = catalogue("en").items()
    kept = {text for key, text in texts if key.startswith("kept_") and isinstance(text, str)}
    ours = {
        "goodbot.api.marks",  # what a model does
        "goodbot.inference.servers.sampler_process",  # an error
        "goodbot.store.commit_queue",  # an error
    }
    found = {
        module.name
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in kept
    }
    assert found == ours


def _begun(key: str, words: set[str]) -> bool:
    """Whether a key is made of a beginning (`hint_`) or an end (`_short`) that the code has."""
    begun = any(f"{key[: end + 1]}…" in words for end, sign in enumerate(key) if sign == "_")
    return begun or (key.endswith("_short") and key[:-6] in words)


def test_every_value_that_a_text_has_is_given_with_it() -> None:
    for module in modules():
        for key, call in asked_for(module):
            text = catalogue("en").get(key)
            if text is None or any(one.arg is None for one in call.keywords):
                continue
            lines = [text] if isinstance(text, str) else [line for name, line in text.items() if name != BY]
            wanted = {name for line in lines for _, name, _, _ in string.Formatter().parse(line) if name}
            wanted |= set() if isinstance(text, str) else {text[BY]}
            given = {one.arg for one in call.keywords}
            assert wanted - DERIVED.get(key, set()) <= given, (module.path, key)


if __name__ == "__main__":
    for module in modules():
        if of_the_slice(module):
            for text in prose(module):
                print(module.name, repr(text[:90]))
