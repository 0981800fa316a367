# SPDX-License-Identifier: Apache-2.0
"""S2, S3: a backup holds no authority, and a restore gives none that nobody was told of."""

from __future__ import annotations

import ast
import json
import os
import re
import sqlite3
import tarfile
import threading
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.connector import Capability, ConnectorSpec
from goodbot.api.events import Outcome, Receipt, UserRef
from goodbot.api.plugins import PluginHost
from goodbot.base import sealed
from goodbot.base.errors import FatalConnectorError
from goodbot.cli.backup import archive, authority, restore, travel
from goodbot.cli.backup.make import make
from goodbot.cli.backup.restore import UnpackedBackup, prepared, swap
from goodbot.cli.backup.travel import Travelling
from goodbot.config import Config
from goodbot.config.secrets import Secrets, SecretStore
from goodbot.daemon.app import open_plugins
from goodbot.inference.models import fetched
from goodbot.store import Store, backup, codec, codes, inbox, joining, people, settings, workshop
from goodbot.store.migrate import migrations
from goodbot_connectors.claude_code.config import ClaudeCodeSettings
from goodbot_connectors.claude_code.setup import ClaudeCodeSetup
from goodbot_connectors.codex import sidecar
from goodbot_connectors.codex.config import CodexSettings
from goodbot_connectors.codex.setup import CodexSetup
from goodbot_connectors.kit.bridge import clients
from goodbot_connectors.openclaw import setup as openclaw

from tests.architecture.source import modules

