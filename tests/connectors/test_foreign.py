# SPDX-License-Identifier: Apache-2.0
"""Files of other programs are left as they were."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from goodbot.base.errors import FatalConnectorError
from goodbot_connectors.kit.settings_file import SettingsFile

BEFORE = b'{\r\n\t"theme" : "dark",\r\n "n":1.0}  \r\n'


def add(text: str) -> str:
    return json.dumps({**json.loads(text or "{}"), "ours": True})


def take_out(text: str) -> str:
    return json.dumps({k: v for k, v in json.loads(text).items() if k != "ours"})


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "home" / "connectors" / "other" / "before"


def foreign(path: Path, kept: Path, *, check: Callable[[str], object] | None = None) -> SettingsFile:
    return SettingsFile(path, kept.parents[2], kept.parent.name, check=check)


def test_the_file_comes_back_byte_for_byte(tmp_path: Path, kept: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(BEFORE)
    path.chmod(0o640)
    foreign(path, kept).write(add(foreign(path, kept).read()))
    assert json.loads(path.read_bytes())["ours"] is True
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    line = foreign(path, kept).restore(take_out)
    assert path.read_bytes() == BEFORE
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert "as it was before" in line
    assert not kept.exists()


def test_the_first_bytes_are_kept_over_our_own_later_writes(tmp_path: Path, kept: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(BEFORE)
    for text in ('{"ours":1}', '{"ours":2}', '{"ours":2}', '{"ours":3}'):
        foreign(path, kept).write(text)
    foreign(path, kept).restore(take_out)
    assert path.read_bytes() == BEFORE


def test_what_it_was_is_for_nobody_elses_eyes(tmp_path: Path, kept: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b'{"env":{"KEY":"secret"}}')
    path.chmod(0o644)
    foreign(path, kept).write("{}")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    assert {stat.S_IMODE(one.stat().st_mode) for one in kept.iterdir()} == {0o600}


def test_a_file_that_was_not_there_goes_with_its_directories(tmp_path: Path, kept: Path) -> None:
    path = tmp_path / "a" / "b" / "rl.md"
    file = foreign(path, kept)
    assert file.read() == ""
    assert not file.written
    file.write("hello")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert foreign(path, kept).written
    foreign(path, kept).restore(lambda text: "")
    assert not (tmp_path / "a").exists()


def test_directories_with_something_else_in_them_stay(tmp_path: Path, kept: Path) -> None:
    path = tmp_path / "a" / "b" / "rl.md"
    foreign(path, kept).write("hello")
    (tmp_path / "a" / "other").write_text("theirs")
    foreign(path, kept).restore(lambda text: "")
    assert sorted(one.name for one in (tmp_path / "a").iterdir()) == ["other"]


def test_after_a_change_of_somebody_else_only_our_part_goes(tmp_path: Path, kept: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(BEFORE)
    foreign(path, kept).write(add(BEFORE.decode()))
    theirs = {**json.loads(path.read_bytes()), "model": "opus"}
    path.write_text(json.dumps(theirs))
    line = foreign(path, kept).restore(take_out)
    assert json.loads(path.read_bytes()) == {"theme": "dark", "n": 1.0, "model": "opus"}
    assert "stays" in line
    assert not foreign(path, kept).written


def test_a_change_between_two_writes_of_ours_is_not_lost(tmp_path: Path, kept: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(BEFORE)
    foreign(path, kept).write(add(BEFORE.decode()))
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "model": "opus"}))
    file = foreign(path, kept)
    file.write(file.read() + "\n")
    foreign(path, kept).restore(take_out)
    assert json.loads(path.read_bytes())["model"] == "opus"


def test_a_file_that_its_owner_deleted_stays_deleted(tmp_path: Path, kept: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(BEFORE)
    foreign(path, kept).write("{}")
    path.unlink()
    assert "not there any more" in foreign(path, kept).restore(take_out)
    assert not path.exists()
    assert not foreign(path, kept).written


def test_without_a_record_what_is_ours_is_still_taken_out(tmp_path: Path, kept: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"ours": true, "theme": "dark"}')
    foreign(path, kept).restore(take_out)
    assert json.loads(path.read_text()) == {"theme": "dark"}
    assert "nothing of goodbot" in foreign(path, kept).restore(take_out)


@pytest.mark.parametrize("whole_directory", [True, False])
def test_links_of_dotfile_managers_stay_links(tmp_path: Path, kept: Path, whole_directory: bool) -> None:
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "settings.json").write_bytes(BEFORE)
    if whole_directory:
        link = tmp_path / ".claude"
        link.symlink_to(dotfiles)
        path = link / "settings.json"
    else:
        link = path = tmp_path / "settings.json"
        link.symlink_to(Path("dotfiles") / "settings.json")
    foreign(path, kept).write('{"ours":1}')
    assert link.is_symlink()
    assert (dotfiles / "settings.json").read_text() == '{"ours":1}'
    foreign(path, kept).restore(take_out)
    assert link.is_symlink()
    assert (dotfiles / "settings.json").read_bytes() == BEFORE


def test_a_link_to_nothing_leads_to_nothing_again(tmp_path: Path, kept: Path) -> None:
    link = tmp_path / "settings.json"
    link.symlink_to(tmp_path / "gone" / "settings.json")
    foreign(link, kept).write("{}")
    assert (tmp_path / "gone" / "settings.json").read_text() == "{}"
    foreign(link, kept).restore(take_out)
    assert link.is_symlink()
    assert not (tmp_path / "gone").exists()


def test_a_malformed_file_is_left_as_it_is(tmp_path: Path, kept: Path) -> None:
    path = tmp_path / "settings.json"
    for broken in (b'{"a": 1,,}', b"\xff\xfe{}", b"[" * 100_000):
        path.write_bytes(broken)
        with pytest.raises(FatalConnectorError, match=r"cannot be understood .* left as it is"):
            foreign(path, kept, check=json.loads).read()
        assert path.read_bytes() == broken


def test_a_file_that_became_malformed_keeps_what_is_known_of_it(tmp_path: Path, kept: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(BEFORE)
    foreign(path, kept).write("{}")
    path.write_text("{,")
    with pytest.raises(FatalConnectorError, match="cannot be understood"):
        foreign(path, kept, check=json.loads).restore(take_out)
    assert path.read_text() == "{,"
    assert foreign(path, kept).written


def test_a_mark_at_its_start_is_no_text_and_stays(tmp_path: Path, kept: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b"\xef\xbb\xbf{}\n")
    file = foreign(path, kept, check=json.loads)
    assert file.read() == "{}\n"
    file.write('{"ours":1}')
    assert path.read_bytes() == b'\xef\xbb\xbf{"ours":1}'


def test_what_changed_since_it_was_read_is_not_overwritten(tmp_path: Path, kept: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(BEFORE)
    file = foreign(path, kept)
    text = file.read()
    path.write_text('{"theirs": 1}')
    with pytest.raises(FatalConnectorError, match="try again"):
        file.write(add(text))
    assert path.read_text() == '{"theirs": 1}'


def test_a_crash_before_the_write_leaves_nothing_to_undo(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(BEFORE)

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SettingsFile, "_replace", crash)
        with pytest.raises(KeyboardInterrupt):
            foreign(path, kept).write("{}")
    assert foreign(path, kept).written  # the copy is there: it is harmless
    foreign(path, kept).restore(take_out)
    assert path.read_bytes() == BEFORE


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_may_not_be_written_is_named_with_its_target(tmp_path: Path, kept: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "settings.json").write_bytes(BEFORE)
    path = tmp_path / "settings.json"
    path.symlink_to(store / "settings.json")
    store.chmod(0o500)
    try:
        with pytest.raises(FatalConnectorError, match=r"a link to .*store.*nothing was changed"):
            foreign(path, kept).write("{}")
    finally:
        store.chmod(0o700)
    assert path.read_bytes() == BEFORE
    assert not foreign(path, kept).written


def test_a_failed_first_write_leaves_no_record(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(BEFORE)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SettingsFile, "_replace", full)
    with pytest.raises(FatalConnectorError, match=r"No space left.*nothing was changed"):
        foreign(path, kept).write("{}")
    assert path.read_bytes() == BEFORE
    assert not foreign(path, kept).written


def test_what_is_no_file_is_refused(tmp_path: Path, kept: Path) -> None:
    directory, pipe = tmp_path / "directory", tmp_path / "pipe"
    directory.mkdir()
    os.mkfifo(pipe)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for path in (directory, pipe, loop):
        with pytest.raises(FatalConnectorError, match=str(path)):
            foreign(path, kept).read()


def test_two_files_of_one_name_are_told_apart(tmp_path: Path, kept: Path) -> None:
    paths = [tmp_path / one / "settings.json" for one in "ab"]
    for path in paths:
        path.parent.mkdir()
        path.write_text(f'"{path.parent.name}"')
        foreign(path, kept).write("{}")
    for path in paths:
        foreign(path, kept).restore(take_out)
        assert path.read_text() == f'"{path.parent.name}"'


def test_nothing_else_is_left_beside_it(tmp_path: Path, kept: Path) -> None:
    path = tmp_path / "there" / "settings.json"
    path.parent.mkdir()
    path.write_bytes(BEFORE)
    foreign(path, kept).write("{}")
    foreign(path, kept).restore(take_out)
    assert [one.name for one in path.parent.iterdir()] == ["settings.json"]
