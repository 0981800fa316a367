# SPDX-License-Identifier: Apache-2.0
"""Every page that says how to do something shows something, and the figures say what is so today."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.architecture.source import ROOT
from tests.examples.support import require_backend, tool
from tests.support import require

FIGURES = tool("figures")
PICTURES = ROOT / "docs/pictures"
GUIDES = sorted(
    page
    for part in tomllib.loads((ROOT / "docs/zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    for name in ("Tutorials", "How to")
    for entry in part.get(name, ())
    for page in entry.values()
)
TIMES = re.compile(r"\d+(?:[-:.]\d+)*")


def shown(page: str) -> list[tuple[str, str]]:
    """`(text instead of it, file)` of a page's pictures."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"!\[([^\]]*)\]\((?:docs/)?pictures/([^)]+)\)", text)


def words(figure: str) -> list[str]:
    """What stands in an SVG, without figures and times; lines end where the name of a home lets them."""
    texts = ElementTree.fromstring(figure).iter("{http://www.w3.org/2000/svg}text")
    said = TIMES.sub("0", " ".join(text.text or "" for text in texts))
    return re.sub(r"\b0 (answer|rating|adapter)s\b", r"0 \1", said).split()


@pytest.mark.parametrize("page", GUIDES)
def test_a_guide_shows_something(page: str) -> None:
    pictures = shown(page)
    assert pictures, "a page of How to has a picture"
    for alternative, file in pictures:
        assert len(alternative) > 15, "who does not see it reads this"
        assert (PICTURES / file).stat().st_size < 200_000


def test_every_picture_is_shown() -> None:
    used = {file for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")) for _, file in shown(str(page))}
    assert {path.name for path in PICTURES.iterdir()} == used


@pytest.mark.parametrize("name", sorted(FIGURES.drawn()))
def test_a_figure_is_what_the_script_draws(name: str) -> None:
    assert (PICTURES / name).read_text(encoding="utf-8") == FIGURES.drawn()[name]


def test_bars_are_the_figures_of_their_page() -> None:
    assert {"33", "92", "56", "71"} <= {*re.findall(r">(\d+)<", FIGURES.laptop())}
    assert re.findall(r">(\d+)<", FIGURES.outcomes()) == ["35", "76", "35", "29"]


def test_what_commands_print_is_what_the_pictures_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for times and sizes. If it is not: `python docs/tools/screens.py`."""
    require_backend()
    require("playwright.sync_api")
    monkeypatch.syspath_prepend(str(ROOT / "docs/tools"))  # where the scripts find each other
    screens = tool("screens")
    home, other = screens.Home(tmp_path / "ada"), screens.Home(tmp_path / "new")
    said = screens.commands(home)
    said["move"] = screens.moved(home, other)
    for page, printed in said.items():
        kept = (PICTURES / f"{page}.svg").read_text(encoding="utf-8")
        assert words(FIGURES.terminal("", printed)) == words(kept), page