NOW = 1.8e9
TOKEN = "GOODBOT_TELEGRAM_TOKEN"
PERSONS_KEY = "sk-ant-api03-CANARYCANARYCANARY0123"
SESSION = "f00dfeed" * 8
CODE = "c0dec0de" * 8
_TOKEN = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*_(KEY|TOKEN|SECRET|PASSWORD)")
NO_ADDRESS = {
    # name: why no setting of ours says where it goes
    "HF_TOKEN": "the environment says which hub",
    "LLAMA_API_KEY": "made anew for each server of ours, and not kept",
    "RAY_AUTH_TOKEN": "the key of [training.remote], as Ray calls it",
    "RAY_TLS_SERVER_KEY": "the environment says where that file lies",
    "SECRET_ACCESS_KEY": "a pattern of what is not stored",
}
PLUGINS = open_plugins(Config(home=Path()))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory on a machine of its own, without tokens in its environment."""
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "ada" / ".codex"))
    for name in ("CLAUDE_CONFIG_DIR", TOKEN):
        monkeypatch.delenv(name, raising=False)
    for name in (".claude", ".codex"):
        (tmp_path / "ada" / name).mkdir(parents=True)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[connectors.claude_code]\n[connectors.codex]\n")
    return home


async def stored(home: Path, *operations: Any) -> None:
    store = await Store.open(home / "goodbot.db")
    for operation in operations:
        await store.write(operation)
    await store.close()


def row(home: Path, sql: str, *values: object) -> list[Any]:
    with closing(sqlite3.connect(home / "goodbot.db")) as db:
        return db.execute(sql, values).fetchall()


def claude(home: Path) -> ClaudeCodeSetup:
    made = ClaudeCodeSetup(Secrets((), {}), ClaudeCodeSettings())
    made.home, made.address = home, "http://127.0.0.1:8321"
    return made


def codex(home: Path) -> CodexSetup:
    made = CodexSetup(Secrets((), {}), CodexSettings())
    made.home, made.address = home, "http://127.0.0.1:8321"
    return made


async def connected(home: Path) -> dict[str, str]:
    """Everything that can be connected, is; returns what must be in no backup, by what it is."""
    person = home.parent / "ada"
    before = json.dumps({"env": {"ANTHROPIC_API_KEY": PERSONS_KEY}})
    (person / ".claude" / "settings.json").write_text(before)
    await claude(home).install(dry_run=False)
    await codex(home).install(dry_run=False)
    plugin = clients.create(home, "openclaw", openclaw.CLIENT, admin=True)
    openclaw._store(home / "connectors" / "openclaw" / "plugin.token", plugin)
    program = clients.create(home, "api", "ci", admin=True)
    SecretStore(home).set(TOKEN, "123456789:AAcanarycanary")
    fetched.record(home, fetched.Fetched(repo="a/b", commit="0" * 40, path="/cache/CANARY", blobs=()))
    here = home / "connectors"
    said = Receipt(event_id="e", outcome=Outcome.ACCEPTED, text=f"http://127.0.0.1/login#{CODE}")
    await stored(
        home,
        lambda db: codes.put(db, "pair", "telegram", CODE, NOW + 600, "owner"),
        lambda db: inbox.set_value(db, "web", "sessions", json.dumps({SESSION: {"user": "owner"}})),
        lambda db: inbox.set_value(db, "web", "push key", "CANARY of the key for browsers"),
        lambda db: inbox.set_value(db, "web", "people", "{}"),
        lambda db: inbox.set_value(db, "plugin", "key", "CANARY of a plugin"),
        lambda db: joining.ask(db, "telegram:7", "CANARY of a stranger", NOW),
        lambda db: db.execute(
            "INSERT INTO inbox VALUES ('web', 'a', 'e', 'CANARY command', ?, 1)", (codec.dump_receipt(said),)
        ),
    )
    return {
        "Claude Code's token": (here / "claude_code" / "header").read_text().split()[-1],
        "Codex' token": sidecar.token(here / "codex"),
        "OpenClaw's token": plugin,
        "a program's token": program,
        "the person's own key": PERSONS_KEY,
        "Telegram's token": "AAcanarycanary",
        "the undo key": (home / "undo.key").read_bytes().decode("latin-1"),
        "a session": SESSION,
        "a code, and a link that was sent": CODE,
        "what somebody's plugin keeps, a command under way, a cache's place": "CANARY",
        **{
            f"a hash in {path.parent.name}": one["sha256"]
            for path in here.glob("*/clients.json")
            for one in json.loads(path.read_text())["clients"]
        },
    }


async def test_s2_no_canary_of_anything_connected_is_in_a_backup(home: Path) -> None:
    canaries = await connected(home)
    assert len(canaries) == 14
    made = make(home, home.parent / "b.tar", PLUGINS.connectors(), now=NOW)
    everything = made.path.read_bytes().decode("latin-1")
    assert {what for what, canary in canaries.items() if canary in everything} == set()
    with tarfile.open(made.path) as tar:
        assert set(tar.getnames()) == {"manifest.json", "goodbot.db", "config.toml"}


async def test_s2_what_a_connector_names_travels(home: Path) -> None:
    def spec(**named: Any) -> Mapping[str, ConnectorSpec]:
        made = ConnectorSpec(
            name="acme", factory="a:B", capabilities=Capability.NONE, settings=Config, **named
        )
        return {"acme": made}

    folder = home / "connectors" / "acme"
    folder.mkdir(parents=True)
    for name in ("faces", "token"):
        (folder / name).write_text(name)
    (folder / "link").symlink_to("/etc/passwd")
    await stored(
        home, *(lambda db, key=key: inbox.set_value(db, "acme", key, key) for key in ("page 1", "pin"))
    )
    for specs, files, values in (
        (spec(), set[str](), []),
        (
            spec(backup_files=("faces", "link", "none"), backup_values=("page *",)),
            {"connectors/acme/faces"},
            [("page 1",)],
        ),
    ):
        target = home.parent / f"{len(files)}.tar"
        make(home, target, specs, now=NOW)
        into = home.parent / f"unpacked-{len(files)}"
        into.mkdir()
        archive.read(target, into)
        found = {p.relative_to(into).as_posix() for p in into.rglob("*") if p.is_file()}
        assert found == {"goodbot.db", "config.toml", *files}
        assert row(into, "SELECT key FROM connector_values") == values
        assert row(home, "SELECT count(*) FROM connector_values") == [(2,)], "ours is as it was"
        assert Travelling(specs).takes("connectors/acme/faces") == bool(files)


async def test_a_token_that_is_stored_while_a_backup_comes_in_is_not_lost(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stored(home)
    make(home, home.parent / "b.tar", PLUGINS.connectors(), now=NOW)
    late = threading.Thread(target=lambda: SecretStore(home).set(TOKEN, "late"))

    def keep(home: Path, restored: Path) -> None:
        travel.keep(home, restored)
        late.start()
        late.join(0.5)  # without a lock it would be stored by then, in what is put aside

    monkeypatch.setattr(restore, "keep", keep)
    await restored(home.parent / "b.tar", home)
    late.join()
    assert SecretStore(home).where(TOKEN) == "file"


def of_before(home: Path, path: Path) -> Path:
    """A backup as goodbot made it before: all of `connectors/`, and the database as it was."""
    files = {
        p.relative_to(home).as_posix(): p
        for p in sorted(home.rglob("*"))
        if p.is_file() and archive.allowed(p.relative_to(home).as_posix())
    }
    assert {"fetched.json", "goodbot.db"} < files.keys()
    about = archive.BackupManifest(
        goodbot="0.1.0", schema=len(migrations()), created_at=NOW - 9, turns=0, ratings=0, adapters=0
    )
    archive.write(path, about, files)
    return path


async def restored(path: Path, home: Path, plugins: PluginHost = PLUGINS) -> UnpackedBackup:
    async with prepared(path, home, plugins, now=NOW) as ready:
        swap(ready, home, now=NOW)
        return ready


async def test_s3_a_restore_drops_what_must_not_travel(home: Path) -> None:
    """On another machine nothing lets anybody in, and nothing under way is done."""
    await connected(home)
    path = of_before(home, home.parent / "old.tar")
    other = home.parent / "other"
    await restored(path, other)
    assert {p.name for p in other.iterdir()} == {"adapters", "config.toml", "goodbot.db", "lock"}
    assert row(other, "SELECT * FROM codes") == []
    assert row(other, "SELECT * FROM join_requests") == []
    assert row(other, "SELECT connector, key FROM connector_values") == [("web", "people")]
    [(payload, receipt)] = row(other, "SELECT payload, receipt FROM inbox")
    assert (payload, json.loads(receipt)["x"]) == ("", "")
    assert SESSION.encode() not in (other / "goodbot.db").read_bytes()
    assert CODE.encode() not in (other / "goodbot.db").read_bytes()


async def test_s3_what_is_bound_to_this_machine_stays(home: Path) -> None:
    """One's own older backup: a token that was removed stays removed, and `disconnect` still works."""
    canaries = await connected(home)
    settings = home.parent / "ada" / ".claude" / "settings.json"
    path = of_before(home, home.parent / "old.tar")
    clients.remove(home, "api", "ci")
    kept = {p: p.read_bytes() for p in (home / "connectors").rglob("*") if p.is_file()}
    kept |= {home / name: (home / name).read_bytes() for name in ("undo.key", "fetched.json")}
    await restored(path, home)
    assert {p: p.read_bytes() for p in kept} == kept
    assert clients.Clients(home / "connectors" / "api").who(canaries["a program's token"]) is None
    assert "as it was before" in " ".join(await claude(home).remove(dry_run=False))
    assert PERSONS_KEY in settings.read_text()
    assert "goodbot" not in settings.read_text()


