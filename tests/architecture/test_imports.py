# SPDX-License-Identifier: Apache-2.0
"""What is imported of others, and nothing heavy before it is needed; test_rooms.py: what of our own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source import Module, entry_points, modules

FRAMEWORKS = {
    "torch",
    "mlx",
    "mlx_lm",
    "transformers",
    "peft",
    "safetensors",
    "tokenizers",
    "jax",
    "tensorflow",
    "ray",
    "vllm",
    "sglang",
}
CHAT = {"discord", "slack_bolt", "slack_sdk", "telegram", "botbuilder", "nio"}
TRACKERS = {"tensorboard", "wandb", "trackio"}
HEAVY = {*FRAMEWORKS, *CHAT, *TRACKERS, "aiohttp", "httpx", "numpy", "opentelemetry", "pytest"}
CORE_MAY = {"aiohttp", "aiosqlite", "pluggy", "shtab", "tomlkit"}


def offences(package: str, banned: set[str], *, but: str = "\0") -> list[str]:
    return [
        f"{module.path}:{line} imports {name}"
        for module in modules()
        if module.package == package and not module.name.startswith(but)
        for name, line in module.imports()
        if name.partition(".")[0] in banned
    ]


def test_the_core_knows_no_platform_and_no_framework() -> None:
    assert offences("goodbot", FRAMEWORKS | CHAT | TRACKERS) == []


def test_the_product_imports_no_test_suite_and_no_fake() -> None:
    assert offences("goodbot", {"pytest", "hypothesis"}, but="goodbot.testing") == []
    found = [
        f"{module.path}:{line}"
        for module in modules()
        if not module.name.startswith(("goodbot.testing", "goodbot_fakes"))
        for name, line in module.imports()
        if name.startswith(("goodbot.testing", "goodbot_fakes"))
    ]
    assert found == []


def test_the_suites_that_ship_import_no_fake() -> None:
    """The fakes are a distribution of their own."""
    assert offences("goodbot", {"goodbot_fakes"}) == []


def test_the_core_needs_only_what_it_declares() -> None:
    """Everything else that it imports is its own or the standard library's."""

    def foreign(module: Module) -> set[str]:
        names = {name.partition(".")[0] for name, _ in module.imports()}
        return names - sys.stdlib_module_names - {"goodbot"}

    # The type of an array is named for type checkers only; a feature's library comes with its extra.
    allowed = {
        "goodbot.api.step": {"numpy"},
        **{f"goodbot.features.otel.{name}": {"opentelemetry"} for name in ("sending", "spans")},
    }
    extra = {
        module.name: names
        for module in modules()
        if module.package == "goodbot" and not module.name.startswith("goodbot.testing")
        if (names := foreign(module) - CORE_MAY - allowed.get(module.name, set()))
    }
    assert extra == {}


def test_each_framework_has_one_home() -> None:
    """A backend's framework is imported in its folder; the tiny model's maker trains with torch."""
    homes = {
        "torch": ("goodbot_training.backends.torch", "goodbot_training.tiny"),
        "ray": ("goodbot_training.backends.ray",),
        "mlx": ("goodbot_training.backends.mlx",),
        "mlx_lm": ("goodbot_training.backends.mlx",),
        "opentelemetry": ("goodbot.features.otel",),
        **{name: (f"goodbot_training.tracking.{name}",) for name in TRACKERS},
    }
    found = [
        f"{module.path}:{line} imports {name}"
        for module in modules()
        for name, line in module.imports()
        if (top := name.partition(".")[0]) in homes and not module.name.startswith(homes[top])
    ]
    assert found == []


def loaded(code: str) -> set[str]:
    """The top-level modules that are in memory after `code` has run in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys, json; print(json.dumps([*sys.modules]))"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


@pytest.mark.parametrize("plugin", sorted(entry_points().values()))
def test_a_plugin_is_light_until_it_is_used(plugin: str) -> None:
    assert loaded(f"import {plugin}") & HEAVY == set()


def test_a_child_imports_nothing_heavy_but_arrays_before_its_backend() -> None:
    """What trains, plans or answers pays for its own framework, and for no other one."""
    assert loaded("import goodbot_training.process.worker") & HEAVY <= {"numpy", "safetensors"}


def test_importing_goodbot_is_light() -> None:
    assert loaded("import goodbot") & {*HEAVY, "aiosqlite", "sqlite3", "ssl"} == set()


def test_asking_the_daemon_imports_nothing_heavy(tmp_path: Path) -> None:
    """`goodbot status` with a daemon running: the standard library and a socket."""
    code = f"""
import json, os, socket, threading
from pathlib import Path
home = Path({str(tmp_path)!r})
os.chdir(home)  # a Unix socket's path is short
with socket.socket(socket.AF_UNIX) as server:
    server.bind("control.sock")
    server.listen()
    def daemon():
        connection, _ = server.accept()
        with connection, connection.makefile("rwb") as stream:
            request = json.loads(stream.readline())
            assert (request["command"], request["args"]) == ("status", [])
            stream.write(b'{{"ok": true, "text": "all is well", "data": {{}}}}\\n')
    thread = threading.Thread(target=daemon)
    thread.start()
    from goodbot.cli import main
    assert main(["--home", str(home), "status"]) == 0
    thread.join()
"""
    names = loaded(code)
    assert names & {*HEAVY, "pluggy", "aiosqlite", "sqlite3", "asyncio"} == set()
