# SPDX-License-Identifier: Apache-2.0
"""No text of the program has a word that only its builders know, or a turn that readers stumble over.

The catalogue is held to it by tests/core/test_texts.py; this looks at the texts that stand in the code, and
at the pages' own.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator

import pytest

from tests.architecture.plain import bent, house
from tests.architecture.source import ROOT, Module, modules

PROSE = re.compile(r"[A-Za-z’']{2,}[,:]? [A-Za-z’']+")
SQL = re.compile(r"\b(?:SELECT|FROM|UPDATE|INSERT|CREATE|WHERE|AND|ORDER BY)\b")
LOGS = ("debug", "info", "warning", "error", "exception", "log")
SPARED: dict[str, set[str]] = {
    # a module, and the words that are somebody else's there, or for programs
    "connectors/goodbot_connectors/api/handlers.py": {"side"},  # a field of the API
    "connectors/goodbot_connectors/slack/api.py": {"scope"},  # Slack's own word
    "connectors/goodbot_connectors/slack/setup.py": {"scopes"},  # the name of a part
    "core/goodbot/api/registry.py": {"policy"},  # a reward policy: to plugin authors
    "core/goodbot/commands/settings_open.py": {"scopes"},  # the name of a setting
    "core/goodbot/conversation/notifications/serving.py": {"canary"},  # a key
    "core/goodbot/daemon/maintenance.py": {"canary"},  # a task's name
    "core/goodbot/inference/servers/ollama_tags.py": {"digest"},  # Ollama's own word
    "training/goodbot_training/tiny/card.py": {"held-out", "held out"},  # a model card
    "training/goodbot_training/tiny/train.py": {"nats"},  # makes the shipped model: to builders
}


def texts(module: Module) -> Iterator[str]:
    """What it may show to somebody; docstrings and the log are for builders."""
    quiet: set[ast.AST] = set()
    for node in ast.walk(module.tree):
        match node:
            case ast.Expr(value=ast.Constant() as text):
                quiet.add(text)
            case ast.Call(func=ast.Attribute(attr=name)) if name in LOGS:
                quiet.update(ast.walk(node))
            case ast.JoinedStr(values=parts):
                quiet.update(part for part in parts if isinstance(part, ast.Constant))
            case _:
                pass
    for node in ast.walk(module.tree):
        match node:
            case _ if node in quiet:
                continue
            case ast.JoinedStr(values=parts):
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "0" for part in parts)
            case ast.Constant(value=str(text)):
                pass
            case _:
                continue
        if PROSE.search(text) and not SQL.search(text):
            yield text


def stumbles(module: Module) -> list[tuple[str, str]]:
    spared = SPARED.get(module.path, set())
    return [
        (module.path, f"{word}: {text[:120]}")
        for text in texts(module)
        for word in {*house(text), *bent(re.sub(r"\s+", " ", text))}
        if word.lower() not in spared
    ]


def ours() -> Iterator[Module]:
    return (one for one in modules() if one.package != "goodbot_fakes" and ".testing" not in one.name)


def test_no_text_has_a_word_of_the_house() -> None:
    assert [found for module in ours() for found in stumbles(module)] == []


def test_whoever_is_spared_needs_it() -> None:
    for module in ours():
        found = {word.lower() for text in texts(module) for word in house(text)}
        assert SPARED.get(module.path, set()) <= found, module.path
    assert SPARED.keys() <= {module.path for module in ours()}


def test_nor_has_a_page() -> None:
    pages = ROOT / "connectors/goodbot_connectors/web/pages"
    for page in [*pages.glob("*.js"), *pages.glob("*.html")]:
        text = re.sub(r"^\s*//.*$|<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        shown = [
            one for one in re.findall(r'"([^"\n]*)"|>([^<>{}\n]+)<', text) for one in one if PROSE.search(one)
        ]
        assert [(page.name, one) for one in shown if house(one) or bent(one)] == []


FOR_BUILDERS = {"docs/plugins.md", "CONTRIBUTING.md"}
"""Under “How to”, and for who writes code."""
THEIRS = {
    "docs/platforms.md": {"scope", "scopes"},  # Slack's own word
    "docs/proxy.md": {"side"},  # the value of a header
    "docs/serving.md": {"digest"},  # Ollama's own word
}
"""A page of the docs, and the words that are somebody else's there."""
_FENCE = re.compile(r"^( *)```.*?^ *```$", re.M | re.S)
_COMMENT = re.compile(r"(?:^|\s)#\s.*$", re.M)


def told() -> Iterator[str]:
    """The pages of the docs for people who use it: README, tutorials, how-tos, and questions of everybody."""
    site = tomllib.loads((ROOT / "docs/zensical.toml").read_text(encoding="utf-8"))["project"]
    for part in site["nav"]:
        for name, entry in part.items():
            pages = [entry] if isinstance(entry, str) else [page for one in entry for page in one.values()]
            if name in ("Home", "Tutorials", "How to"):
                yield from (page for page in pages if page not in FOR_BUILDERS)
    yield from (f"docs/{name}.md" for name in ("faq", "privacy", "costs"))


def paragraphs(text: str) -> list[str]:
    """What somebody reads: prose, tables, and the remarks in blocks of code; no address of a link."""
    prose = _FENCE.sub(lambda block: "\n\n".join(_COMMENT.findall(block.group())), text)
    prose = re.sub(r"\]\([^)]*\)|<!--.*?-->", "]", prose, flags=re.S)
    return [re.sub(r"\s+", " ", one).strip(" *|") for one in re.split(r"\n\s*\n|\n *[*|]|\n *\d+\. ", prose)]


@pytest.mark.parametrize("page", [*told()])
def test_nor_has_a_page_of_the_docs_for_people(page: str) -> None:
    read = paragraphs((ROOT / page).read_text(encoding="utf-8"))
    spared = THEIRS.get(page, set())
    found = {word.lower() for one in read for word in house(one)}
    assert spared <= found, "whoever is spared needs it"
    stumbled = [
        (word, one[:160]) for one in read for word in (*house(one), *bent(one)) if word.lower() not in spared
    ]
    assert stumbled == []


def test_a_block_of_code_is_read_as_far_as_it_speaks() -> None:
    page = "It *waits*\nfor you.\n\n```console\n$ gate # what the gate said\n```\n\n* a [gate](side.md)\n"
    assert paragraphs(page) == ["It *waits* for you.", "# what the gate said", "a [gate]"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('say(f"{n} held-out ratings are few")', True),
        ('say("A training has passed its gate.")', True),
        ('say("owners may everything, raters talk")', True),
        ('say("there is no line of yours here")', True),
        ('say("type `compare` to see both side by side")', False),
        ('say("type `gate` to go on")', False),
        ('logger.info("the gate is open")', False),
        ('db.execute("SELECT scope FROM runs WHERE gate")', False),
        ('"""A docstring of the gate."""', False),
    ],
)
def test_a_word_is_seen(line: str, found: bool) -> None:
    assert bool(stumbles(Module(name="made", path="made.py", text=line, tree=ast.parse(line)))) is found