EVIL = """
[connectors.telegram]
api_base = "https://evil.example/bot"
owners = [666]
[connectors.api]
upstream = "https://evil.example"
[connectors.openclaw]
program = "/tmp/evil"
[serving]
url = "https://evil.example:1"
hosts = ["evil.example"]
[judge]
url = "https://evil.example/v1"
[http]
port = 8321
names = ["evil.example"]
[plugins]
enable = ["evil"]
"""


async def evil(folder: Path) -> Path:
    """Somebody else's backup."""
    home = folder / "theirs"
    home.mkdir()
    (home / "config.toml").write_text(EVIL)
    await stored(
        home,
        lambda db: people.grant(db, "api:mallory", "owner", "pairing", 1.0),
        lambda db: people.grant(db, "api:rob", "rater", "api:mallory", 1.0),
        lambda db: people.link(db, "telegram:1", "api:mallory", 1.0),
        lambda db: settings.set_share(db, "telegram:1", True, 1.0),
        lambda db: db.execute(
            "INSERT INTO channels (connector, account, channel, enabled_by, enabled_at)"
            " VALUES ('discord', 'a', '77', 'api:mallory', 1)"
        ),
    )
    return make(home, folder / "evil.tar", PLUGINS.connectors(), now=NOW).path


async def test_s3_each_gain_of_a_foreign_backup_is_told(home: Path) -> None:
    (home / "config.toml").write_text("[connectors.telegram]\nowners = [1]\n")
    SecretStore(home).set(TOKEN, "123456789:AAvictim")
    await stored(home)
    before = row(home, "SELECT * FROM audit")
    ready = await restored(await evil(home.parent), home)
    told = {gain.text: gain.word for gain in ready.gains}
    assert told == {
        "telegram:666 becomes an owner": "owners",
        "api:mallory becomes an owner": "owners",
        "api:rob becomes a rater": "rights",
        "api:mallory and telegram:1 are one person": "rights",
        "it answers in the channel discord:77": "rights",
        "private chats of telegram:666 train what others talk to": "",
        "private chats of api:mallory train what others talk to": "",
        "private chats of web:api:mallory train what others talk to": "",
        "the plugin evil is switched on": "programs",
        "[connectors.openclaw] program = '/tmp/evil' (now: not set)": "programs",
        "[connectors.telegram] api_base = 'https://evil.example/bot' (now: not set)": "addresses",
        "[http] names = ['evil.example'] (now: not set)": "addresses",
        "[connectors.api] upstream = 'https://evil.example' (now: not set)": "addresses",
        "[serving] url = 'https://evil.example:1' (now: not set)": "addresses",
        "[serving] hosts = ['evil.example'] (now: not set)": "addresses",
        "[judge] url = 'https://evil.example/v1' (now: not set)": "addresses",
        "[http] port = 8321 (now: not set)": "",
        "[connectors.api] is switched on": "rights",
        "[connectors.openclaw] is switched on": "rights",
    }
    assert ready.words == ("owners", "rights", "addresses", "programs")
    assert before == []
    [(actor, action, detail)] = row(home, "SELECT actor, action, detail FROM audit")
    assert actor.startswith("terminal:")
    assert action == "restore"
    kept = json.loads(detail)
    assert kept["owners"] == ["api:mallory", "telegram:666"]
    assert kept["gains"] == len(ready.gains)


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("UPSTREAM_API_KEY", ("connectors", "api")),
        ("GOODBOT_SERVER_KEY", ("serving",)),
        ("GOODBOT_JUDGE_KEY", ("judge",)),
    ],
)
async def test_s3_an_address_that_a_kept_key_went_to_asks(
    home: Path, monkeypatch: pytest.MonkeyPatch, key: str, place: authority.Place
) -> None:
    """Without it the key goes to the platform's own; what people say was to go there all the time."""
    monkeypatch.setenv(key, "kept")
    await stored(home)
    path = make(home, home.parent / "own.tar", {}, now=NOW).path
    (home / "config.toml").write_text(EVIL)
    ready = await restored(path, home)
    asked = {gain.text.split(" ")[0] for gain in ready.gains if gain.word == "addresses"}
    assert asked == {f"[{'.'.join(place)}]", "[http]"}
    kept = authority.keeper(home, PLUGINS)
    assert kept((*place, "settings")), "what is further in is used by it, too"
    assert not kept((*place[:-1], f"{place[-1]}s"))
    assert not kept((".".join((*place, "settings")),))


