# SPDX-License-Identifier: Apache-2.0
"""Whatever prints a state says what is: every state of versions and runs × every place that tells of it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from goodbot.api.adapters.manifest import AdapterManifest, publish
from goodbot.api.sentences import Condition, because, clause_of, counted, in_words, waits, words
from goodbot.api.texts import LANGUAGES, reworded
from goodbot.base.errors import AdapterError
from goodbot.base.suggest import version_name
from goodbot.base.worded import Worded
from goodbot.cli.doctor.data import _last_run
from goodbot.config import ServingConfig
from goodbot.conversation.notifications import can_be_begun, progress, states
from goodbot.learning.adapters import importing
from goodbot.store import adapters, codec, runs

from tests.core.builders import Bot, open_bot, until

ASKED = "owners compare a few answers first"


async def nothing(bot: Bot) -> None:
    """Nobody has taught it."""


async def refused(bot: Bot) -> None:
    bot.fake.set(train="refuse")
    await bot.rated(8)
    assert (await bot.train()).state == "refused"


async def failed(bot: Bot) -> None:
    bot.fake.set(train="nan")
    await bot.rated(8)
    assert (await bot.train()).state == "failed"


async def live(bot: Bot) -> None:
    await bot.rated(8)
    assert (await bot.train()).state == "activated"


async def off(bot: Bot) -> None:
    await live(bot)
    await bot.command("off")


async def paused_while_it_waits(bot: Bot) -> None:
    await bot.command("pause")  # before its answers can have been written
    await live(bot)


async def rolled_back(bot: Bot) -> None:
    await live(bot)
    await bot.rollback("base")


async def pinned(bot: Bot) -> None:
    await live(bot)
    await bot.command("adapters", "pin 1")
    await live(bot)


async def tainted(bot: Bot) -> None:
    """A rating of v1's was taken back, and nothing can replace it: the scheduler withdraws it."""
    await live(bot)
    turn = next(iter(await bot.trained_by(1)))
    await bot.command("pause")
    await bot.command("undo", turn)
    await bot.app.scheduler.withdraw_tainted()


async def tainted_and_answering(bot: Bot) -> None:
    await live(bot)
    await bot.command("pause")
    await bot.store.write(lambda db: adapters.mark(db, "default", {1}, "it was taken back"))


async def left_out(bot: Bot) -> None:
    await live(bot)
    await bot.command("rollback", "since 2020-01-01")
    await bot.command("rollback", "since 2020-01-01 yes")


async def begun_anew(bot: Bot) -> None:
    await live(bot)
    await brought_in(bot)
    await bot.command("reset")
    assert "v1, v2" in await bot.command("reset", "yes")


async def forgotten_while_it_waits(bot: Bot) -> None:
    await live(bot)
    assert (await bot.app.registry.rows())[0].waits
    await bot.command("forget", "me")
    await bot.command("forget", "me yes")
    await bot.app.eraser.sweep()


async def forgotten_while_it_is_tried(bot: Bot) -> None:
    await forgotten_while_it_waits(bot)


async def brought_in(bot: Bot) -> None:
    """One that somebody else has made, which nobody has let answer."""
    registry = bot.app.registry
    version = len(await registry.rows()) + 1
    folder = bot.fake.path / "given"
    folder.mkdir()
    source = Path(__file__).parent / "store/schema_2/adapters/v000002-8543a353eabbcc23"
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (folder / name).write_bytes((source / name).read_bytes())
    empty = AdapterManifest(
        version=version,
        parent=0,
        run=None,
        model=registry.model,
        files={},
        metrics={},
        ratings={},
        source="the PEFT directory given",
    ).on(registry.base())
    row = importing.record(folder, registry.root, replace(empty, version=version), 1.0)
    await bot.store.write(lambda db: adapters.add(db, row, registry.scope))


async def unserved(bot: Bot) -> None:
    await live(bot)
    await bot.store.write(lambda db: adapters.hold(db, 1, adapters.UNSERVED))
    await bot.store.write(lambda db: adapters.move_pointer(db, "default", bot.app.model.name, 1, 0, 2.0))
    await bot.app.registry.refresh()


