# SPDX-License-Identifier: Apache-2.0
"""An archive of somebody else's server: what is small when it comes, and without end when it is read."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest
from goodbot.api.adapters.files import MAX_WEIGHTS
from goodbot.base.errors import AdapterError

from tests.support import require

require("safetensors")

from goodbot_training.backends.tinker.archive import unpack  # noqa: E402


def member(name: str, size: int, type_: bytes = tarfile.REGTYPE) -> bytes:
    """Its head alone: what it says of itself."""
    about = tarfile.TarInfo(name)
    about.size, about.type = size, type_
    return about.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("type_", [tarfile.REGTYPE, tarfile.DIRTYPE, b"Z"])
def test_s9_what_nobody_wants_of_an_archive_is_not_unpacked_for_hours(tmp_path: Path, type_: bytes) -> None:
    packed = gzip.compress(member("junk", MAX_WEIGHTS + 1, type_) + bytes(10_240))
    with pytest.raises(AdapterError, match="far more than an adapter"):
        unpack(io.BytesIO(packed), tmp_path)
    assert [*tmp_path.iterdir()] == []


def test_s9_heads_without_end_are_a_damaged_archive(tmp_path: Path) -> None:
    """Each is read within the one before."""
    packed = gzip.compress(member("x", 0, tarfile.XHDTYPE) * 5000)
    with pytest.raises(AdapterError, match="cannot be read"):
        unpack(io.BytesIO(packed), tmp_path)