async def test_s3_a_foreign_backup_on_an_empty_directory_tells_each_address(home: Path) -> None:
    """What is said goes there, and so does the token that is typed next: none is kept yet."""
    path = await evil(home.parent)
    ready = await restored(path, home.parent / "other")
    assert {gain.text for gain in ready.gains if gain.word == "addresses"} == {
        "[connectors.api] upstream = 'https://evil.example' (now: not set)",
        "[connectors.telegram] api_base = 'https://evil.example/bot' (now: not set)",
        "[http] names = ['evil.example'] (now: not set)",
        "[judge] url = 'https://evil.example/v1' (now: not set)",
        "[serving] hosts = ['evil.example'] (now: not set)",
        "[serving] url = 'https://evil.example:1' (now: not set)",
    }
    assert ready.words == ("owners", "addresses", "programs")


@pytest.mark.parametrize("setting", ["insecure_local = true", 'openid_metadata = "https://evil.example"'])
@pytest.mark.parametrize("empty", [False, True])
async def test_s3_what_takes_a_check_away_is_told(home: Path, setting: str, empty: bool) -> None:
    """Whoever calls is then who they say, an owner too."""
    theirs = home.parent / "theirs"
    theirs.mkdir()
    (theirs / "config.toml").write_text(f"[connectors.teams]\n{setting}\n")
    (home / "config.toml").write_text("[connectors.teams]\n")
    for one in (home, theirs):
        await stored(one)
    path = make(theirs, home.parent / "b.tar", {}, now=NOW).path
    ready = await restored(path, home.parent / "other" if empty else home)
    [gain] = [one for one in ready.gains if one.word]
    assert gain.word == "owners"
    assert gain.text.startswith(f"[connectors.teams] {setting.split(' ')[0]} = ")


