# SPDX-License-Identifier: Apache-2.0
"""docs/decisions/field-cases.md: every case has a test, and every test and file that it names is there."""

from __future__ import annotations

import errno
import re
import socket
from pathlib import Path

import pytest
from goodbot.cli import main
from goodbot.cli.doctor.preparation import prepare
from goodbot.commands.compare import named_versions

ROOT = Path(__file__).parents[2]
ROOMS = ("core/goodbot", "connectors/goodbot_connectors", "training/goodbot_training")
CASES = [
    f"{letter}{n}"
    for letter, count in (("F", 16), ("I", 5), ("A", 12), ("C", 6))
    for n in range(1, count + 1)
]


def _rows() -> list[list[str]]:
    page = (ROOT / "docs/decisions/field-cases.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split(" | ") for line in page.splitlines() if re.match(r"\| [FIAC]\d", line)]
    assert all(len(row) == 4 for row in rows)
    return rows


def test_every_case_is_on_the_page() -> None:
    assert sorted(name for row in _rows() for name in row[0].strip().split(", ")) == sorted(CASES)


@pytest.mark.parametrize("row", _rows(), ids=lambda row: row[0].strip())
def test_what_a_row_names_is_there(row: list[str]) -> None:
    tests = re.findall(r"`(tests/\S+\.py)::(\w+)`", row[3])
    assert tests
    assert row[3].count("`") == 2 * len(tests), "nothing else stands in that column"
    for path, name in tests:
        assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(encoding="utf-8"), flags=re.M), (
            name
        )
    for place in re.findall(r"`([\w/]+/[\w.]*)`", row[2]):
        found = [room for room in ROOMS if (ROOT / room / place).exists()]
        assert found, place


def test_an_account_without_a_home_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("GOODBOT_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    assert main(["status"]) != 0
    said = capsys.readouterr().err
    assert "this account has no home directory" in said
    assert "GOODBOT_HOME" in said


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the kernel refuses us in a directory of another user; root may enter all of them."""

    class Refusing(socket.socket):
        def connect(self, address: object, /) -> None:
            raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket, "socket", Refusing)


def test_i4_status_in_a_directory_of_another_user(
    refusing: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--home", str(tmp_path), "status"]) == 1
    assert f"the state directory {tmp_path} belongs to another user" in capsys.readouterr().err


def test_i4_doctor_says_nothing_of_a_daemon_there(refusing: None, tmp_path: Path) -> None:
    seen, wrong = prepare(tmp_path, None, demo_model=False)
    assert seen.daemon is None
    assert [check for check in wrong if check.part == "daemon"] == []


@pytest.mark.parametrize(
    ("words", "found"), [(("base", "5"), (0, 5)), (("v6", "base"), (6, 0)), (("a", "b"), None)]
)
def test_a_version_is_named_by_its_number_too(words: tuple[str, str], found: tuple[int, int] | None) -> None:
    assert named_versions(*words) == found