FULL = "{place} has no room for another adapter: start it with {option} {count} or more, or unload some there"


async def test_a_server_without_room_is_told_in_the_reader_s_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Worded(FULL, place="SGLang at http://127.0.0.1:9", option="--max-loaded-loras", count=3)

    async def load(*_: object) -> None:
        raise AdapterError(full)

    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        monkeypatch.setattr(bot.app.server, "load", load)
        monkeypatch.setattr(bot.app.server, "trouble", lambda: full)
        assert (await bot.train()).state == "failed"
        ending = (await bot.last_run()).ending
        for language in LANGUAGES:
            assert reworded(full, language) in words(*ending, language=language)
        [told] = [one for one in (await bot.command("status")).splitlines() if one.startswith("SGLang")]
        assert told == full
        typed = bot.chat.typed("status")
        typed = replace(typed, user=replace(typed.user, language="de"))
        data = (await bot.app.commands.execute(typed)).data
        assert (data["server_trouble"], data["server_told"]) == (full, reworded(full, "de"))
        line = _last_run({"state": "failed", "reason": (await bot.last_run()).reason})
        assert full in line.text
    assert len({reworded(full, language) for language in LANGUAGES}) == len(LANGUAGES)


@dataclass(frozen=True)
class Case:
    """A way to a state, and what each place must say of it (`!` before: must not)."""

    make: Callable[[Bot], Awaitable[None]]
    status: tuple[str, ...]
    why: tuple[str, ...]
    listed: tuple[str, ...] = ()
    serving: dict[str, Any] = field(default_factory=dict)


HELD = {"ask": "before"}
CASES = (
    Case(nothing, ("base model answers", "!last training"), ("Nothing is trained yet", "0 of 8")),
    Case(
        refused,
        ("base model answers", "last training: refused: "),
        ("Nothing is trained yet", "The last training: refused: "),
    ),
    Case(
        failed,
        ("base model answers", "last training: failed: "),
        ("Nothing is trained yet", "The last training: failed: "),
    ),
    Case(live, ("v1 answers", "last training: v1 answers. Safety check: better"), ("v1 answers: base → v1",)),
    Case(
        off,
        ("paused: the base model answers", "last training: v1 answers after `resume`"),
        ("goodbot is paused: the base model answers",),
    ),
    Case(
        live,
        ("the base model answers", f"last training: v1 waits: {ASKED}", "v1 waits for what its owners"),
        ("The base model answers. v1 waits: ", ASKED, "It learnt from 6 rated answers", "; 2 more were kept"),
        (f"waits: {ASKED}",),
        HELD,
    ),
    Case(
        paused_while_it_waits,
        ("its answers are not written yet: `resume`", "!being written"),
        ("The base model answers. v1 waits: ",),
        (f"waits: {ASKED}",),
        HELD,
    ),
    Case(
        live,
        ("the base model answers", "last training: v1 waits: it is tried", "v1 is tried on 50%"),
        ("The base model answers. v1 waits: it is tried on a share",),
        ("waits: it is tried",),
        {"canary": 0.5},
    ),
    Case(
        rolled_back,
        ("the base model answers", "last training: v1 does not answer; `rollback 1`"),
        ("The base model answers. v1 does not answer; `rollback 1` lets it",),
    ),
    Case(
        pinned,
        ("v1 answers", "last training: v2 waits: the version that answers is pinned"),
        ("v1 answers: base → v1",),
        ("waits: the version that answers is pinned", "pinned"),
    ),
    Case(
        unserved,
        ("the base model answers", "last training: v1 waits: the model server", "v1 waits: the model"),
        ("The base model answers. v1 waits: the model server does not",),
        ("waits: the model server",),
    ),
    Case(
        tainted,
        ("the base model answers", "last training: v1 is not to be used: a rating"),
        ("The base model answers. v1 is not to be used: a rating",),
        ("not to be used: a rating",),
    ),
    Case(
        tainted_and_answering,
        ("v1 answers until it is replaced: it was taken back",),
        ("v1 answers: base → v1", "It answers until it is replaced: it was taken back"),
        ("not to be used: it was taken back",),
    ),
    Case(
        left_out,
        ("the base model answers", "last training: v1 is not to be used: ratings that it was trained"),
        ("The base model answers. v1 is not to be used: ratings",),
        ("do not count any more",),
    ),
    Case(
        begun_anew,
        ("the base model answers", "last training: v1 is not to be used: "),
        ("The base model answers. v2 is not to be used: `rollback all`",),
        ("not to be used: `rollback all`",),
    ),
    Case(
        forgotten_while_it_waits,
        ("the base model answers", "last training: v1 is not to be used: somebody", "files are removed"),
        ("v1 is not to be used: somebody whose words", "its files are removed"),
        ("not to be used: somebody", "files removed"),
        HELD,
    ),
    Case(
        forgotten_while_it_is_tried,
        ("the base model answers", "last training: v1 is not to be used: somebody", "!is tried"),
        ("v1 is not to be used: somebody whose words",),
        ("not to be used: somebody",),
        {"canary": 0.5},
    ),
    Case(
        brought_in,
        ("the base model answers", "!last training"),
        ("The base model answers. v1 does not answer; `rollback 1` lets it",),
        ("imported",),
    ),
)