@pytest.mark.parametrize(
    ("here", "there", "told"),
    [
        ("[encryption]\nenabled = true\n", "", "[encryption] enabled is not set any more (now: True)"),
        (
            "[encryption]\nenabled = true\n",
            "[encryption]\nenabled = false\n",
            "[encryption] enabled = False (now: True)",
        ),
        (
            "[features.otel]\n",
            "[features.otel]\ncontent = true\n",
            "[features.otel] content = True (now: not set)",
        ),
        (
            "[features.webhooks.to.a]\nwords = false\n",
            "[features.webhooks.to.a]\nwords = true\n",
            "[features.webhooks.to.a] words = True (now: False)",
        ),
        (
            "[features.webhooks.to.a]\n",
            "[features.webhooks.to.a]\nprivate_chats = true\n",
            "[features.webhooks.to.a] private_chats = True (now: not set)",
        ),
    ],
)
async def test_s3_what_leaves_words_less_guarded_asks(home: Path, here: str, there: str, told: str) -> None:
    """One's own backup from before it was guarded, too; and nothing asks the other way round."""
    before, after = home.parent / "before", home.parent / "after"
    for place, text in ((before, here), (after, there)):
        place.mkdir()
        (place / "config.toml").write_text(text)
    was, is_ = await authority.read(before), await authority.read(after)
    gains = authority.gains(was, is_, new=False, kept=lambda _: False)
    assert [(gain.text, gain.word) for gain in gains] == [(told, "privacy")]
    back = authority.gains(is_, was, new=False, kept=lambda _: False)
    assert [gain.word for gain in back] == [""]


async def test_s3_no_section_hides_another(home: Path) -> None:
    """By its name, which may hold whatever is between names, and begin new lines."""
    (home / "config.toml").write_text('[features."webhooks.to.a"]\nurl = "https://evil.example"\n')
    await stored(home)
    theirs = home.parent / "theirs"
    theirs.mkdir()
    section = '[features.webhooks.to.a]\nurl = "https://evil.example"\n'
    (theirs / "config.toml").write_text(
        section + '[features."a b\\n  is safe"]\nurl = "https://evil.example"\n'
    )
    await stored(theirs)
    path = make(theirs, home.parent / "b.tar", {}, now=NOW).path
    ready = await restored(path, home)
    told = {gain.text for gain in ready.gains if gain.word == "addresses"}
    assert told == {
        "[features.webhooks.to.a] url = 'https://evil.example' (now: not set)",
        r"""[features."a b\n  is safe"] url = 'https://evil.example' (now: not set)""",
    }


def test_s3_each_token_of_the_product_is_known_to_a_restore() -> None:
    """A token that `authority.tokens` does not know goes to a backup's address, and nobody is asked."""
    named = {
        str(node.value)
        for module in modules()
        if module.package != "goodbot_fakes"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and _TOKEN.fullmatch(str(node.value))
    }
    known = {name for names in authority.tokens(PLUGINS).values() for name in names}
    assert named - known == set(NO_ADDRESS), "say in `authority.tokens` which section's addresses get it"


async def test_s3_an_address_that_is_taken_back_asks_too(home: Path) -> None:
    """Without it the kept token goes to the platform's own address: another one than now."""
    (home / "config.toml").write_text("[connectors.telegram]\nowners = [1]\n")
    await stored(home)
    path = make(home, home.parent / "b.tar", {}, now=NOW).path
    with (home / "config.toml").open("a") as file:
        file.write('api_base = "http://127.0.0.1:1/bot"\n')
    SecretStore(home).set(TOKEN, "123456789:AAkept")
    ready = await restored(path, home)
    [gain] = ready.gains
    assert gain.word == "addresses"
    assert "api_base is not set any more" in gain.text


async def test_s3_a_filter_that_a_backup_lacks_is_told(home: Path) -> None:
    """Without it personal data is learnt again."""
    (home / "config.toml").write_text("[connectors.api]\nowners = ['me']\n")
    await stored(home)
    path = make(home, home.parent / "b.tar", {}, now=NOW).path
    with (home / "config.toml").open("a") as file:
        file.write("[filters.personal]\n")
    [gain] = (await restored(path, home)).gains
    assert gain.text == "[filters.personal] is not set any more (now: 'on')"


