# SPDX-License-Identifier: Apache-2.0
"""The driver's own checks, with a stand-in for Ray: what is made on which cluster, and how it ends."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from goodbot_training.backends.ray import driver as drivers
from goodbot_training.backends.ray.driver import RayDriver

NEAR = "127.0.0.1"
FAR = "10.0.0.5"


class FakeRay:
    """As much of Ray's library as the driver asks of it."""

    def __init__(self) -> None:
        self.machines, self.processors = [NEAR], 2.0
        self.lines: list[tuple[Any, ...]] = []
        self.given: list[str] = []
        self.gone = self.slow = False
        self.limits: list[float | None] = []

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "NodeManagerAddress": one, "Resources": {"CPU": 1}} for one in self.machines]

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": self.processors}

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: "here")

    def remote(self, **options: Any) -> Callable[[type], Any]:
        def made(*given: Any) -> Any:
            self.lines.append(given)
            give = SimpleNamespace(remote=lambda order: self.given.append(order["what"]))
            return SimpleNamespace(give=give, result=SimpleNamespace(remote=lambda number: number))

        return lambda kind: SimpleNamespace(options=lambda **more: SimpleNamespace(remote=made))

    def get(self, promised: Any, timeout: float | None = None) -> Any:
        self.limits.append(timeout)
        if self.gone:
            raise RuntimeError("the actor died")
        return promised

    def wait(self, promised: list[Any], timeout: float) -> tuple[list[Any], list[Any]]:
        return ([], promised) if self.slow else (promised, [])


@pytest.fixture
def ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    far = FakeRay()
    module = ModuleType("ray")
    for name in ("nodes", "cluster_resources", "get_runtime_context", "remote", "get", "wait"):
        setattr(module, name, getattr(far, name))
    some = lambda **given: SimpleNamespace(**given)  # noqa: E731
    parts: dict[str, Any] = {
        "ray": {},
        "ray.train": {"FailureConfig": some, "RunConfig": some, "ScalingConfig": some},
        "ray.train.torch": {"TorchConfig": some, "TorchTrainer": lambda work, **given: some(**given)},
        "ray.util": {},
        "ray.util.scheduling_strategies": {"NodeAffinitySchedulingStrategy": lambda node, soft: node},
    }
    for name, inside in parts.items():
        one = module if name == "ray" else ModuleType(name)
        for what, value in inside.items():
            setattr(one, what, value)
        monkeypatch.setitem(sys.modules, name, one)
    monkeypatch.delenv("RAY_USE_TLS", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(drivers, "_END_SECONDS", 0.0)
    return far


def made(*named: str) -> RayDriver:
    told = {"address": "127.0.0.1:6379", "here": True, "machines": list(named), "workers": 2, "model": "m"}
    return RayDriver({**told, "hidden": ["/state"]})


def asked(driver: RayDriver, method: str, path: str, body: Any = None) -> dict[str, Any]:
    *_, last = driver.answer({"method": method, "path": path, "body": body})
    return {**json.loads(last.get("text") or "{}"), "status": last["status"]}


def test_nothing_is_made_on_a_cluster_with_a_machine_that_nobody_has_named(
    ray: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_USE_TLS", "1")
    ray.machines = [NEAR, FAR, "10.0.0.6"]
    driver = made(FAR)
    said = asked(driver, "POST", "begin")
    assert (said["status"], said["kind"]) == (500, "forbidden")
    assert "10.0.0.6" in said["reason"]
    assert not ray.lines
    assert driver.trainers.empty()
    machines = asked(driver, "GET", "plan")["machines"]
    assert [one["named"] for one in machines] == [True, True, False]


def test_a_named_machine_gets_nothing_in_clear_wherever_the_head_is(
    ray: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray.machines = [NEAR, FAR]
    driver = made(FAR)
    said = asked(driver, "POST", "begin")
    assert (said["status"], said["kind"]) == (500, "forbidden")
    assert "in clear: set RAY_USE_TLS=1" in said["reason"]
    assert not ray.lines
    monkeypatch.setenv("RAY_USE_TLS", "1")
    assert asked(driver, "POST", "begin")["status"] == 200
    assert ray.lines == [(b"", [FAR])]


def test_one_that_joins_later_gets_nothing_in_clear_either(ray: FakeRay) -> None:
    assert asked(made(FAR), "POST", "begin")["status"] == 200
    assert ray.lines == [(b"", [])]


def test_a_line_that_is_gone_is_followed_by_another(ray: FakeRay) -> None:
    driver = made()
    assert asked(driver, "POST", "begin")["status"] == 200
    ray.gone = True
    assert asked(driver, "POST", "step")["kind"] == "died"
    assert asked(driver, "POST", "begin")["status"] == 200
    assert len(ray.lines) == 2
    assert ray.given == ["step", "end"]
    assert None not in ray.limits, "nobody waits for ever"


def test_a_cluster_that_stays_too_small_is_waited_for_no_longer(
    ray: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drivers, "_LACK_SECONDS", 0.0)
    driver = made()
    assert asked(driver, "POST", "begin")["status"] == 200
    ray.slow, ray.processors = True, 1.0
    said = asked(driver, "POST", "step")
    assert (said["kind"], said["reason"]) == ("died", "The cluster has lost machines, and too few are left.")


def test_a_trainer_s_child_says_neither_which_model_nor_what_is_hidden_from_its_readers(ray: FakeRay) -> None:
    driver = made()
    asked(driver, "POST", "begin", {"rank": 4, "model": "/etc", "hidden": []})
    trainer, _ = driver.trainers.get_nowait()
    assert trainer.train_loop_config["told"] == {"rank": 4, "model": "m", "hidden": ["/state"]}