@contextlib.asynccontextmanager
async def made(home: Path, case: Case) -> AsyncGenerator[Bot]:
    serving = ServingConfig(history=0, **{"ask": "never", **case.serving})
    async with open_bot(home, sections={"serving": serving}) as bot:
        await case.make(bot)
        yield bot


def lacks(text: str, wanted: tuple[str, ...]) -> list[str]:
    """What it should say and does not, or the other way round."""
    return [word for word in wanted if (word.lstrip("!") in text) is word.startswith("!")]


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{case.make.__name__} {' '.join(case.serving)}".strip() for case in CASES]
)
async def test_every_place_says_what_is(tmp_path: Path, case: Case) -> None:
    async with made(tmp_path, case) as bot:
        told = {
            "status": await bot.command("status"),
            "why": await bot.command("why"),
            "adapters": await bot.command("adapters"),
        }
        rows = await bot.app.registry.rows()
        active = await bot.app.registry.active()
        for row in rows:
            told[f"show {row.version}"] = await bot.command("adapters", f"show {row.version}")
        wanted = {"status": case.status, "why": case.why, "adapters": case.listed}
        missing = {place: lacks(told[place], words) for place, words in wanted.items()}
        assert not any(missing.values()), (missing, told)
        everything = "\n".join(told.values())
        assert "activated" not in everything
        assert "superseded" not in everything
        assert ("Nothing is trained yet" in everything) is (not rows)
        for line in everything.splitlines():
            gone = "not to be used" in line or "removed" in line
            assert not (gone and "wait" in line), line
            assert not ("pinned" in line and "removed" in line), line
        if not active or (await bot.status())["off"]:
            assert not re.search(r"v\d+ answers(?! after)", everything)
        for row in rows:
            if row.run:
                learnt = f"learnt from {len(await learnt_by(bot, row.run))} rated answers"
                assert learnt in told[f"show {row.version}"]
        found = await bot.store.read(lambda db: runs.last_runs(db, "default"))
        if found:
            line = _last_run({"state": found[0].state, "reason": found[0].reason})
            assert "activated" not in line.text
            assert "released" not in line.text


async def learnt_by(bot: Bot, run: int) -> list[Any]:
    query = "SELECT turn FROM run_items WHERE run = ? AND split = 'train' AND weight > 0"
    return await bot.store.read(lambda db: db.execute_fetchall(query, (run,)))