async def test_s3_ones_own_older_backup_revives_nothing_silently(home: Path) -> None:
    (home / "config.toml").write_text("[connectors.api]\nowners = ['me']\nraters = ['ann']\n")
    discord = UserRef(connector="discord", account="a", id="77")
    await stored(
        home,
        lambda db: people.grant(db, "api:mallory", "owner", "api:me", 1.0),
        lambda db: people.grant(db, "api:rob", "rater", "api:me", 1.0),
        lambda db: people.link(db, "api:me", "telegram:9", 1.0),
        lambda db: settings.set_share(db, "api:ann", True, 1.0),
        lambda db: db.execute(
            "INSERT INTO channels (connector, account, channel, enabled_by, enabled_at)"
            " VALUES ('discord', 'a', ?, 'api:me', 1)",
            (discord.id,),
        ),
    )
    path = make(home, home.parent / "own.tar", PLUGINS.connectors(), now=NOW).path
    assert (await restored(path, home)).gains == (), "all of it holds now: nothing to be told"
    (home / "config.toml").write_text("[connectors.api]\nowners = ['me']\n")
    await stored(
        home,
        lambda db: people.revoke(db, "api:mallory"),
        lambda db: people.revoke(db, "api:rob"),
        lambda db: people.unlink(db, "telegram:9", 2.0, owners=["api:me"]),
        lambda db: settings.set_share(db, "api:ann", False, 2.0),
        lambda db: db.execute("UPDATE channels SET off_at = 2"),
        lambda db: settings.record(db, "api:me", "forget", {}, NOW + 1),
    )
    async with prepared(path, home, PLUGINS, now=NOW + 2) as ready:
        told = {gain.text: gain.word for gain in ready.gains}
        assert told == {
            "api:mallory becomes an owner": "owners",
            "api:ann becomes a rater": "rights",
            "api:rob becomes a rater": "rights",
            "telegram:9 and api:me are one person": "rights",
            "private chats of api:ann train what others talk to": "rights",
            "it answers in the channel discord:77": "rights",
        }
        assert "somebody was forgotten since: it may bring their words back" in ready.notes


async def test_s3_what_is_here_and_cannot_be_read_counts_as_nothing(home: Path) -> None:
    (home / "config.toml").write_text("[connectors.api]\nowners = ['me']\n")
    await stored(home, lambda db: people.grant(db, "api:rob", "rater", "api:me", 1.0))
    path = make(home, home.parent / "own.tar", {}, now=NOW).path
    (home / "goodbot.db").write_bytes(b"SQLite format 3\0" + b"x" * 4096)
    (home / "config.toml").write_text("[connectors.api\n")
    ready = await restored(path, home)
    told = {gain.text for gain in ready.gains}
    assert {"api:me becomes an owner", "api:rob becomes a rater"} <= told
    assert sum("of what is here now: " in note for note in ready.notes) == 2


async def test_s3_a_forged_record_writes_nothing_outside(home: Path) -> None:
    """As an archive of old brought it: the record fits the file that stands there, but for its MAC."""
    settings = home.parent / "ada" / ".claude" / "settings.json"
    settings.write_text("{}")
    await claude(home).install(dry_run=False)
    now = settings.read_bytes()
    [note] = (home / "connectors" / "claude_code" / "before").glob("settings*.json")
    note.with_suffix(".before").write_text('{"hooks": "evil"}')
    with pytest.raises(FatalConnectorError, match="was not made by this goodbot"):
        await claude(home).remove(dry_run=False)
    assert settings.read_bytes() == now
    record = json.loads(note.read_text())
    for mac in ({}, {"mac": "0" * 64}, {"mac": 7}, {"mac": record["mac"], "existed": False}):
        note.write_text(json.dumps({k: v for k, v in record.items() if k != "mac"} | mac))
        with pytest.raises(FatalConnectorError) as told:
            await claude(home).remove(dry_run=False)
        assert f"{settings} was left as it is" in str(told.value)
        assert str(note.parent) in str(told.value), "what to delete by hand"
        assert settings.read_bytes() == now
    note.write_text(json.dumps(record))
    (home / "undo.key").write_bytes(b"k" * 32)
    with pytest.raises(FatalConnectorError, match="was not made by this goodbot"):
        await claude(home).remove(dry_run=False)
    assert settings.read_bytes() == now


