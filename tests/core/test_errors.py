"""What an error says to do must work where it is read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from goodbot.errors import MissingExtraError, install_line


def environment(place: Path) -> Path:
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "pip").touch()
    return place


def test_a_missing_extra_is_installed_into_the_environment_that_misses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = environment(tmp_path / "venv")
    monkeypatch.setattr(sys, "prefix", str(place))
    assert install_line("mlx") == f"{place}/bin/pip install 'goodbot[mlx]'"
    assert install_line("mlx") in str(MissingExtraError("the mlx backend", "mlx"))


def test_a_place_with_a_space_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = environment(tmp_path / "my venv")
    monkeypatch.setattr(sys, "prefix", str(place))
    assert install_line("mlx").startswith(f"'{place}/bin/pip' install ")


def test_without_a_pip_beside_it_python_is_asked_for_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert install_line("mlx") == f"{sys.executable} -m pip install 'goodbot[mlx]'"
