# SPDX-License-Identifier: Apache-2.0
"""`goodbot uninstall`: a listing of everything before and after is the same, as if nobody had come."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import threading
from pathlib import Path

import pytest
from goodbot.api.plugins import PluginHost
from goodbot.base import spawn
from goodbot.base.scratch import Scratch
from goodbot.cli import main
from goodbot.cli.backup.make import make
from goodbot.cli.backup.restore import prepared, swap
from goodbot.config.lock import HomeLock
from goodbot.config.secrets import SecretStore
from goodbot.inference.models import fetched

from tests.cli.program import Bot, need_backend
from tests.cli.terminal import Person
from tests.core.cli.service.manager import FakeManager
from tests.core.store import killed
from tests.core.store.golden import state_of_0_1_0
from tests.rings import Ring
from tests.support import patience, require

TOKEN = "GOODBOT_TELEGRAM_TOKEN"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHER = "f" * 40


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ring: Ring) -> FakeManager:
    """A person's machine before goodbot: a service manager, dot files, a model of somebody else's."""
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv(TOKEN, raising=False)
    (tmp_path / "tmp").mkdir()  # the machine's own may have those of another session in it
    monkeypatch.setattr(spawn, "_place", lambda: tmp_path / "tmp")
    made = FakeManager(tmp_path, monkeypatch, ("systemctl", "loginctl"))
    (made.person / ".bashrc").write_text("alias ll=ls\n")
    (made.person / ".config").mkdir()  # where it is missing, an empty one stays
    snapshot(cache(made) / "models--them--theirs", COMMIT, {"config.json": b"{}"})
    return made


def cache(machine: FakeManager) -> Path:
    return machine.person / ".cache" / "huggingface" / "hub"


def snapshot(folder: Path, commit: str, files: dict[str, bytes]) -> list[str]:
    """A model in the hub's cache, as a download leaves it; the names of its blobs."""
    (folder / "blobs").mkdir(parents=True, exist_ok=True)
    (folder / "snapshots" / commit).mkdir(parents=True)
    (folder / "refs").mkdir(exist_ok=True)
    (folder / "refs" / "main").write_text(commit)
    blobs: list[str] = []
    for name, content in files.items():
        blob = hashlib.sha256(content).hexdigest()
        (folder / "blobs" / blob).write_bytes(content)
        (folder / "snapshots" / commit / name).symlink_to(f"../../blobs/{blob}")
        blobs.append(blob)
    return blobs


def fetch(machine: FakeManager, home: Path, repo: str = "we/ours") -> Path:
    """A model that goodbot has downloaded; returns its folder."""
    folder = cache(machine) / f"models--{repo.replace('/', '--')}"
    blobs = snapshot(folder, COMMIT, {"config.json": b'{"a":1}', "model.safetensors": bytes(2_000_000)})
    path = str(folder / "snapshots" / COMMIT)
    fetched.record(home, fetched.Fetched(repo=repo, commit=COMMIT, path=path, blobs=tuple(blobs)))
    return folder


def listing(person: Path, *, times: bool = False) -> dict[str, object]:
    """Every path below, with its kind, rights and content, and with its time stamps if asked for."""
    found: dict[str, object] = {}
    for path in sorted(person.rglob("*")):
        info = path.lstat()
        content: object = None
        if path.is_symlink():
            content = os.readlink(path)
        elif path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path.relative_to(person))] = (
            oct(info.st_mode),
            content,
            (info.st_mtime_ns, info.st_ctime_ns) if times else None,
        )
    return found


def lived_in(machine: FakeManager) -> Path:
    """Everything that goodbot can leave behind: data, tokens, a service, weights, a restore."""
    home = machine.person / ".goodbot"
    state_of_0_1_0(home)
    (home / "config.toml").write_text("[serving]\nhistory = 2\n")
    SecretStore(home).set("GOODBOT_OTHER_TOKEN", "1")
    SecretStore(home).set(TOKEN, "123:secret", keyring=True)
    assert main(["status"]) == 0  # it upgrades the data, and keeps a copy
    fetch(machine, home)
    backup = make(home, machine.base / "b.tar", {}, now=1.8e9)

    async def restore() -> None:
        async with prepared(backup.path, home, PluginHost(), now=1.8e9) as ready:
            swap(ready, home, now=1.8e9)

    asyncio.run(restore())
    (home / "serving" / "llamacpp" / "compiled" / "one").mkdir(parents=True)
    assert main(["service", "install"]) == 0
    machine.set(active=False)
    return home