def test_every_state_of_a_run_has_its_words() -> None:
    """Those that the schema knows; without a version, with one, whatever has become of it."""
    run = runs.Run(
        id=1,
        state="",
        parent=0,
        cause=(),
        ending=in_words("better"),
        backend="",
        model="m",
        started_at=0.0,
        finished_at=1.0,
    )
    row = adapters.AdapterRow(
        version=1,
        parent=0,
        run=1,
        directory="",
        sha256="",
        model="m",
        tainted="",
        baseline={},
        metrics={},
        created_at=0.0,
    )
    now = states.Now(model="m", active=0)
    for state in ("running", "activated", "refused", "failed", "superseded", "released"):
        for rows in ([], [row], [replace(row, waits="w")], [replace(row, tainted="t", waits="w")]):
            told = states.of_run(replace(run, state=state), rows, now)
            assert state not in told or state in ("refused", "failed")
            assert "waits" not in told or "not to be used" not in told
    other = states.of_version(replace(row, model="n"), now)
    assert other == "belongs to n", "`rollback 1` would refuse it"
    assert states.of_version(row, replace(now, active=1)) == "answers"


async def test_what_is_withdrawn_comes_back_by_no_copy(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await live(bot)
        registry = bot.app.registry
        [first] = await registry.rows()
        copy = tmp_path / "copy"
        copy.mkdir()
        for name in ("adapter_config.json", "adapter_model.safetensors"):
            (copy / name).write_bytes((registry.root / first.directory / name).read_bytes())
        known = AdapterManifest(
            version=2,
            parent=0,
            run=None,
            model=registry.model,
            files={},
            metrics={},
            ratings={},
            source="a copy",
        ).on(registry.base())
        directory, found = publish(copy, registry.root, known)
        row = replace(
            first,
            version=2,
            run=None,
            directory=directory.name,
            sha256=found.files["adapter_model.safetensors"],
        )
        assert row.sha256 == first.sha256
        await bot.store.write(lambda db: adapters.add(db, row, registry.scope))
        turn = next(iter(await bot.trained_by(1)))
        await bot.command("pause")
        await bot.command("undo", turn)
        assert "v2 is not to be used" in await bot.command("rollback", "2")
        twin = await bot.store.read(lambda db: adapters.withdrawn_twin(db, "default", row.sha256))
        assert twin is not None
        assert twin[0] in (1, 2)


async def test_the_log_says_why_a_version_answers_no_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_bot(tmp_path) as bot:
        await live(bot)
        await brought_in(bot)
        with caplog.at_level("WARNING"):
            await bot.command("reset")
            assert [line for line in caplog.messages if "withdrawn" in line] == [], "it is asked back first"
            await bot.command("reset", "yes")
            await until(lambda: "withdrawn" in caplog.text)
        [row, _] = await bot.app.registry.rows()
        assert row.tainted
        told = [line for line in caplog.messages if "withdrawn" in line]
        assert told == [f"v1 was withdrawn, {version_name(0)} answers: {clause_of(row.tainted)}"], (
            "v2 never did"
        )


@pytest.mark.parametrize("stopped", ["pause", "off"])
async def test_a_receipt_says_of_a_full_round_what_it_waits_for(tmp_path: Path, stopped: str) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(7)
        await bot.command(stopped)
        answer = await bot.say("Hello?")
        said = (await bot.chat.press(answer, "good")).text
        assert said == "Good. 8 of 8 ratings: the next training can start once an owner types `/rl resume`."
        await bot.command("resume")
        again = await bot.say("And now?")
        said = (await bot.chat.press(again, "good")).text
        assert said == "Good. 8 of 8 ratings: the next training starts once an owner types `/rl train`."


async def test_the_receipt_of_the_last_rating_says_what_the_training_waits_for(tmp_path: Path) -> None:
    now = datetime.now()  # noqa: DTZ005  as the machine's own clock shows it
    until = f"{now + timedelta(hours=2):%H:%M}"
    quiet = f"{now - timedelta(hours=2):%H:%M}-{until}"
    async with open_bot(tmp_path, schedule="auto", quiet_hours=quiet) as bot:
        await bot.rated(7)
        answer = await bot.say("Hello?")
        await bot.app.scheduler.readiness()
        receipt = await bot.chat.press(answer, "good")
        assert receipt.text == f"Good. 8 of 8 ratings: training waits until {until}: these are quiet hours."
        told = counted(receipt.reasons, "de")
        assert told is not None
        assert (told["have"], told["need"]) == (8, 8)
        assert "Ruhezeit" in told["words"], "the pages say it, too"


async def test_who_may_train_is_offered_the_training_that_waits(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(6)
        answers = [await bot.say(text) for text in ("Hello?", "And now?", "And then?", "Why?")]
        assert (await bot.chat.press(answers[0], "good")).offer == (), "one is to come"
        [train] = (await bot.chat.press(answers[1], "good")).offer
        assert (train.action, train.label) == ("run:train", "Train now")
        told = await bot.chat.press(answers[2], "good", user="rater")
        assert " ratings: the next training starts once " in told.text
        assert told.offer == (), "it is for owners"
        assert (await bot.react(answers[3], "👍")).offer == (), "nothing answers a reaction"
        await bot.command("pause")
        again = await bot.chat.press(answers[0], "star:5")
        assert again.offer == (), "a pause ends first"
        await bot.command("resume")
        begun = await bot.chat.press(answers[3], train.action)
        assert begun.text.startswith("Training starts with")


async def test_what_is_in_the_way_is_known_before_the_round_is_full(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for count, known in ((0, None), (3, None), (4, "manual"), (7, "manual")):
            have = (await bot.app.scheduler.standing()).available
            if count > have:
                await bot.rated(count - have)
            readiness = await bot.app.scheduler.readiness()
            assert readiness.condition.name == "ratings"
            held = bot.app.scheduler.held
            assert (held.name if held else None) == known, count


@pytest.mark.parametrize(
    ("held", "told"),
    [
        (None, "8 of 8 ratings: the next training can start."),
        (waits("paused"), "8 of 8 ratings: the next training can start."),
        (
            waits("processors", load=0.99, limit=0.5),
            "8 of 8 ratings: training waits until other programs use 50% of the processors or less"
            " (now 99%).",
        ),
        (
            Condition(name="unsuccessful", facts={"wanted": 3}, private={"state": "failed", "ending": ()}),
            "8 of 8 ratings: the last training gave no new version, so the next one waits for more ratings.",
        ),
        (
            waits("server", said="this server takes no adapters"),
            "8 of 8 ratings: this server takes no adapters.",
        ),
    ],
)
def test_a_full_round_says_why_it_waits_in_every_language(held: Condition | None, told: str) -> None:
    reason = progress(8, 8, held=held)
    assert words(reason) == told
    begins = bool(held and held.name in ("processors", "unsuccessful"))
    assert can_be_begun([because("good"), reason]) is begins, "where an owner may say so"
    [kept] = codec.load_reasons(codec.dump_reasons((reason,)))
    for language in LANGUAGES:
        assert words(kept, language=language) == words(reason, language=language) != ""
        found = counted([kept], language)
        assert found is not None
        assert found["need"] == 8


async def test_of_one_that_is_not_to_be_used_nobody_is_told_that_it_will_answer(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        await bot.command("off")
        assert "answers after `resume`" in await bot.command("adapters", "show 1")
        await bot.store.write(
            lambda db: db.execute("UPDATE adapters SET tainted = 'of a test' WHERE version = 1")
        )
        said = await bot.command("adapters", "show 1")
        assert "not to be used: of a test" in said
        assert "answers after `resume`" not in said


async def test_status_reads_the_versions_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_bot(tmp_path) as bot:
        await unserved(bot)
        read = AsyncMock(side_effect=bot.app.registry.rows)
        monkeypatch.setattr(bot.app.registry, "rows", read)
        counts: list[int] = []
        for _ in range(3):  # what tidies up behind may read them, too, at any moment
            read.reset_mock()
            assert "v1 waits" in await bot.command("status")
            counts.append(read.await_count)
        assert min(counts) == 1