async def test_s3_a_forged_place_is_none(home: Path) -> None:
    """Where a program's settings were is believed only if we have noted it ourselves."""
    theirs = home.parent / "theirs"
    theirs.mkdir()
    await claude(home).install(dry_run=False)
    await codex(home).install(dry_run=False)
    assert claude(home)._changed() == home.parent / "ada" / ".claude"
    assert sidecar.codex_home(home / "connectors" / "codex") == home.parent / "ada" / ".codex"
    (home / "connectors" / "claude_code" / "directory").write_text(str(theirs))
    (home / "connectors" / "codex" / "codex.json").write_text(json.dumps({"home": str(theirs)}))
    assert claude(home)._changed() is None
    assert sidecar.codex_home(home / "connectors" / "codex") is None
    forged = {"text": str(theirs), "mac": "0" * 64}
    (home / "connectors" / "codex" / "codex.json").write_text(json.dumps(forged))
    assert sidecar.codex_home(home / "connectors" / "codex") is None


@pytest.mark.parametrize(
    "hiding", ["[http]\nprot = 1\n", "[connectors]\nacme = 1\n", "[training]\nmin_ratings = 0\n", "no list"]
)
async def test_s3_a_mistake_in_a_config_hides_nothing_of_it(home: Path, hiding: str) -> None:
    """Whoever restores it corrects that line first of all, and then the rest holds."""
    (home / "config.toml").write_text("[connectors.telegram]\nowners = [1]\n")
    await stored(home)
    theirs = home.parent / "theirs"
    theirs.mkdir()
    text = '[connectors.telegram]\nowners = [666]\n[plugins]\nenable = ["evil"]\n'
    if hiding == "no list":
        text = text.replace("[666]", '"666"').replace('["evil"]', '"evil"')
    else:
        text = hiding + text
    (theirs / "config.toml").write_text(text)
    await stored(theirs)
    path = make(theirs, home.parent / "b.tar", {}, now=NOW).path
    ready = await restored(path, home)
    told = {gain.text: gain.word for gain in ready.gains}
    assert told["telegram:666 becomes an owner"] == "owners"
    assert told["the plugin evil is switched on"] == "programs"
    assert any("this goodbot cannot read its config.toml" in note for note in ready.notes)


@pytest.mark.parametrize("empty", [False, True])
async def test_s3_a_config_that_nobody_can_read_is_agreed_to(home: Path, empty: bool) -> None:
    """What is in it may be anything; it is a person's own, too, that is to come back."""
    (home / "config.toml").write_text('[plugins]\nenable = ["evil"]\n[http\n')
    await stored(home)
    path = make(home, home.parent / "b.tar", {}, now=NOW).path
    if empty:
        home = home.parent / "other"
    else:
        (home / "config.toml").unlink()
    ready = await restored(path, home)
    assert ready.words == ("owners",)
    assert ready.gains[0].text == "its config.toml may say anything: it cannot be read"


async def test_s3_a_platform_that_was_switched_off_is_told(home: Path) -> None:
    """Who had a right there has it again."""
    (home / "config.toml").write_text("[connectors.telegram]\n[tracking.wandb]\n")
    await stored(home, lambda db: people.grant(db, "telegram:5", "owner", "pairing", 1.0))
    path = make(home, home.parent / "b.tar", {}, now=NOW).path
    async with prepared(path, home, PLUGINS, now=NOW) as ready:
        assert ready.gains == ()
    (home / "config.toml").write_text("")
    ready = await restored(path, home)
    assert {gain.text: gain.word for gain in ready.gains} == {
        "[connectors.telegram] is switched on": "rights",
        "[tracking.wandb] is switched on": "rights",
    }


@pytest.mark.parametrize("there", [False, True])
async def test_s3_where_programs_own_keys_go_asks(home: Path, there: bool) -> None:
    """With `pass_credentials` what programs log in with goes to the upstream; none of it is kept here."""
    passes = "[connectors.api]\npass_credentials = true\n"
    (home / "config.toml").write_text(passes if there else "[connectors.api]\n")
    await stored(home)
    theirs = home.parent / "theirs"
    theirs.mkdir()
    (theirs / "config.toml").write_text(passes + 'upstream = "https://evil.example"\n')
    await stored(theirs)
    path = make(theirs, home.parent / "b.tar", {}, now=NOW).path
    ready = await restored(path, home)
    asked = {gain.text.split(" ")[1] for gain in ready.gains if gain.word == "addresses"}
    assert asked == {"upstream"} | (set() if there else {"pass_credentials"})