def test_s3_a_forged_list_of_downloads_deletes_nothing(
    machine: FakeManager, capsys: pytest.CaptureFixture[str]
) -> None:
    home = machine.person / ".goodbot"
    folder = cache(machine) / "models--them--theirs"
    entry = {
        "repo": "them/theirs",
        "commit": COMMIT,
        "path": str(folder / "snapshots" / COMMIT),
        "blobs": [blob.name for blob in (folder / "blobs").iterdir()],
    }
    fetch(machine, home)
    for forged in ([entry], {"models": [entry], "mac": "0" * 64}, {"models": [entry], "mac": None}):
        (home / "fetched.json").write_text(json.dumps(forged))
        before = listing(machine.person)
        assert main(["uninstall", "--dry-run"]) == 0
        said = capsys.readouterr().out
        assert "them/theirs" not in said
        assert "was not made by this goodbot, so no model that it names is removed" in said
        assert listing(machine.person) == before
    fetch(machine, home, "we/more")
    assert [one.repo for one in fetched.entries(home)] == ["we/more"], "a download is noted anew"


def test_all_is_as_it_was_before(
    machine: FakeManager, ring: Ring, capsys: pytest.CaptureFixture[str]
) -> None:
    before = listing(machine.person)
    lived_in(machine)
    assert len(listing(machine.person)) > len(before) + 20
    assert len(ring.entries) == 1
    capsys.readouterr()
    assert main(["uninstall", "--yes"]) == 0
    said = capsys.readouterr()
    assert listing(machine.person) == before
    assert ring.entries == {}
    assert "systemctl --user disable --now goodbot.service" in machine.calls()
    for part in ("the systemd service goodbot", "we/ours", "2.0 MB", TOKEN, ".before-restore-"):
        assert part in said.out
    assert said.out.splitlines()[-1].endswith("-m pip uninstall goodbot")
    assert main(["uninstall", "--yes"]) == 0
    assert "There is nothing of goodbot's" in capsys.readouterr().out


