# SPDX-License-Identifier: Apache-2.0
"""What older goodbots kept as English sentences is kept as codes, and says the same."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from goodbot.api.sentences import because, clause_of, words
from goodbot.commands.audit import NOT_ALLOWED
from goodbot.store import Store, adapters, codec, comparisons, runs, scopes, settings
from goodbot.store.downgrade import step_back
from goodbot.store.migrate import APPLICATION_ID, migrations

from tests.core.store.golden import content

BEFORE = 25
TAINTED = {
    "somebody whose words or ratings it learnt from is forgotten": adapters.FORGOTTEN,
    "a rating that it was trained on has changed": runs.CHANGED,
    "a rating that it was trained on counts otherwise since two accounts are one person's": "kept_joined",
    "ratings that it was trained on do not count any more": "kept_uncounted",
    "`rollback all` has withdrawn all there were": "kept_begun_anew",
    "its training was refused": "kept_run_refused",
    "its training failed": "kept_run_failed",
    "its training was ended": "kept_run_superseded",
}
WAITS = {
    "the version that answers is pinned": adapters.PINNED,
    "the model is not running": adapters.AWAY,
    "the model server does not really serve it": adapters.UNSERVED,
    "it is tried on a share of the conversations": adapters.CANARY,
    "owners compare a few answers first; without a reply I switch to it after 24 hours": comparisons.COMPARED,
}
ENDED = {
    "it was cancelled": "kept_cancelled",
    "training was stopped": "kept_stopped",
    "the trainer reported no verdict": "kept_no_verdict",
    "the version that it continues has lost its trial": "kept_lost_trial",
    "owners found the version that it continues worse than the one before": "kept_found_worse",
}
OLDER = {
    "its owners are asked first whether it is better, for a day at most": comparisons.COMPARED,
    "its owners are asked first whether it is better, if it answers otherwise, for a day at most": (
        comparisons.COMPARED
    ),
    "owners compare a few answers first; without a reply I switch to it within a day": comparisons.COMPARED,
}
"""Sentences that were worded anew since: what they say now stands for both."""
FOREIGN = "CUDA is out of memory; it was cancelled"


def put(path: Path, version: int, *, tainted: str = "", waits: str = "", ending: str = "") -> None:
    """A version, its run and its trial, as the goodbot before wrote them."""
    with sqlite3.connect(path) as db:
        db.execute(
            "INSERT INTO runs (id, scope, state, parent, why, reason, backend, settings, last_event_seq,"
            " started_at, model) VALUES (?, 'default', 'superseded', 0, '', ?, 'fake', '{}', 0, 1.0, 'm')",
            (version, ending),
        )
        db.execute(
            "INSERT INTO adapters (version, scope, parent, run, directory, sha256, model, tainted, baseline,"
            " metrics, created_at, waits) VALUES (?, 'default', 0, ?, ?, 's', 'm', ?, '{}', '{}', 1.0, ?)",
            (version, version, f"v{version}", tainted, waits),
        )
        db.execute(
            "INSERT INTO canaries (version, scope, model, against, state, reason, began_at)"
            " VALUES (?, 'default', 'm', 0, 'lost', ?, 1.0)",
            (version, tainted),
        )
    db.close()


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """An empty database of the goodbot before."""
    path = tmp_path / "goodbot.db"
    with sqlite3.connect(path) as db:
        for _, sql in migrations()[:BEFORE]:
            db.executescript(sql)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {BEFORE}")
    db.close()
    return path


async def opened(path: Path) -> tuple[dict[int, adapters.AdapterRow], dict[int, runs.Run]]:
    store = await Store.open(path)
    try:
        rows = await store.read(lambda db: adapters.all_of(db, "default"))
        found = await store.read(lambda db: runs.last_runs(db, "default", 1000))
    finally:
        await store.close()
    return {row.version: row for row in rows}, {run.id: run for run in found}


async def test_each_sentence_of_a_version_becomes_its_code_and_says_the_same(before: Path) -> None:
    said = [*TAINTED.items(), *WAITS.items(), *OLDER.items(), (FOREIGN, FOREIGN)]
    for number, (sentence, _) in enumerate(said, start=1):
        tainted = "" if sentence in {**WAITS, **OLDER} else sentence
        put(before, number, tainted=tainted, waits="" if tainted else sentence)
    found, _ = await opened(before)
    for number, (sentence, code) in enumerate(said, start=1):
        row = found[number]
        assert row.tainted or row.waits
        assert (row.tainted or row.waits) == code
        assert sentence in OLDER or clause_of(code) == sentence
    kept = {row["version"]: row["reason"] for row in content(before)["canaries"]}
    for number, (sentence, _) in enumerate(said, start=1):
        if found[number].tainted:
            assert words(*codec.load_reasons(kept[number])) == sentence, "its trial ended for that"
            assert (kept[number] == FOREIGN) == (sentence == FOREIGN)


async def test_each_sentence_of_a_run_becomes_its_code_and_says_the_same(before: Path) -> None:
    said = [
        *ENDED.items(),
        ("somebody whose words or ratings it learnt from is forgotten", adapters.FORGOTTEN),
    ]
    for number, (sentence, _) in enumerate(said, start=1):
        put(before, number, ending=sentence)
    put(before, 99, ending=FOREIGN)
    _, found = await opened(before)
    for number, (sentence, code) in enumerate(said, start=1):
        assert (found[number].ending, found[number].reason) == ((because(code),), sentence)
    assert found[99].reason == FOREIGN


@pytest.mark.parametrize(("sentence", "code"), [*TAINTED.items(), *WAITS.items()])
async def test_a_sentence_within_a_reason_becomes_its_code(before: Path, sentence: str, code: str) -> None:
    within = (because("check_few", count=8), because("ended_parent", why=sentence))
    put(before, 1, ending=codec.dump_reasons(within))
    began = because("met", name="replaces", facts={"available": 8, "said": sentence})
    with sqlite3.connect(before) as db:
        db.execute("UPDATE runs SET why = ?", (codec.dump_reasons((began,)),))
    db.close()
    _, found = await opened(before)
    assert found[1].ending == (within[0], because("ended_parent", why=code))
    assert found[1].cause[0].facts["facts"] == {"available": 8, "said": code}
    assert (found[1].reason, found[1].why) == (words(*within), sentence)


@pytest.mark.parametrize("sentence", [*TAINTED, FOREIGN])
async def test_what_asks_for_a_replacement_says_why_by_code_and_back(before: Path, sentence: str) -> None:
    put(before, 1, tainted=sentence)
    with sqlite3.connect(before) as db:
        db.executemany("INSERT INTO switches VALUES (?, ?)", [("retrain m", sentence), ("paused", sentence)])
        db.execute("INSERT INTO pointers (scope, model, version, updated_at) VALUES ('default', 'o', 1, 1.0)")
    db.close()
    await opened(before)
    switches = {row["name"]: row["value"] for row in content(before)["switches"]}
    assert switches == {"retrain m": TAINTED.get(sentence, sentence), "paused": sentence}
    await _lost(before)
    await step_back(before.parent)
    after = content(before)
    names = {row["name"]: row["value"] for row in after["switches"]}
    assert names["retrain"] == sentence
    assert [name for name in names if name.startswith("lost")] == []
    assert after["adapters"][0]["tainted"] == sentence


async def _lost(path: Path) -> None:
    """Of two base models a version is lost; that of the other one must not be used besides."""
    store = await Store.open(path)
    try:
        for model in ("m", "o"):
            name = adapters.lost_switch("default", model)
            await store.write(lambda db, n=name: settings.set_switch(db, n, "1"))
        await store.write(lambda db: scopes.move_other_pointers(db, "default", "m"))
        kept = [await store.read(lambda db, n=f"lost {m}": settings.switch(db, n)) for m in ("m", "o")]
        assert kept == ["1", ""], "its pointer has moved"
    finally:
        await store.close()


def test_an_entry_of_the_trail_from_before_says_what_it_said() -> None:
    """Its hash holds it as it is."""
    assert clause_of("not on the allowlist") == clause_of(NOT_ALLOWED)
    assert clause_of("not on the allowlist", "de") == clause_of(NOT_ALLOWED, "de") != clause_of(NOT_ALLOWED)


def test_the_switches_of_each_scope_are_its_own() -> None:
    for named in (adapters.retrain_switch, adapters.lost_switch):
        assert named("default", "m").endswith(" m")
        assert named("two", "m") == f"{named('default', 'm')} two"


def test_the_two_ways_know_the_same_codes() -> None:
    there = dict(migrations())[BEFORE + 1]
    for code in {*TAINTED.values(), *WAITS.values(), *ENDED.values()}:
        assert f"'{code}'" in there
    assert json.loads(codec.dump_reasons((because("kept_cancelled"),))) == [["kept_cancelled", {}]]
