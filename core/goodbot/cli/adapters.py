# SPDX-License-Identifier: Apache-2.0
"""`goodbot adapters import PATH` and `export VERSION`: files of adapters from and to elsewhere.

Both work beside a running daemon, which is only asked what a version is, or told what to record.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from goodbot import config
from goodbot.api.adapters import manifest
from goodbot.api.model import ResolvedModel
from goodbot.api.progress import progress_line
from goodbot.api.sentences import version as named
from goodbot.api.texts import pauses, reworded
from goodbot.api.texts.terminal import here, phrase, sentences
from goodbot.base.clock import SystemClock
from goodbot.base.errors import UsageError
from goodbot.base.printing import print_answer
from goodbot.base.worded_parts import reasons_in
from goodbot.cli import client
from goodbot.daemon.app import open_plugins
from goodbot.inference.models import resolve
from goodbot.learning.adapters import copies, exporting, importing


def bring_in(arguments: argparse.Namespace) -> int:
    """Check it here, let it be recorded, and with `--activate` let it answer."""
    return asyncio.run(_bring_in(arguments))


async def _bring_in(arguments: argparse.Namespace) -> int:
    source: Path = arguments.path.expanduser()
    home: Path = arguments.home
    if not source.exists():
        raise UsageError(phrase("adapters_not_there", path=source))
    model = _model(arguments)
    with progress_line(quiet=arguments.json) as show:
        async with importing.prepared(source, home, model, _told(show, "reading")) as made:
            answer = await _ask(arguments, "adapters", ["import", made.name])
    version = int(answer["data"]["version"])
    texts = [*(phrase("adapters_note", note=note) for note in made.notes), answer["text"]]
    live = False
    if arguments.activate:
        answer_ = await _ask(arguments, "rollback", [str(version)])
        live = answer_["data"]["version"] == version
        texts.append(answer_["text"] if live else "")
    data = {**answer["data"], "notes": list(made.notes), "active": live}
    print_answer({"text": "\n".join(texts), "data": data}, as_json=arguments.json)
    return 0


def export(arguments: argparse.Namespace) -> int:
    """Write one version to `--out`, read it back, say what it is for."""
    return asyncio.run(_export(arguments))


async def _export(arguments: argparse.Namespace) -> int:
    kind: str = "fused" if arguments.fused else arguments.format
    out: Path = arguments.out.expanduser()
    model = _model(arguments)
    path: Path | None = None
    known: manifest.AdapterManifest | None = None
    if arguments.version != "base":
        data = (await _ask(arguments, "adapters", ["show", arguments.version]))["data"]
        if data["model"] != model.name:
            version = f"v{data['version']}"
            raise UsageError(phrase("adapters_other_model", version=version, model=data["model"]))
        root = arguments.home / "adapters"
        path = await asyncio.to_thread(copies.verified, root, data["directory"], data["sha256"])
        known = await asyncio.to_thread(manifest.inspect, root, data["directory"])
    now = SystemClock().now()
    with progress_line(quiet=arguments.json) as show:
        proof = await exporting.export(
            kind,
            path,
            known,
            out,
            home=arguments.home,
            model=model.path,
            now=now,
            progress=_told(show, "writing"),
        )
    size = sum(f.stat().st_size for f in ([out] if out.is_file() else out.iterdir()) if f.is_file())
    name = named(known.version if known else 0, here(), begins=True)
    use = exporting.KINDS[kind] if known else phrase("adapters_base_use")
    text = phrase("adapters_exported", name=name, path=out, size=f"{size / 1e6:.1f} MB", use=use)
    if notes := [reworded(one, here()) for one in reasons_in(proof, "notes")]:
        text = sentences(text, phrase("adapters_must_know", notes=pauses(here(), *notes)))
    proof = {name: value for name, value in proof.items() if name != "parts"}
    told = {"version": known.version if known else 0, "format": kind, "out": str(out), "bytes": size}
    print_answer({"text": text, "data": {**told, "proof": proof}}, as_json=arguments.json)
    return 0


async def _ask(arguments: argparse.Namespace, command: str, words: list[str]) -> dict[str, Any]:
    """The daemon's answer, or this process's own while none runs."""

    def alone() -> dict[str, Any]:
        from goodbot.cli import offline

        settings = config.load(arguments.home, arguments.config)
        return asyncio.run(offline.run(settings, command, words, server=command == "rollback"))

    return await asyncio.to_thread(client.ask, arguments.home, command, words, alone)


def _model(arguments: argparse.Namespace) -> ResolvedModel:
    settings = config.load(arguments.home, arguments.config)
    return resolve(settings.model.path, open_plugins(settings).models(), demo=True)


def _told(show: Callable[[Mapping[str, Any]], None], phase: str) -> Callable[[int, int], None]:
    def tell(done: int, of: int) -> None:
        show({"phase": phase, "step": 100 * done // max(1, of), "steps": 100})

    return tell