def test_a_dry_run_changes_nothing_at_all(
    machine: FakeManager, ring: Ring, capsys: pytest.CaptureFixture[str]
) -> None:
    lived_in(machine)
    before, calls = listing(machine.person, times=True), machine.calls()
    capsys.readouterr()
    assert main(["uninstall", "--dry-run"]) == 0
    assert "This would go:" in capsys.readouterr().out
    assert main(["uninstall", "--dry-run", "--keep-data", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {one["kind"] for one in data["found"]} == {"service", "token", "weights"}
    assert listing(machine.person, times=True) == before
    assert (machine.calls(), len(ring.entries)) == (calls, 1)


def test_kept_data_is_all_that_stays(
    machine: FakeManager, ring: Ring, capsys: pytest.CaptureFixture[str]
) -> None:
    before = listing(machine.person)
    home = lived_in(machine)
    data = {name: entry for name, entry in listing(machine.person).items() if ".goodbot" in name}
    assert main(["uninstall", "--yes", "--keep-data"]) == 0
    after = listing(machine.person)
    gone = {".goodbot/fetched.json"}  # the weights that it speaks of are gone
    assert {n: e for n, e in after.items() if ".goodbot" not in n} == before
    assert set(data) - {n for n in after if ".goodbot" in n} == gone
    assert {n: e for n, e in data.items() if n not in gone} == {
        n: e for n, e in after.items() if ".goodbot" in n
    }
    assert ring.entries == {}
    assert (home / "secrets.env").exists()


def test_nobody_to_ask_and_a_no_remove_nothing(
    machine: FakeManager, capsys: pytest.CaptureFixture[str]
) -> None:
    home = lived_in(machine)
    before = listing(machine.person)
    assert main(["uninstall"]) == 2
    assert "say --yes" in capsys.readouterr().err
    with Person(home, "uninstall", HOME=str(machine.person)) as person:
        person.sees("This goes:", "Remove all of this? [y/N]")
        person.type("n\n")
        assert person.ends() == 1
        assert "Nothing was removed." in person.look()
    assert listing(machine.person) == before


def test_a_keyring_that_does_not_answer_is_named_and_stops_nobody(
    machine: FakeManager, ring: Ring, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = lived_in(machine)
    monkeypatch.setattr("goodbot.config.secrets._KEYRING_SECONDS", 0.1)
    monkeypatch.setattr(ring, "get_password", lambda service, user: threading.Event().wait(60))
    capsys.readouterr()
    assert main(["uninstall", "--yes"]) == 0
    assert "the keyring does not answer within 0.1 s" in capsys.readouterr().out
    assert not home.exists()


def test_a_person_says_yes(machine: FakeManager) -> None:
    home = lived_in(machine)
    with Person(home, "uninstall", HOME=str(machine.person)) as person:
        person.sees("Remove all of this? [y/N]")
        person.type("y\n")
        assert person.ends() == 0
    assert not home.exists()


def test_other_peoples_files_stay_and_the_directory_with_them(
    machine: FakeManager, capsys: pytest.CaptureFixture[str]
) -> None:
    home = lived_in(machine)
    (home / "thesis.txt").write_text("mine")
    (home / "models" / "mine").mkdir(parents=True)
    capsys.readouterr()
    assert main(["uninstall", "--yes"]) == 0
    assert f"stays: {home / 'thesis.txt'}: it is not goodbot's own" in capsys.readouterr().out
    assert {entry.name for entry in home.iterdir()} == {"thesis.txt", "models"}


def test_a_directory_that_is_no_goodbot_is_not_touched(
    machine: FakeManager, capsys: pytest.CaptureFixture[str]
) -> None:
    before = listing(machine.person, times=True)
    assert main(["--home", str(machine.person), "uninstall", "--yes"]) == 2
    assert "is not the state directory of a goodbot" in capsys.readouterr().err
    link = machine.base / "link"
    link.symlink_to(machine.person)
    assert main(["--home", str(link), "uninstall", "--yes"]) == 2
    assert listing(machine.person, times=True) == before


def test_weights_that_somebody_else_uses_stay(machine: FakeManager) -> None:
    """A blob of a second snapshot, a folder behind a link, a path outside the cache, a forged name."""
    home = machine.person / ".goodbot"
    folder = fetch(machine, home)
    shared = {"config.json": b'{"a":1}', "other.safetensors": b"2"}
    snapshot(folder, OTHER, shared)
    precious = machine.person / "precious" / "snapshots" / COMMIT
    precious.mkdir(parents=True)
    (precious / "model.safetensors").write_bytes(b"mine")
    blob = machine.person / "precious" / "blobs" / "model.safetensors"
    blob.parent.mkdir()
    blob.write_bytes(b"mine, too")
    (cache(machine) / "models--link--ed").symlink_to(machine.person / "precious")
    for repo, path in (
        ("link/ed", cache(machine) / "models--link--ed" / "snapshots" / COMMIT),
        ("we/else", precious),
        ("../../../precious", precious),
    ):
        fetched.record(
            home, fetched.Fetched(repo=repo, commit=COMMIT, path=str(path), blobs=("model.safetensors",))
        )
    assert main(["uninstall", "--yes"]) == 0
    assert not home.exists()
    assert (precious / "model.safetensors").read_bytes() == b"mine"
    assert blob.read_bytes() == b"mine, too"
    there = folder / "snapshots" / OTHER
    assert {name: (there / name).read_bytes() for name in shared} == shared
    assert len(list((folder / "blobs").iterdir())) == 2
    assert not (folder / "snapshots" / COMMIT).exists()


def test_a_platform_that_cannot_be_reached_is_said_and_the_rest_goes(
    machine: FakeManager, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    require("telegram")
    home = machine.person / ".goodbot"
    home.mkdir()
    (home / "config.toml").write_text(
        '[connectors.telegram]\nowners = [1]\napi_base = "http://127.0.0.1:9/bot"\n'
    )
    assert main(["uninstall", "--yes"]) == 0
    assert "stays: what telegram has set up on its platform: there is no token" in capsys.readouterr().out
    assert not home.exists()
    home.mkdir()
    (home / "config.toml").write_text(
        '[connectors.telegram]\nowners = [1]\napi_base = "http://127.0.0.1:9/bot"\n'
    )
    monkeypatch.setenv(TOKEN, "123456789:AAExampleExampleExampleExampleExam1")
    assert main(["uninstall", "--yes"]) == 0
    said = capsys.readouterr().out
    assert "stays: what telegram has set up on its platform: " in said
    assert f"stays: the environment variable {TOKEN}: take it out" in said
    assert not home.exists()


def test_a_config_that_cannot_be_read_stops_nobody(
    machine: FakeManager, capsys: pytest.CaptureFixture[str]
) -> None:
    home = lived_in(machine)
    (home / "config.toml").write_text("[nonsense")
    assert main(["uninstall", "--yes"]) == 0
    assert "the config file cannot be read" in capsys.readouterr().out
    assert not home.exists()


def test_what_cannot_be_removed_is_said_and_fails(
    machine: FakeManager, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process that does not end is not there for us to end: nothing below it is taken away."""
    home = lived_in(machine)
    lock = HomeLock(home)
    lock.acquire()
    patch = pytest.MonkeyPatch()
    patch.setattr("goodbot.cli.uninstall.machine._STOPS_SECONDS", 0.3)
    patch.setattr("os.kill", lambda pid, number: None)
    try:
        assert main(["uninstall", "--yes"]) == 1
    finally:
        patch.undo()
        lock.release()
    assert "does not stop: end it first" in capsys.readouterr().out
    assert (home / "goodbot.db").exists()


def test_what_children_of_a_killed_goodbot_had_goes_too(
    machine: FakeManager, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = lived_in(machine)
    place = tmp_path / "tmp"
    left = [place / f"{spawn._SCRATCH}{name}" for name in ("a", "b")]
    for directory in left:
        (directory / "cache").mkdir(parents=True)
    lives = Scratch(place, spawn._SCRATCH)
    assert main(["uninstall", "--dry-run", "--keep-data"]) == 0
    assert f"{left[0]} and 1 like it" in capsys.readouterr().out
    assert all(directory.exists() for directory in left)
    assert main(["uninstall", "--yes", "--keep-data"]) == 0
    assert list(place.iterdir()) == [lives.path], "another goodbot's child has it"
    assert home.exists()
    lives.remove()
    assert list(place.iterdir()) == []


def test_what_a_killed_backup_has_left_goes_too(
    machine: FakeManager, capsys: pytest.CaptureFixture[str]
) -> None:
    before = listing(machine.person)
    home = lived_in(machine)
    disk = machine.base / "disk"
    disk.mkdir()
    left = killed.backup(home, disk / "b.tar")
    assert main(["uninstall", "--dry-run"]) == 0
    assert str(left) in capsys.readouterr().out
    assert main(["uninstall", "--yes"]) == 0
    assert [*disk.iterdir()] == []
    assert listing(machine.person) == before


def test_a_running_goodbot_is_stopped_first(machine: FakeManager) -> None:
    need_backend()
    home = machine.person / ".goodbot"
    bot = Bot(home)
    bot.start()
    process = bot.process
    assert process is not None
    try:
        done = bot.call("uninstall", "--yes")
        assert done.returncode == 0, done.stderr
        assert f"the running goodbot (process {process.pid})" in done.stdout
        assert process.wait(patience(30)) == 0, "it ended by itself"
        assert not home.exists()
    finally:
        bot.stop(signal.SIGKILL)


async def test_what_a_connector_has_set_up_on_its_platform_goes_too(
    machine: FakeManager, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Against a local Telegram that has the bot's command menus."""
    require("telegram")
    from goodbot_connectors.telegram.menus import menus

    from tests.connectors.telegram.peer import people, serve

    with serve() as server:
        async with people(*server) as peer:
            for scope, language, commands in menus():
                listed = [{"command": name, "description": text} for name, text in commands]
                where = {"scope": {"type": scope}, "language_code": language}
                where = {name: value for name, value in where.items() if value}
                await peer.control("menu", commands=listed, **where)
            for name, value in peer.environ.items():
                monkeypatch.setenv(name, value)
            home = machine.person / ".goodbot"
            home.mkdir()
            (home / "config.toml").write_text(
                f'[connectors.telegram]\nowners = [1]\napi_base = "{peer.settings.api_base}"\n'
            )
            assert await asyncio.to_thread(main, ["uninstall", "--dry-run"]) == 0
            assert "telegram: the command menus of @the_good_bot" in capsys.readouterr().out
            assert await peer.calls("deleteMyCommands") == []
            assert await asyncio.to_thread(main, ["uninstall", "--yes"]) == 0
            assert len(await peer.calls("deleteMyCommands")) == len(list(menus()))
            assert not home.exists()
