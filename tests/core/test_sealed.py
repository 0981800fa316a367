# SPDX-License-Identifier: Apache-2.0
"""A record that was sealed here is believed afterwards, whoever else seals one at the same time."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

import pytest
from goodbot.base import sealed


def test_two_that_seal_the_first_record_at_once_are_both_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon notes a download while `connect` notes where a program's settings were."""
    draw, other = secrets.token_bytes, list[str]()

    def slowly(count: int) -> bytes:
        monkeypatch.setattr(secrets, "token_bytes", draw)
        other.append(sealed.seal(tmp_path, "theirs", b"b"))
        return draw(count)

    monkeypatch.setattr(secrets, "token_bytes", slowly)
    ours = sealed.seal(tmp_path, "ours", b"a")
    assert sealed.holds(tmp_path, "ours", b"a", ours)
    assert sealed.holds(tmp_path, "theirs", b"b", other[0])
    assert [path.name for path in tmp_path.iterdir()] == [sealed.KEY]


def test_a_path_that_is_no_utf8_is_noted_as_it_is(tmp_path: Path) -> None:
    path = os.fsdecode(b"/srv/ad\xff/.codex")
    kept = sealed.note(tmp_path, "a place", path)
    assert sealed.told(tmp_path, "a place", kept) == path
    mac = json.loads(kept)["mac"]
    for other in ("/srv/ad?/.codex", os.fsdecode(b"/srv/ad\xfe/.codex")):
        assert sealed.told(tmp_path, "a place", json.dumps({"text": other, "mac": mac})) == ""
