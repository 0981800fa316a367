# SPDX-License-Identifier: Apache-2.0
"""What a hostile child leaves is removed, however deep it is, and nothing that a link of it leads to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from goodbot.base import scratch, trees
from goodbot.base.scratch import Scratch
from goodbot.cli.uninstall import trace

DEPTH = 3000
"""Python calls itself a thousand times, and a path has 4,096 bytes."""


def deep(top: Path, name: str = "d" * 20, depth: int = DEPTH) -> None:
    """Directories in directories, each with a file, made as a child would: no path is that long."""
    here = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, 0o700, dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=here))
    os.close(here)


@pytest.mark.parametrize("ignore", [False, True])
def test_s9_nested_deeper_than_python_calls_and_paths_reach(tmp_path: Path, ignore: bool) -> None:
    (top := tmp_path / "left").mkdir()
    deep(top)
    deep(top, "e", 40)
    trees.remove(top, ignore_errors=ignore)
    assert [*tmp_path.iterdir()] == []


def test_s9_few_handles_are_open_meanwhile(tmp_path: Path) -> None:
    (top := tmp_path / "left").mkdir()
    deep(top, depth=300)
    code = (
        "import resource, sys; from pathlib import Path; from goodbot.base import trees;"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); trees.remove(Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", code, str(top)], check=True)
    assert not top.exists()


def test_s9_no_link_is_followed(tmp_path: Path) -> None:
    (kept := tmp_path / "kept").mkdir()
    (kept / "file").write_text("mine")
    (top := tmp_path / "left").mkdir()
    (top / "a" / "b").mkdir(parents=True)
    for folder in (top, top / "a", top / "a" / "b"):
        (folder / "to a directory").symlink_to(kept)
        (folder / "to a file").symlink_to(kept / "file")
        (folder / "to nothing").symlink_to(folder / "none")
        (folder / "upwards").symlink_to(tmp_path)
        os.mkfifo(folder / "pipe")
    trees.remove(top)
    assert (kept / "file").read_text() == "mine"
    assert [*tmp_path.iterdir()] == [kept]
    (link := tmp_path / "link").symlink_to(kept)
    with pytest.raises(OSError, match=r"link|irectory"):
        trees.remove(link)
    trees.remove(link, ignore_errors=True)
    assert (kept / "file").read_text() == "mine"


def test_what_cannot_be_deleted_keeps_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (top := tmp_path / "left").mkdir()
    for name in ("a", "b", "c"):
        (top / name / "inner").mkdir(parents=True)
        (top / name / "file").touch()
    real = os.unlink

    def unlink(name: str, *, dir_fd: int) -> None:
        if os.path.samestat(os.fstat(dir_fd), (top / "b").stat()):
            raise PermissionError(1, "not permitted", name)
        real(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", unlink)
    with pytest.raises(PermissionError):
        trees.remove(top)
    trees.remove(top, ignore_errors=True)
    assert sorted(trees.below(tmp_path)) == [top, top / "b", top / "b" / "file"]
    with pytest.raises(FileNotFoundError):
        trees.remove(tmp_path / "none")
    trees.remove(tmp_path / "none", ignore_errors=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_a_child_has_locked_goes_too(tmp_path: Path) -> None:
    (inner := tmp_path / "left" / "locked" / "within").mkdir(parents=True)
    (inner / "file").touch()
    inner.chmod(0o500)
    inner.parent.chmod(0)
    trees.remove(tmp_path / "left")
    assert [*tmp_path.iterdir()] == []


def test_s9_what_a_dead_child_has_left_is_swept_and_counted(tmp_path: Path) -> None:
    left = Scratch(tmp_path)
    deep(left.path)
    left.release()
    assert trace.size_of(left.path) == 0
    scratch.sweep(tmp_path)
    assert [*tmp_path.iterdir()] == []
