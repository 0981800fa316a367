# SPDX-License-Identifier: Apache-2.0
"""I5: settings of Claude Code and Codex as people have them: put back, or left with a sentence."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from goodbot.cli import main

from tests.cli.program import need_backend


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home directory in which goodbot has never been."""
    need_backend()
    mask = os.umask(0o077)  # as the program sets it for itself
    person = tmp_path / "ada"
    for name in (".claude", ".codex"):
        (person / name).mkdir(parents=True)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(person))
    monkeypatch.setenv("GOODBOT_HOME", str(person / "gb"))
    yield person
    os.umask(mask)


def connected(agent: str) -> int:
    return main(["connect", agent, "--yes", "--model", "demo", "--start", "no"])


CLAUDE = {
    "plain": '{"model": "opus"}\n',
    "UTF-8 with a mark": '\ufeff{"model": "opus"}\n',
    "Windows' line ends": '{\r\n  "model": "opus"\r\n}\r\n',
    "empty": "",
    "a key twice": '{"model":"a","model":"b"}\n',
    "hooks are off": '{"disableAllHooks": true}\n',
    # Siblings.
    "a mark and nothing else": "\ufeff",
    "blanks alone": " \n\t\n",
    "words in other scripts": '{"语言": "中文", "emoji": "👍", "اللغة": "العربية"}\n',
    "escaped signs": '{"a": "\\u4e2d\\ud83d\\ude00"}\n',
    "hooks of nothing": '{"hooks": {}}\n',
    "a list of no hooks": '{"hooks": {"Stop": []}}\n',
}


@pytest.mark.parametrize("name", CLAUDE)
def test_i5_settings_of_claude_code_come_back_byte_for_byte(name: str, person: Path) -> None:
    file = person / ".claude" / "settings.json"
    before = CLAUDE[name].encode()
    file.write_bytes(before)
    assert connected("claude_code") == 0
    hooks = json.loads(file.read_text(encoding="utf-8-sig"))["hooks"]
    assert {"Stop", "UserPromptSubmit"} <= hooks.keys()
    assert file.read_bytes().startswith(b"\xef\xbb\xbf") is before.startswith(b"\xef\xbb\xbf")
    assert main(["disconnect", "claude_code", "--yes"]) == 0
    assert file.read_bytes() == before


BROKEN = {
    "comments": '{\n  // my model\n  "model": "opus"\n}\n',
    "a comma behind the last": '{"model": "opus",}\n',
    "hooks are null": '{"hooks": null}\n',
    "hooks are a list": '{"hooks": []}\n',
    "Stop is an object": '{"hooks": {"Stop": {"hooks": []}}}\n',
    # Siblings.
    "a list": '["opus"]\n',
    "cut off": '{"model": "op',
    "quotes of a word processor": "{“model”: “opus”}\n",
    "Stop is a text": '{"hooks": {"Stop": "say done"}}\n',
}


@pytest.mark.parametrize("name", BROKEN)
def test_i5_settings_of_claude_code_that_are_none_stay_and_are_named(
    name: str, person: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = person / ".claude" / "settings.json"
    file.write_text(BROKEN[name], encoding="utf-8")
    assert connected("claude_code") != 0
    said = capsys.readouterr().err
    assert f"{file} cannot be understood (" in said
    assert "it was left as it is. Correct it, then try again." in said
    assert "Traceback" not in said
    assert file.read_text(encoding="utf-8") == BROKEN[name]


CODEX = {
    "no notify": 'model = "gpt-5"\n[mcp_servers.a]\ncommand = "x"\n',
    "another's notify over several lines": (
        'notify = [\n  "python3", # mine\n  "/srv/n.py",\n]\nmodel = "x"\n'
    ),
    "notify in a table, by mistake": 'model = "x"\n[tui]\nnotify = ["a"]\n',
    "Windows' line ends": 'model = "x"\r\n[tui]\r\ntheme = "a"\r\n',
    "no new line behind its last table": '[tui]\ntheme = "a"',
    "notify is a text": 'notify = "say hi"\n',
    "keys with dots": 'tui.theme = "a"\nprofiles.x.model = "y"\n',
    # Siblings.
    "UTF-8 with a mark": '\ufeffmodel = "x"\n',
    "words in other scripts": '# 我的设置\nmodel = "модель"\n',
    "empty": "",
    "a notify in quotes": '"notify" = ["/a"]\n',
    "a text that looks like one": 'x = """\nnotify = ["/a"]\n"""\n',
    "Windows' line ends and a notify": 'notify = ["/a", "--b"]\r\nmodel = "x"\r\n',
}


@pytest.mark.parametrize("name", CODEX)
def test_i5_settings_of_codex_come_back_byte_for_byte(name: str, person: Path) -> None:
    file = person / ".codex" / "config.toml"
    before = CODEX[name].encode()
    file.write_bytes(before)
    assert connected("codex") == 0
    known = tomllib.loads(CODEX[name].removeprefix("\ufeff"))
    found = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    theirs = known.get("notify", [])
    if isinstance(theirs, list):
        ours, *rest = found["notify"]
        assert str(person / "gb") in ours
        assert rest == theirs
    else:
        assert found["notify"] == theirs, "what is no list is not ours to change"
    assert {key: found[key] for key in known if key != "notify"} == {
        key: value for key, value in known.items() if key != "notify"
    }
    assert main(["disconnect", "codex", "--yes"]) == 0
    assert file.read_bytes() == before
    assert not (person / ".codex" / "hooks.json").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.toml", "model = \n"),
        ("hooks.json", "{"),
        # Siblings.
        ("config.toml", 'model = "x\n'),
        ("config.toml", "model = “x”\n"),
        ("hooks.json", '{"hooks": null}'),
        ("hooks.json", "[]"),
    ],
)
def test_i5_settings_of_codex_that_are_none_stay_and_are_named(
    name: str, text: str, person: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = person / ".codex" / name
    file.write_text(text, encoding="utf-8")
    other = person / ".codex" / ("config.toml" if name == "hooks.json" else "hooks.json")
    before = 'model = "x"\n' if name == "hooks.json" else '{"hooks": {}}\n'
    other.write_text(before)
    assert connected("codex") != 0
    said = capsys.readouterr().err
    assert name in said
    assert "Traceback" not in said
    assert file.read_text(encoding="utf-8") == text
    assert other.read_text() == before, "nothing was begun"
