# SPDX-License-Identifier: Apache-2.0
"""A backend that computes elsewhere: what its child gets, what is recorded, and what it would cost."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from goodbot import BackendSpec, hookimpl
from goodbot.api.registry import automatic_backends, choose_backend
from goodbot.api.setup import CheckState
from goodbot.base.errors import ConfigError
from goodbot.cli.doctor import data
from goodbot.config.remote import KEY, RemoteConfig
from goodbot.learning import worker_process
from goodbot.store import settings
from goodbot_fakes.tinker import FakeTinker

from tests.core.builders import SPEC, check, open_bot
from tests.core.cli.doctor.examining import examined, only
from tests.core.commands.test_dry_run import ask

FAR = dataclasses.replace(SPEC, name="far", remote=True)
HERE = RemoteConfig(url="http://127.0.0.1:9", price_read=1.0, price_trained=2.0)


class FarPlugin:
    @hookimpl
    def register_backend(self) -> BackendSpec:
        return FAR


def elsewhere(remote: RemoteConfig = HERE) -> dict[str, Any]:
    return {"extra": (FarPlugin(),), "backend": "far", "remote": remote}


def jobs_given(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The jobs that children get from now on, each with whether it may ask."""
    real, jobs = worker_process.train, list[dict[str, Any]]()

    async def train(backend: BackendSpec, job: Any, on_event: Any, **more: Any) -> Any:
        jobs.append({**job, "asks": "answer" in more})
        return await real(backend, job, on_event, **more)

    monkeypatch.setattr(worker_process, "train", train)
    return jobs


async def test_that_words_went_elsewhere_is_in_the_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = jobs_given(monkeypatch)
    async with open_bot(tmp_path, **elsewhere()) as bot:
        await bot.rated(8)
        verdict = await bot.train()
        assert verdict.state == "activated"
        entries, whole = await bot.store.read(settings.audit)
        assert whole
        [entry] = [one for one in entries if one.action == "train elsewhere"]
        assert json.loads(entry.detail) == {"run": verdict.run, "host": "127.0.0.1", "answers": 8}
        [job] = jobs
        assert job["asks"]
        assert job["remote"] == {"host": "127.0.0.1", "model": bot.app.model.name, "loss": "sum"}
        assert {(item["temperature"], item["unscored"]) for item in job["items"]} == {(1.0, True)}
        await check(bot)


async def test_a_bot_that_trains_here_says_nothing_of_it(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        assert (await bot.train()).state == "activated"
        entries, _ = await bot.store.read(settings.audit)
        assert "train elsewhere" not in [one.action for one in entries]
        assert (await ask(bot)).data["remote"] is None


async def test_what_it_would_cost_is_told_beforehand(tmp_path: Path) -> None:
    async with open_bot(tmp_path / "priced", **elsewhere()) as bot:
        await bot.rated(8)
        for more in ("--details", ""):
            result = await ask(bot, more=more)
            estimate, told = result.data["estimate"], result.data["remote"]
            part = estimate["train"] / (estimate["train"] + estimate["held_out"])
            assert told["tokens"] == pytest.approx(estimate["passes"] * estimate["tokens"] * part, abs=1)
            assert told["price"] == pytest.approx(3.0 * told["tokens"] / 1e6, rel=0.05)
            assert (
                f"127.0.0.1 gets the questions and rated answers: about {told['tokens']} tokens to read, "
                "and as many to train on. By the prices in the config that costs about 0.000"
            ) in result.text
    async with open_bot(tmp_path / "free", **elsewhere(RemoteConfig(url=HERE.url))) as bot:
        await bot.rated(8)
        assert "The config names no price." in (await ask(bot)).text


async def test_it_does_not_start_before_somebody_has_allowed_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nobody has allowed that"):
        async with open_bot(tmp_path, **elsewhere(RemoteConfig(url="https://tinker.example"))):
            pass


def test_it_is_never_taken_by_itself() -> None:
    assert automatic_backends({"far": FAR, "fake": SPEC}) == [SPEC]
    assert choose_backend({"far": FAR, "fake": SPEC}, "far") == FAR


class Uneven:
    """An engine that computes nothing: what is asked of it has as many numbers as it needs."""

    def create(self, rank: int, seed: int) -> Any:
        return (rank, seed)

    def logprobs(self, model: Any, data: list[dict[str, Any]]) -> list[list[float]]:
        return [[-1.0] * len(one["loss_fn_inputs"]["target_tokens"]["data"]) for one in data]

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"nobody trains here: {name}")


@pytest.mark.parametrize(
    ("key", "faults", "said"),
    [
        ("wrong", {}, "127.0.0.1 refuses the key: put yours into GOODBOT_TRAINING_KEY."),
        (
            "right",
            {"slots": 0},
            "127.0.0.1 refuses with status 400: Maximum number of LoRA adapters reached.",
        ),
        ("right", {"nan": True}, "The loss on 127.0.0.1 is not a finite number."),
    ],
)
async def test_what_the_server_has_done_is_told_by_status_and_the_doctor(
    key: str, faults: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From its answer by way of the child's own client to what people read; no rating is lost by it."""
    monkeypatch.setenv(KEY, key)
    engine: Any = Uneven()
    async with FakeTinker(engine, key="right") as server:
        for name, value in faults.items():
            setattr(server.faults, name, value)
        remote = RemoteConfig(url=server.url, model=server.base)
        async with open_bot(tmp_path, **elsewhere(remote)) as bot:
            bot.fake.set(train="asks")
            await bot.rated(8)
            assert (await bot.train()).state == "failed"
            assert f"last training: failed: {said}" in await bot.command("status")
            status = await bot.status()
            assert (status["ratings"], status["needed"]) == (8, 8), "they are all there again"
            told = await only(data.learning(examined(tmp_path / "bot", daemon=status)))
            assert (told.state, said in told.text) == (CheckState.WARN, True)
            await check(bot)
    told = await only(data.learning(examined(tmp_path / "bot")))
    assert (told.state, said in told.text) == (CheckState.WARN, True), "nor does it need a daemon"


async def test_what_was_sent_and_received_is_counted_in_the_version(tmp_path: Path) -> None:
    engine: Any = Uneven()
    async with FakeTinker(engine) as server:
        remote = RemoteConfig(url=server.url, model=server.base)
        async with open_bot(tmp_path, **elsewhere(remote)) as bot:
            bot.fake.set(train="asks")
            await bot.rated(8)
            assert (await bot.train()).state == "activated"
            metrics = (await bot.app.registry.row(1)).metrics
            told = await bot.command("adapters", "show 1 --details")
    assert metrics["bytes_sent"] >= sum(len(json.dumps(body)) for _, body in server.asked)
    assert metrics["bytes_received"] > 0
    assert f"bytes_sent: {metrics['bytes_sent']:g}" in told