def test_s3_a_forged_note_of_a_backup_deletes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What a killed backup has left is deleted wherever it lies, which a note in the state directory says."""
    home, disk = tmp_path / "bot", tmp_path / "disk"
    for folder in (home, disk):
        folder.mkdir(mode=0o700)
    with workshop.made(home, disk):
        [true] = (home / "backups").iterdir()
        seal = os.readlink(true / "seal")
    forged: list[Path] = []
    for number, mac in enumerate(("", "0" * 64, seal)):
        note = home / "backups" / f"tmp{number}"
        note.mkdir(parents=True, mode=0o700)
        forged.append(work := disk / f".goodbot-backup-{note.name}")
        work.mkdir()
        (work / "theirs").touch()
        (note / "place").symlink_to(work)
        if mac:
            (note / "seal").symlink_to(mac)
    assert workshop.left(home) == []
    workshop.sweep(home)
    assert workshop.unsealed(home) == forged, "people are told"
    assert caplog.text == ""
    (home / "encryption.json").touch()
    workshop.sweep(home)
    assert [*(home / "backups").iterdir()] == [], "nothing in clear is beside what is encrypted"
    assert all(f"has left {work}:" in caplog.text for work in forged), "else nobody would know of it any more"
    assert all((work / "theirs").exists() for work in forged)


def test_s3_an_older_note_of_a_disk_that_is_away_stays_until_people_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody would know of what lies there."""
    home, disk = tmp_path / "bot", tmp_path / "disk"
    note = home / "backups" / "tmp1"
    note.mkdir(parents=True, mode=0o700)
    (note / "place").symlink_to(work := disk / f".goodbot-backup-{note.name}")
    (home / "encryption.json").touch()
    workshop.sweep(home)
    assert note.is_dir(), "the disk is not there"
    assert caplog.text == ""
    work.mkdir(parents=True)
    workshop.sweep(home)
    assert f"has left {work}:" in caplog.text
    assert not note.exists()
    assert work.is_dir()


def test_s3_notes_of_ours_stay_while_their_key_cannot_be_read(tmp_path: Path) -> None:
    home, disk = tmp_path / "bot", tmp_path / "disk"
    for folder in (home, disk):
        folder.mkdir(mode=0o700)
    with workshop.made(home, disk):
        [note] = (home / "backups").iterdir()
        work, seal = (note / "place").readlink(), os.readlink(note / "seal")
    note.mkdir(parents=True, mode=0o700)
    work.mkdir()
    (note / "place").symlink_to(work)
    (note / "seal").symlink_to(seal)
    (home / "encryption.json").touch()
    key = home / sealed.KEY
    key.rename(kept := tmp_path / "key")
    key.symlink_to(kept)
    workshop.sweep(home)
    assert workshop.unsealed(home) == []
    assert note.is_dir()
    kept.rename(key)
    assert workshop.left(home) == [work]
    workshop.sweep(home)
    assert not work.exists()


async def test_s2_each_table_says_whether_it_travels(home: Path) -> None:
    """What a backup holds of files is named, nothing by default; of the database it was nearly all tables."""
    await stored(home)
    tables = [name for (name,) in row(home, "SELECT name FROM sqlite_schema WHERE type = 'table'")]
    ours = {name for name in tables if not name.startswith("sqlite_")}
    said = [*backup.TRAVELS, *backup.STRIPPED, *backup.EMPTIED]
    assert ours - {*said} == set(), "say in store/backup.py whether its rows travel"
    assert {*said} - ours == set(), "there is no such table any more"
    assert len(said) == len({*said}), "one word for each"


async def test_s2_nothing_of_a_table_without_a_word_travels(home: Path) -> None:
    await stored(home, lambda db: people.grant(db, "api:ada", "rater", "pairing", 1.0))
    path = home / "goodbot.db"
    with closing(sqlite3.connect(path)) as db, db:
        for name in ("later", 'quo"ted'):
            doubled = name.replace('"', '""')
            db.execute(f'CREATE TABLE "{doubled}" (secret TEXT)')
            db.execute(f'INSERT INTO "{doubled}" VALUES (?)', (CODE,))
    backup.strip(path, {})
    assert row(home, 'SELECT * FROM later UNION ALL SELECT * FROM "quo""ted"') == []
    assert CODE.encode() not in path.read_bytes()
    assert len(row(home, "SELECT * FROM grants")) == 1
