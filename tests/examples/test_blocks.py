# SPDX-License-Identifier: Apache-2.0
"""Every command block of README.md and of docs/: run by a test, or named here with the reason why not."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from goodbot.base.errors import UsageError
from goodbot.cli import main, parser

from tests.core.inference.servers import tiny
from tests.examples.support import ROOT
from tests.support import require

PAGES = sorted({ROOT / "README.md", *(ROOT / "docs").rglob("*.md")})
BLOCK = re.compile(r"^ *```(?:console|sh|bash|shell)\n(.*?)^ *```", flags=re.M | re.S)
RUN = {
    "docs/export.md": ("tests/core/exporting/test_page.py", "goodbot (?:export|import) "),
    "docs/faq.md": ("tests/examples/test_guides.py", "goodbot "),
    "docs/getting-started.md": ("tests/end_to_end/test_getting_started.py", ""),
    "docs/laptop.md": ("tests/examples/test_guides.py", "goodbot "),
    "docs/move.md": ("tests/examples/test_guides.py", "goodbot "),
    "docs/operations.md": ("tests/examples/test_operations.py", "goodbot |curl "),
    "docs/privacy.md": ("tests/examples/test_guides.py", "goodbot "),
    "docs/scale.md": ("tests/benchmarks/test_growth.py", "python -m tests.benchmarks.growth"),
    "docs/wsl.md": ("tests/examples/test_guides.py", "goodbot "),
}
"""Whose test reads a page and runs what begins so."""
TYPED = (
    "goodbot adapters import ",
    "goodbot adapters",
    "goodbot adapters show 7",
    "goodbot adapters diff 6 7",
    "goodbot api token add editor",
    "goodbot api token add ci --separate",
    "goodbot api token list",
    "goodbot api token remove ci",
    "goodbot backup",
    "goodbot backup ~/disk/goodbot.tar",
    "goodbot plugin new box --kind connector",
    "goodbot report",
    "goodbot report teachers",
)
"""What is run here, in this order; what ends with a space goes on."""
ENGINE = "a container engine: .ci/container builds it, where one runs"
RUNNING = "a bot that runs, and has learnt"
SERVER = "a server of somebody else's, and its GPU"
NOT_RUN = {
    "make demo": ".ci/run begins with it",
    "make test": ".ci/run does it",
    "make changelog ": "tests/examples/test_contributing.py makes one in a folder of its own",
    "echo 'Backups ": "tests/examples/test_contributing.py makes one in a folder of its own",
    ".venv/bin/goodbot chat --demo-model": "tests/cli/test_chat.py types it",
    "goodbot adapters export 7 ": "llama.cpp's packages: tests/cli/test_adapters.py exports in other forms",
    "goodbot adapters export base ": "llama.cpp's packages, and a large model",
    "goodbot adapters pin": f"{RUNNING}: tests/cli/test_adapters.py types it",
    "goodbot adapters rollback ": f"{RUNNING}: tests/cli/test_adapters.py goes back",
    "goodbot --home ": "a dialogue, and a service: tests/cli/test_init.py answers, and in another home",
    "goodbot connect ": "a platform's token, or another program: tests/cli/test_connect.py answers",
    "goodbot disconnect ": "who was connected: tests/connectors/api/test_setup.py removes it",
    "goodbot decrypt": "the extra, and a key: tests/cli/test_encryption.py types it",
    "goodbot doctor --security": "it looks at this machine: tests/cli/test_doctor.py types it",
    "goodbot encrypt": "the extra, and a key: tests/cli/test_encryption.py types it",
    "goodbot report --pairs": "it asks a model for minutes: tests/core/reports/test_fixed.py does",
    "goodbot restore ": "another file's name: tests/cli/test_backup.py types it",
    "goodbot rollback answers ": RUNNING,
    "goodbot train": RUNNING,
    "goodbot uninstall": "it removes: tests/cli/test_uninstall.py types it",
    "goodbot upgrade --back": "it removes: tests/cli/test_upgrade.py types it",
    "goodbot webhooks": "a bot that runs: tests/core/webhooks/test_webhooks.py asks it",
    "curl http://127.0.0.1:8321/v1/": "a token, and an answer's id: tests/connectors/api/test_api.py asks so",
    "export RAY_AUTH_MODE=": "a secret, and a cluster",
    "ray start ": "a cluster: tests/training/ray/nodes.py starts one so",
    "docker compose ": ENGINE,
    "docker run ": SERVER,
    "python -m venv ~/vllm ": SERVER,
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING=True ": SERVER,
    "python -m sglang.launch_server ": SERVER,
    "python -m mlx_lm server ": "a model of gigabytes",
    "createdb ": "a server of PostgreSQL",
    "pg_dump ": "a server: tests/core/store/test_postgres.py makes one",
    "pg_restore ": "a server: tests/core/store/test_postgres.py brings it back",
    "pip install 'gguf": "an index",
    'echo "GOODBOT_': "a secret, and openssl",
    "chmod 600 ~/.goodbot/secrets.env": "a secret",
    "loginctl enable-linger": "systemd, and its login",
    "ssh ": "a machine elsewhere",
}
"""What a command begins with that no test runs as the page has it: what it needs, or who does nearly that."""


class Typed(NamedTuple):
    """A command of a page, without its comment, and what the page shows below it."""

    page: str
    command: str
    shows: Sequence[str]


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a block's lines, with the lines that it prints."""
    shown: list[str] = []
    command = ""
    for line in text.replace("\\\n", " ").splitlines():
        if line.lstrip().startswith("$ "):
            if command:
                yield command, shown
            command, shown = " ".join(re.sub(r"\s+#.*", "", line.lstrip()[2:]).split()), []
        else:
            shown.append(line.strip())
    if command:
        yield command, shown


