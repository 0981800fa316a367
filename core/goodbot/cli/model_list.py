# SPDX-License-Identifier: Apache-2.0
"""`goodbot model`: the servers that run here with their models, and the weights on this disk."""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from goodbot import config
from goodbot.api import model_shape
from goodbot.api.estimate import estimate
from goodbot.api.survey import FoundServer
from goodbot.api.texts import commas, reworded
from goodbot.api.texts.terminal import here, phrase, rephrased
from goodbot.base.errors import ConfigError, GoodbotError
from goodbot.base.machine.device import Device, place
from goodbot.base.printing import print_answer, printable
from goodbot.cli.model import backends, gigabytes, model_servers
from goodbot.inference.models import catalogue, disk, resolve, servers
from goodbot.inference.models.directory import DEMO, read_config
from goodbot.inference.models.disk import LocalModel


def main(arguments: argparse.Namespace) -> int:
    """Print both lists."""
    settings = config.load(arguments.home, arguments.config)
    with ThreadPoolExecutor(1) as pool:  # servers take their time to answer
        found = pool.submit(servers.discover, specs=model_servers(settings))
        machine = _places(settings)
        weights = [_weights(one, machine) for one in disk.weights(arguments.home)]
        running = [_server(server, machine) for server in found.result()]
    configured = _configured(settings, weights)
    data = {"configured": configured, "servers": running, "disk": weights}
    text = "\n".join([*_servers_text(running), "", *_disk_text(weights, configured, settings)])
    print_answer({"text": text, "data": data}, as_json=arguments.json)
    return 0


def _places(settings: config.Config) -> Device | None:
    try:
        return place(backends(settings)[0], measure=False)
    except GoodbotError:  # nothing is installed that could train: then nothing is said of it
        return None


def _weights(one: LocalModel, machine: Device | None) -> dict[str, Any]:
    """One model on the disk, and whether it can be used here."""
    wrong, fits, doubt = reworded(one.wrong, here()), None, ""
    if machine and not wrong:
        try:
            found = read_config(one.path)
            wrong = model_shape.unusable(found, machine.backend)
            doubt = model_shape.doubt(found)
            fits = estimate(model_shape.read(found), machine, one.bytes).fits
        except ConfigError as error:
            doubt = reworded(error, here())
    return {
        "reference": one.reference,
        "path": str(one.path),
        "bytes": one.bytes,
        "trainable": None if machine is None else not wrong,
        "fits": fits,
        "wrong": wrong,
        "doubt": doubt,
    }


def _server(server: FoundServer, machine: Device | None) -> dict[str, Any]:
    models: list[dict[str, Any]] = []
    for model in server.models:
        entry = catalogue.find(model.root) or catalogue.find(model.name)
        cost = estimate(entry.architecture, machine, entry.bytes) if entry and machine else None
        models.append(
            {
                "name": model.name,
                "note": model.note,
                "bytes": model.bytes,
                "root": model.root,
                "weights": entry.name if entry else None,
                "fits": cost.fits if cost else None,
            }
        )
    return {"kind": server.kind, "title": server.title, "url": server.url, "models": models}


def _configured(settings: config.Config, weights: list[dict[str, Any]]) -> str | None:
    """The path of the model that is configured, if it is here; marks it in the list."""
    try:
        demo = settings.model.path == DEMO
        path = None if demo else str(resolve(settings.model.path, {}, demo=False).path)
    except ConfigError:
        path = None
    for one in weights:
        one["configured"] = one["path"] == path
    return path


def _servers_text(running: list[dict[str, Any]]) -> list[str]:
    if not running:
        return [phrase("model_no_server")]
    lines: list[str] = []
    for server in running:
        lines.append(phrase("model_at", title=server["title"], url=server["url"]))
        for model in server["models"]:
            size = gigabytes(model["bytes"]) if model["bytes"] else ""
            notes = commas(here(), model["note"], size, _weights_text(model))
            lines.append(f"  {_line(model['name'])}  {_line(notes)}")
        if not server["models"]:
            lines.append(f"  {phrase('model_no_models')}")
    return lines


def _weights_text(model: dict[str, Any]) -> str:
    if model["weights"] is None:
        return phrase("model_no_weights")
    room = phrase("model_too_large") if model["fits"] is False else ""
    return commas(here(), phrase("model_trainable_as", name=model["weights"]), room)


def _disk_text(weights: list[dict[str, Any]], configured: str | None, settings: config.Config) -> list[str]:
    lines = [phrase("model_on_disk" if weights else "model_no_disk")]
    for one in weights:
        mark = "→" if one["configured"] else " "
        notes = [gigabytes(one["bytes"]) if one["bytes"] else ""]
        if one["wrong"]:
            notes.append(rephrased(one["wrong"]))
        elif one["trainable"]:
            notes.append(phrase("model_trainable"))
            notes.append(phrase("model_too_large") if one["fits"] is False else rephrased(one["doubt"]))
        lines.append(f"{mark} {_line(one['reference'])}  {_line(commas(here(), *notes))}")
    if configured and not any(one["configured"] for one in weights):
        lines.append(f"→ {_line(configured)}")
    elif settings.model.path == DEMO:
        lines.append(f"→ demo  {phrase('model_tiny')}")
    elif not settings.model.path:
        lines.append(phrase("model_unset"))
    elif configured is None:
        lines.append(phrase("model_unusable", path=_line(settings.model.path)))
    return lines


def _line(text: str) -> str:
    """Untrusted text on one line."""
    return " ".join(printable(text).split())
