# SPDX-License-Identifier: Apache-2.0
"""CONTRIBUTING.md and what stands beside it: every file, command and name that they speak of is there."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.examples.support import ROOT, python
from tests.support import require

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M))
TASKS = {
    title: body
    for title, _, body in (part.partition("\n") for part in re.split(r"^## ", PAGE, flags=re.M))
    if title.startswith("Add ")
}
FORMS = sorted(ROOT.glob(".github/ISSUE_TEMPLATE/*.yml"))


def test_every_path_that_is_named_is_there() -> None:
    paths = re.findall(r"`((?:[\w.-]+/)+[\w.-]*|\w+\.(?:md|toml))`", PAGE)
    paths += re.findall(r"(?<=pytest )[\w/ ]+", PAGE)[0].split()
    assert len(paths) > 40, "the scan has lost its subject"
    assert [path for path in paths if not (ROOT / path).exists()] == []
    folders = [path for path in paths if path.endswith("/") and not (ROOT / path).is_dir()]
    assert folders == []


def test_every_task_of_a_newcomer_names_code_tests_and_docs() -> None:
    assert list(TASKS) == [
        "Add a connector",
        "Add a command",
        "Add an objective",
        "Add a model server",
        "Add a page, or change a text",
    ]
    for title, body in TASKS.items():
        assert re.search(r"`(?:core|connectors|training)/", body), title
        assert "`tests/" in body, title
        assert re.search(r"`(?:docs/|README\.md)", body), title


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("CHAT", "core/goodbot/api/commands/chat.py"),
        ("_MAKERS", "training/goodbot_training/objectives/__init__.py"),
        ("OBJECTIVES", "training/goodbot_training/job/settings.py"),
        ("SPECS", "core/goodbot/inference/servers/plugin.py"),
        ("ServerSpec", "core/goodbot/inference/servers/plugin.py"),
        ("register_server", "core/goodbot/inference/servers/plugin.py"),
        ("_PAGES", "connectors/goodbot_connectors/web/site.py"),
        ("patience()", "tests/support.py"),
    ],
)
def test_a_name_is_where_the_page_says(name: str, path: str) -> None:
    assert f"`{name}`" in PAGE
    assert re.search(rf"\b{name.strip('()')}\b", (ROOT / path).read_text(encoding="utf-8"))


def test_every_make_target_is_there() -> None:
    texts = [PAGE, *(path.read_text(encoding="utf-8") for path in _beside())]
    named = {target for text in texts for target in re.findall(r"\bmake ([a-z-]+)", text)}
    assert named >= {"install-test", "test", "check"}
    assert named - TARGETS == set()


def _beside() -> list[Path]:
    return [
        ROOT / ".devcontainer/devcontainer.json",
        ROOT / ".pre-commit-config.yaml",
        ROOT / ".github/pull_request_template.md",
    ]


def test_a_commit_is_checked_by_the_ruff_of_the_environment() -> None:
    """Of a local repository only: pre-commit downloads nothing."""
    yaml = require("yaml")
    [repo] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert repo["repo"] == "local"
    for hook in repo["hooks"]:
        assert hook["language"] == "system"
        assert hook["entry"].startswith(".venv/bin/ruff ")
        assert "--force-exclude" in hook["entry"], "else it reads what pyproject.toml leaves out"


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_is_one(path: Path) -> None:
    form = require("yaml").safe_load(path.read_text(encoding="utf-8"))
    if path.stem == "config":
        assert form == {"blank_issues_enabled": False}
        return
    assert {"name", "description", "body"} <= set(form)
    fields = [one for one in form["body"] if one["type"] != "markdown"]
    assert len({one["id"] for one in fields}) == len(fields)
    for one in fields:
        assert one["type"] in ("textarea", "input", "dropdown", "checkboxes")
        assert one["attributes"]["label"]
        assert one["type"] != "dropdown" or len(one["attributes"]["options"]) > 1
    assert any(one.get("validations", {}).get("required") for one in fields)


def test_the_container_is_a_python_that_goodbot_runs_on() -> None:
    told = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text(encoding="utf-8"))
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    [needed] = re.findall(r'^requires-python = ">=([\d.]+)"', pyproject, flags=re.M)
    assert told["image"].startswith(f"python:{needed}-")


CHANGES = ROOT / "docs/changes"
KINDS = {"added", "changed", "fixed", "removed", "security"}


def test_the_next_changes_are_named_and_told() -> None:
    for path in CHANGES.iterdir():
        if path.name == "README.md":
            continue
        words, kind, ending = path.name.rsplit(".", 2)
        assert re.fullmatch(r"\+[a-z0-9-]+|\d+", words), path.name
        assert (kind in KINDS, ending) == (True, "md"), path.name
        text = path.read_text(encoding="utf-8").strip()
        assert text, path.name
        assert not text.startswith(("-", "*", "#")), "the list is made of it"


def test_the_changelog_is_made_of_them(tmp_path: Path) -> None:
    require("towncrier")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copy(ROOT / "CHANGELOG.md", tmp_path)
    shutil.copytree(CHANGES, tmp_path / "docs/changes")
    (tmp_path / "docs/changes/+pigeons.fixed.md").write_text("Pigeons find home.\n")
    done = python("-m", "towncrier", "build", "--yes", "--version", "9.9.9", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    made = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = made[: made.index("## Unreleased")]
    assert "## 9.9.9 (" in newest
    [fixed] = re.findall(r"^### Fixed\n(.*?)(?=^### |\Z)", newest, flags=re.M | re.S)
    assert "- Pigeons find home.\n" in fixed