EVERY = [
    Typed(str(path.relative_to(ROOT)), command, shown)
    for path in PAGES
    for block in BLOCK.findall(path.read_text(encoding="utf-8"))
    for command, shown in commands(block)
]


def is_run(one: Typed) -> bool:
    """Whether a test runs the page that it stands on, or it is run here."""
    _, what = RUN.get(one.page, ("", "(?!)"))
    here = any(
        one.command == typed or (typed[-1] == " " and one.command.startswith(typed)) for typed in TYPED
    )
    return here or re.match(what, f"{one.command} ") is not None


def test_each_is_run_or_has_a_reason() -> None:
    elsewhere = {one.command for one in EVERY if is_run(one)}
    assert len(EVERY) > 90, "the scan has lost its subject"
    assert [
        (one.page, one.command)
        for one in EVERY
        if one.command.removeprefix(".venv/bin/") not in elsewhere
        and not any(one.command.startswith(words) for words in NOT_RUN)
    ] == []


def test_each_reason_is_needed_and_true() -> None:
    left = [one.command for one in EVERY if not is_run(one)]
    assert [words for words in NOT_RUN if not any(command.startswith(words) for command in left)] == []
    told = [*NOT_RUN.values(), *(path for path, _ in RUN.values())]
    files = {path for reason in told for path in re.findall(r"\S+/(?:test_\w+\.py|run|container)\b", reason)}
    assert len(files) > 12
    assert [path for path in files if not (ROOT / path).is_file()] == []
    for page, (path, what) in RUN.items():
        assert f'"{Path(page).stem}' in (ROOT / path).read_text(encoding="utf-8"), path
        assert any(re.match(what, f"{one.command} ") for one in EVERY if one.page == page)


@pytest.mark.parametrize(
    "command",
    sorted({one.command for one in EVERY if one.command.startswith(("goodbot ", ".venv/bin/goodbot "))}),
)
def test_each_command_of_goodbot_s_is_read(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that are not run: their words and options are such that there are."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GOODBOT_HOME", raising=False)
    _, *words = shlex.split(command)
    words = words[: words.index(">")] if ">" in words else words
    try:
        parser.parse(words)
    except UsageError as error:
        pytest.fail(f"{command}: {error}")


def test_what_needs_nothing_is_run_in_one_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By somebody with an empty home, to whom a friend has given two versions, which are v1 and v2 here."""
    require("numpy")
    require("safetensors")
    (home := tmp_path / ".goodbot").mkdir(mode=0o700)
    (home / "config.toml").write_text('[connectors.api]\nowners = ["me"]\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GOODBOT_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "disk").mkdir()
    tiny.adapter(tmp_path / "from-a-friend", seed=3)
    assert main(["adapters", "import", str(tmp_path / "from-a-friend")]) == 0
    for typed in TYPED:
        [one, *_] = [
            one
            for one in EVERY
            if one.command == typed or (typed[-1] == " " and one.command.startswith(typed))
        ]
        command = one.command
        if command.startswith("goodbot adapters "):
            command = re.sub(r"\b[67]\b", lambda found: str(int(found[0]) - 5), command)
        command = command.replace("~", str(tmp_path))
        capsys.readouterr()
        assert main(shlex.split(command)[1:]) == 0, f"{one.command}: {capsys.readouterr().err}"
        said = capsys.readouterr().out
        assert [line for line in one.shows if line and line not in said.splitlines()] == []
    assert (tmp_path / "disk/goodbot.tar").is_file()
    assert (tmp_path / "goodbot-box/pyproject.toml").is_file()
