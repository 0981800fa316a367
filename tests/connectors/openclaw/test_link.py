# SPDX-License-Identifier: Apache-2.0
"""The plugin's way to goodbot, by itself."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.agents.programs import node
from tests.connectors.openclaw.test_plugin import CONFIG, play
from tests.support import patience


def script(folder: Path, code: str) -> Any:
    """What a script said that has `Link`, our own way to goodbot, and `settings`."""
    play(folder, [])
    head = (
        f"import {{ Link }} from {json.dumps((folder / 'plugin/dist/link.js').as_uri())};"
        'import { createServer } from "node:http";'
        "const sleep = (ms) => new Promise((done) => setTimeout(done, ms));"
        "const quiet = { info() {}, warn() {} };"
        f"const settings = {{ tokenFile: '', ...{json.dumps(CONFIG)} }};"
        f"const place = {json.dumps(str(folder / 's'))};"
    )
    done = subprocess.run(
        [str(node()), "--input-type=module", "-e", head + code],
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_command_that_was_given_up_is_not_done_later(tmp_path: Path) -> None:
    out = script(
        tmp_path,
        """
        const posts = [];
        let free;
        const held = new Promise((done) => (free = done));
        globalThis.fetch = async (_, { body }) => {
          const { events } = JSON.parse(body);
          posts.push(...events.map(({ id }) => id));
          await held;
          return { status: 200, json: async () => ({ receipts: events }), text: async () => "" };
        };
        const link = new Link(settings, quiet);
        const first = link.send({ id: "a", type: "capture", at: 0 }, 60_000);
        const command = await link.send({ id: "b", type: "command", at: 0 }, 20);
        const second = link.send({ id: "c", type: "rating", at: 0 }, 60_000);
        free();
        await Promise.all([first, second]);
        console.log(JSON.stringify({ posts, command: command ?? null }));
        """,
    )
    assert out == {"posts": ["a", "c"], "command": None}


def test_by_the_socket_nobody_else_gets_anything(tmp_path: Path) -> None:
    """Neither the token nor what waits goes to the port while goodbot is down."""
    out = script(
        tmp_path,
        """
        const heard = [], port = [];
        globalThis.fetch = async (url) => { port.push(url); throw new Error("no"); };
        const link = new Link({ ...settings, socket: place }, quiet);
        const down = await link.send({ id: "a", type: "command", at: 0 }, 60_000);
        const server = createServer(async (asked, answer) => {
          let body = "";
          for await (const part of asked) body += part;
          const { method, url, headers } = asked;
          heard.push([method, url, headers.authorization, headers.host]);
          const { events } = JSON.parse(body);
          const receipts = events.map(({ id }) => ({ id, text: "ä".repeat(50_000) }));
          answer.end(JSON.stringify({ receipts }));
        });
        await new Promise((done) => server.listen(place, done));
        const up = await link.send({ id: "b", type: "command", at: 0 }, 60_000);
        link.stop();
        server.close();
        console.log(JSON.stringify({ down: down ?? null, up: up.text.length, heard, port }));
        """,
    )
    assert out["port"] == []
    assert (out["down"], out["up"]) == (None, 50_000)
    assert out["heard"] == [["POST", "/v1/openclaw/events", f"Bearer {CONFIG['token']}", "127.0.0.1:8321"]]
