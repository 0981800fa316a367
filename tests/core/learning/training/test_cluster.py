# SPDX-License-Identifier: Apache-2.0
"""A cluster that computes a training's steps: who may be asked, by which child, and what a dry run says."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from goodbot import BackendSpec, hookimpl
from goodbot.base import cage
from goodbot.base.errors import ConfigError, TrainingError
from goodbot.config import Config, TrainingConfig
from goodbot.config.remote import RemoteConfig
from goodbot.learning import worker_process
from goodbot.learning.training import cluster
from goodbot.learning.training.cluster import Cluster
from goodbot.learning.training.remote import allowed
from goodbot.store import settings

from tests.core.builders import SPEC, check, open_bot
from tests.core.commands.test_dry_run import ask
from tests.core.learning.training.test_remote import jobs_given
from tests.support import patience

MANY = dataclasses.replace(SPEC, name="many", remote=True, driver="goodbot_fakes.cluster")
HERE = RemoteConfig(url="ray://127.0.0.2:6379", hosts=("localhost", "nobody.invalid"), workers=3)


class ManyPlugin:
    @hookimpl
    def register_backend(self) -> BackendSpec:
        return MANY


def elsewhere(remote: RemoteConfig = HERE) -> dict[str, Any]:
    return {"extra": (ManyPlugin(),), "backend": "many", "remote": remote}


def config(tmp_path: Path, remote: RemoteConfig) -> Config:
    return Config(home=tmp_path, training=TrainingConfig(backend="many", remote=remote))


def named(tmp_path: Path, remote: RemoteConfig = HERE) -> Cluster:
    found = allowed(config(tmp_path, remote), MANY)
    assert isinstance(found, Cluster)
    return found


@pytest.mark.parametrize(
    ("remote", "said"),
    [
        ({}, r"set url under \[training.remote\]"),
        ({"url": "https://10.0.0.5:6379"}, "url must begin with ray://"),
        ({"url": "10.0.0.5:6379"}, "url must begin with ray://"),
        ({"url": "ray://127.0.0.2"}, "url must have a port"),
        ({"url": "ray://127.0.0.2:0"}, "url must have a port"),
        ({"url": "ray://me:pw@127.0.0.2:1"}, "GOODBOT_TRAINING_KEY"),
        ({"url": "ray://:6379"}, "url has no host"),
        ({"url": "ray://10.0.0.5:6379"}, r"would go to 10\.0\.0\.5, and nobody has allowed that"),
        ({"url": "ray://head.example:6379", "hosts": ("example",)}, "nobody has allowed that"),
        ({"url": "ray://10.0.0.5:6379", "hosts": ("10.0.0.5",)}, "set RAY_USE_TLS=1 and Ray's certificates"),
    ],
)
def test_nothing_goes_where_no_owner_has_said_so_by_name(
    remote: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_USE_TLS", raising=False)
    with pytest.raises(ConfigError, match=said):
        allowed(config(tmp_path, RemoteConfig(**remote)), MANY)


def test_a_cluster_that_is_named_may_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_USE_TLS", "1")
    monkeypatch.setenv("GOODBOT_TRAINING_KEY", "ray-token")
    found = named(tmp_path, RemoteConfig(url="ray://head.example:6379/", hosts=("head.example",)))
    assert (found.url, found.host, found.key.reveal()) == (
        "ray://head.example:6379",
        "head.example",
        "ray-token",
    )
    assert "ray-token" not in repr(found)
    assert named(tmp_path, RemoteConfig(url="ray://127.0.0.2:6379")).host == "127.0.0.2"


async def lines(far: Cluster, **asked: Any) -> list[dict[str, Any]]:
    return [line async for line in far.answer({"method": "POST", "path": "step", **asked})]


async def test_a_child_of_its_own_answers_and_gets_no_more_than_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOODBOT_TRAINING_KEY", "ray-token")
    found = named(tmp_path)
    found.model = tmp_path / "model"
    monkeypatch.setattr(cage, "hidden", {"/state", "/another"})
    try:
        [said] = await lines(found, body={"a": 1}, id=7, event="ask")
        told = json.loads(said["text"])
        assert told["asked"] == {"method": "POST", "path": "step", "body": {"a": 1}}
        assert told["told"] == {
            "address": "127.0.0.2:6379",
            "here": True,
            "machines": told["told"]["machines"],
            "workers": 3,
            "model": str(tmp_path / "model"),
            "hidden": ["/another", "/state"],
        }
        assert "127.0.0.1" in told["told"]["machines"], "names are told as numbers"
        assert told["environ"] == {
            "RAY_AUTH_TOKEN": "ray-token",
            "RAY_AUTH_MODE": "token",
            "GOODBOT_TRAINING_KEY": None,
        }
        *parts, last = await lines(found, method="GET", path="state")
        assert b"".join(base64.b64decode(part["part"]) for part in parts) == b"one two"
        assert last["status"] == 200
        assert [one["address"] for one in await found.machines()] == ["127.0.0.2", "127.0.0.3"]
    finally:
        await found.close()


async def test_a_child_that_ends_is_a_sentence_and_another_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_FAULT", "dies")
    found = named(tmp_path)
    said = (await lines(found))[-1]
    assert said["error"] == "the child that speaks to 127.0.0.2 has ended: the cluster is on fire"
    monkeypatch.delenv("RAY_FAULT")
    assert (await lines(found))[-1]["status"] == 200
    await found.close()
    monkeypatch.setenv("RAY_FAULT", "nobody")
    with pytest.raises(TrainingError, match=r"No Ray cluster answers at 127\.0\.0\.2:6379"):
        await found.machines()
    await found.close()


async def test_a_child_that_reads_nothing_is_waited_for_no_longer_than_one_that_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_FAULT", "deaf")
    monkeypatch.setattr(cluster, "_SILENT_SECONDS", 0.6)
    monkeypatch.setattr(cluster, "_END_SECONDS", 0.1)
    found = named(tmp_path)
    async with asyncio.timeout(patience(30)):
        said = await lines(found, body="x" * (1 << 20))
    assert [one["error"] for one in said] == ["127.0.0.2 did not answer within 0.01 minutes"]
    monkeypatch.delenv("RAY_FAULT")
    monkeypatch.setattr(cluster, "_SILENT_SECONDS", patience(60))
    assert (await lines(found))[-1]["status"] == 200, "another has taken its place"
    await found.close()


async def test_an_answer_without_an_end_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "MAX_WEIGHTS", 30)
    found = named(tmp_path)
    said = await lines(found, method="GET", path="state")
    why = "127.0.0.2 does not come to an end with its answer"
    assert (said[-1]["error"], said[-1]["forbidden"]) == (why, True)
    assert len(said) == 2


async def test_what_the_child_has_said_is_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RAY_FAULT", "dies")
    found = named(tmp_path)
    await lines(found)
    assert "the child that speaks to 127.0.0.2 said at last: the cluster is on fire" in caplog.text


async def test_each_of_a_runs_children_has_a_driver_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, said = worker_process.train, list[str]()

    async def train(backend: BackendSpec, job: Any, on_event: Any, **more: Any) -> Any:
        answer = more["answer"]({"method": "GET", "path": "state"})
        said.append(str(await anext(answer)))
        if len(said) == 1:  # it dies before it has read the rest
            raise TrainingError("killed", kind="killed")
        said.extend([str(line) async for line in answer])
        return await real(backend, job, on_event, **more)

    monkeypatch.setattr(worker_process, "train", train)
    async with open_bot(tmp_path, **elsewhere()) as bot:
        await bot.rated(8)
        assert (await bot.train()).state == "activated"
    first, second = (str({"part": base64.b64encode(part).decode()}) for part in (b"one ", b"two"))
    assert said == [first, first, second, str({"status": 200})]


async def test_that_words_went_there_is_in_the_audit_and_the_child_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, jobs = list[str](), jobs_given(monkeypatch)

    async def close(self: Cluster) -> None:
        closed.append(str(self.model))

    monkeypatch.setattr(Cluster, "close", close)
    async with open_bot(tmp_path, **elsewhere()) as bot:
        await bot.rated(8)
        verdict = await bot.train()
        assert verdict.state == "activated"
        entries, _ = await bot.store.read(settings.audit)
        [entry] = [one for one in entries if one.action == "train elsewhere"]
        where = {"host": "127.0.0.2", "hosts": list(HERE.hosts)}
        assert json.loads(entry.detail) == {"run": verdict.run, **where, "answers": 8}
        [job] = jobs
        assert job["asks"]
        assert job["remote"] == {"host": "127.0.0.2", "model": bot.app.model.name}
        assert {item["temperature"] for item in job["items"]} != {1.0}, "it reads them as they were drawn"
        assert closed == [str(bot.app.model.path)]
        await check(bot)


async def test_a_dry_run_shows_the_plan_for_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_bot(tmp_path, **elsewhere()) as bot:
        await bot.rated(8)
        result = await ask(bot)
        told = result.data["remote"]
        assert (told["workers"], told["rows"]) == (3, (1, 1))
        assert "These machines of the cluster get them, too: localhost, nobody.invalid." in result.text
        assert "does not name" not in result.text
        assert "127.0.0.2 gets the questions and rated answers" in result.text
        assert (
            "The cluster has 127.0.0.2 (processors: 1, GPUs: 0), 127.0.0.3 (processors: 4, GPUs: 1)."
            in result.text
        )
        assert "Workers: 3. Answers of a step for each: " in result.text
        monkeypatch.setenv("RAY_FAULT", "other")
        other = (await ask(bot, more="")).text
        assert "`hosts` under `[training.remote]` does not name 127.0.0.3: nothing is sent" in other
        monkeypatch.setenv("RAY_FAULT", "nobody")
        again = (await ask(bot, more="")).text
        assert "The cluster cannot be asked: No Ray cluster answers at 127.0.0.2:6379." in again


@pytest.mark.parametrize(("batch", "workers", "rows"), [(8, 2, (4, 4)), (8, 3, (2, 3)), (2, 3, (0, 1))])
def test_rows_of_a_step(batch: int, workers: int, rows: tuple[int, int]) -> None:
    assert cluster.rows(batch, workers) == rows
