# SPDX-License-Identifier: Apache-2.0
"""Downloads from a hub that cuts, damages, refuses and is away."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from goodbot.base.errors import BusyError, ConfigError, GoodbotError
from goodbot.inference.models import check, resolve
from goodbot.inference.models import hub as hub_module
from goodbot.inference.models.directory import cache_folder
from goodbot.inference.models.fetched import entries, partial_name, remove
from goodbot.inference.models.hub import HubError
from goodbot.inference.models.obtain import obtain
from goodbot.inference.models.transfer import DamagedError

from tests.core.inference.models.conftest import REPO, TINY
from tests.core.inference.models.fake_hub import FakeHub
from tests.support import require

WEIGHTS = "model.safetensors"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_a_model_is_fetched_whole_and_pinned(hub: FakeHub, home: Path) -> None:
    seen: list[dict[str, Any]] = []
    got = obtain(REPO, home, progress=lambda one: seen.append(dict(one)))
    assert got.reference == f"{REPO}@{hub.commit(REPO)}"
    assert (got.name, got.path.name) == (REPO, hub.commit(REPO))
    check(got.path)
    for name in ("config.json", WEIGHTS, "tokenizer.json", "tokenizer_config.json"):
        assert (got.path / name).read_bytes() == (TINY / name).read_bytes()
    assert seen[-1]["step"] == seen[-1]["steps"]
    assert got.fetched == sum(sent.bytes for sent in hub.sent)
    resolved = resolve(got.reference, {}, demo=False)
    assert (resolved.name, resolved.path) == (REPO, got.path)


def test_nothing_that_can_run_is_fetched(hub: FakeHub, home: Path) -> None:
    got = obtain(REPO, home)
    names = {path.name for path in got.path.iterdir()}
    assert names == {
        "config.json",
        "generation_config.json",
        WEIGHTS,
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert not {sent.file for sent in hub.sent} - names


def test_what_is_here_is_taken_without_asking_the_hub(hub: FakeHub, home: Path) -> None:
    first = obtain(REPO, home)
    hub.asked.clear()
    assert obtain(REPO, home).path == first.path
    assert obtain(first.reference, home).fetched == 0
    assert hub.asked == []


def test_a_pinned_model_stays_what_it_was_when_main_moves(hub: FakeHub, home: Path) -> None:
    got = obtain(REPO, home)
    (cache_folder(REPO) / "refs" / "main").write_text("f" * 40)
    assert resolve(got.reference, {}, demo=False).path == got.path
    with pytest.raises(ConfigError, match=f"`goodbot model use {REPO}`"):
        resolve(f"{REPO}@{'e' * 40}", {}, demo=False)


def test_a_cut_connection_is_taken_up_again_at_once(hub: FakeHub, home: Path) -> None:
    hub.cut = 1 << 20
    obtain(REPO, home)
    size = (TINY / WEIGHTS).stat().st_size
    assert [sent.start for sent in hub.sent if sent.file == WEIGHTS] == [0, 1 << 20]
    assert hub.bytes_of(WEIGHTS) == size


def test_a_later_attempt_goes_on_where_the_first_stopped(
    hub: FakeHub, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_: float) -> None:
        raise ConnectionError("the network is gone")

    hub.cut = 3 << 18
    with monkeypatch.context() as patch:  # the library tries again after a sleep
        patch.setattr(require("huggingface_hub.file_download").time, "sleep", gone)
        with pytest.raises(HubError, match="goes on from where it stopped"):
            obtain(REPO, home)
    with pytest.raises(ConfigError, match="goodbot model use"):
        resolve(REPO, {}, demo=False)
    hub.cut = None
    got = obtain(REPO, home)
    size = (TINY / WEIGHTS).stat().st_size
    [first, second] = [sent for sent in hub.sent if sent.file == WEIGHTS]
    assert (first.start, second.start) == (0, first.bytes)
    assert first.bytes + second.bytes == size
    assert got.fetched < size


def test_a_damaged_file_is_fetched_again(hub: FakeHub, home: Path) -> None:
    hub.broken = 1
    got = obtain(REPO, home)
    assert (got.path / WEIGHTS).read_bytes() == (TINY / WEIGHTS).read_bytes()
    assert [sent.start for sent in hub.sent if sent.file == WEIGHTS] == [0, 0]


def test_a_file_that_stays_damaged_is_named_and_not_kept(hub: FakeHub, home: Path) -> None:
    hub.broken = 2
    with pytest.raises(DamagedError, match=rf"{WEIGHTS} of {REPO} arrived damaged"):
        obtain(REPO, home)
    blobs = cache_folder(REPO) / "blobs"
    assert max(path.stat().st_size for path in blobs.iterdir()) < 100_000
    with pytest.raises(ConfigError):
        resolve(REPO, {}, demo=False)


def test_a_gated_model_needs_a_token_which_nobody_sees(
    hub: FakeHub, home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    hub.gated = True
    with pytest.raises(HubError, match="accept its licence"):
        obtain(REPO, home)
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(HubError, match="gated") as caught:
        obtain(REPO, home)
    assert "hf_wrong" not in str(caught.value)
    monkeypatch.setenv("HF_TOKEN", hub.token)
    obtain(REPO, home)
    assert hub.token not in "".join(capfd.readouterr())
    assert f"Bearer {hub.token}" in hub.tokens


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (401, "refuses the token"),
        (403, "does not let"),
        (404, "no model acme/tiny-chat"),
        (500, "error 500"),
        (429, "error 429"),
    ],
)
def test_each_refusal_is_a_sentence(hub: FakeHub, home: Path, status: int, sentence: str) -> None:
    hub.status = status
    with pytest.raises(HubError, match=sentence):
        obtain(REPO, home)


def test_a_model_that_is_not_there(hub: FakeHub, home: Path) -> None:
    with pytest.raises(HubError, match="no model acme/none, or it is private"):
        obtain("acme/none", home)
    with pytest.raises(HubError, match="no model"):
        obtain(f"{REPO}@{'0' * 40}", home)
    with pytest.raises(ConfigError, match="neither a directory nor a name"):
        obtain("../nowhere", home)


def test_no_network(hub: FakeHub, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    constants = require("huggingface_hub.constants")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(HubError, match="cannot be reached"):
        obtain(REPO, home)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(HubError, match="HF_HUB_OFFLINE"):
        obtain(REPO, home)


def test_a_full_disk_is_seen_before_the_download(
    hub: FakeHub, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(Path())
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10))  # type: ignore[attr-defined]
    with pytest.raises(HubError, match="make room"):
        obtain(REPO, home)
    assert hub.sent == []


def test_a_model_without_safetensors(hub: FakeHub, home: Path) -> None:
    del hub.models[REPO][WEIGHTS]
    with pytest.raises(ConfigError, match="no other format"):
        obtain(REPO, home)


def test_two_at_once_do_not_write_one_file(hub: FakeHub, home: Path) -> None:
    import fcntl

    model = hub_module.describe(REPO, "", None)
    [weights] = [file for file in model.files if file.is_large]
    blobs = cache_folder(REPO) / "blobs"
    blobs.mkdir(parents=True)
    with (blobs / partial_name(weights.digest)).open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(BusyError, match="another goodbot"):
            obtain(REPO, home)


def test_what_goodbot_fetched_is_known_and_can_go_without_a_trace(
    hub: FakeHub, home: Path, cache: Path
) -> None:
    hub.status = 0
    got = obtain(REPO, home)
    [entry] = entries(home)
    assert (entry.repo, entry.commit, entry.path) == (REPO, hub.commit(REPO), str(got.path))
    assert set(entry.blobs) == {path.name for path in (cache_folder(REPO) / "blobs").iterdir()}
    gone = remove(home, entry)
    assert len(gone) == 2 * len(entry.blobs)
    assert not cache_folder(REPO).exists()
    assert not (home / "fetched.json").exists()


def test_a_broken_off_download_is_known_too(hub: FakeHub, home: Path) -> None:
    hub.broken = 2
    with pytest.raises(GoodbotError):
        obtain(REPO, home)
    [entry] = entries(home)
    remove(home, entry)
    assert not cache_folder(REPO).exists()


def test_what_others_brought_or_use_stays(hub: FakeHub, home: Path) -> None:
    """Another commit of the same model, fetched by another program, shares the weights."""
    got = obtain(REPO, home)
    other = got.path.with_name("a" * 40)
    other.mkdir()
    shared = os.readlink(got.path / WEIGHTS)
    (other / WEIGHTS).symlink_to(shared)
    [entry] = entries(home)
    remove(home, entry)
    assert (other / WEIGHTS).read_bytes() == (TINY / WEIGHTS).read_bytes()
    assert not (got.path / "config.json").exists()


def test_weights_that_were_there_before_are_not_ours(hub: FakeHub, home: Path) -> None:
    obtain(REPO, home)
    (home / "fetched.json").unlink()
    (cache_folder(REPO) / "snapshots" / hub.commit(REPO) / "config.json").unlink()
    obtain(REPO, home)
    [entry] = entries(home)
    assert entry.blobs == ()
