# SPDX-License-Identifier: Apache-2.0
"""Our lines in Codex' settings: added behind what is there, and taken out as if they had never been."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from goodbot.api.texts import reworded, say
from goodbot.base.errors import FatalConnectorError
from goodbot_connectors.codex import config_file, hooks_file
from goodbot_connectors.kit.settings_file import SettingsFile

OURS = "/people/me/.goodbot/connectors/codex/hook"
NOTIFY = "/people/me/.goodbot/connectors/codex/notify"
THEIRS = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "/theirs", "timeout": 5}]}]}}


@pytest.mark.parametrize(
    "before",
    [
        "",
        "{}\n",
        json.dumps(THEIRS, indent=2),
        json.dumps(THEIRS, indent="\t") + "\n",
        json.dumps(THEIRS),
        json.dumps({"description": "ü", **THEIRS}, indent=4, ensure_ascii=False),
    ],
)
def test_hooks_json_there_and_back(before: str) -> None:
    text = hooks_file.in_json(before, OURS)
    assert hooks_file.in_json(text, OURS) == text, "a second time changes nothing"
    data = json.loads(text)
    known = json.loads(before or "{}").get("hooks", {})
    for event in hooks_file.EVENTS:
        *others, ours = data["hooks"][event]
        assert others == known.get(event, [])
        assert ours == {"hooks": [{"type": "command", "command": OURS, "timeout": 30}]}
    last = len(known.get("Stop", []))
    assert hooks_file.places(text, OURS) == ["user_prompt_submit:0:0", f"stop:{last}:0"]
    assert hooks_file.out_of_json(text, OURS) == ("" if before in ("", "{}\n") else before)


def test_what_somebody_has_put_into_our_group_stays() -> None:
    data = json.loads(hooks_file.in_json("", OURS))
    data["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "/theirs"})
    data["hooks"]["Interrupt"] = []
    left = json.loads(hooks_file.out_of_json(json.dumps(data), OURS))
    theirs = [{"hooks": [{"type": "command", "command": "/theirs"}]}]
    assert left == {"hooks": {"Stop": theirs, "Interrupt": []}}


@pytest.mark.parametrize("text", ["[]", '{"hooks": []}', '{"hooks": {"Stop": {}}}'])
def test_hooks_that_are_none_are_left_alone(text: str) -> None:
    with pytest.raises(FatalConnectorError, match=r"hooks\.json"):
        hooks_file.in_json(text, OURS)


CONFIGS = [
    '# c\nmodel = "x" # m\nnotify = ["/a", "--b"]  # mine\n\n[t]\na=1\n',
    'notify = [\n  "/a", # one\n  "--b",\n]\n[t]\na=1\n',
    '# c\nmodel = "x"\n\n[t]\na=1\n',
    "",
    "[t]\na=1\n",
    "notify=['/a b',\"c\"]\n",
    'model="x"\n# end',
    "notify = []\n",
    'notify = [ "/a" ]\r\nx=1\r\n',
    '# notify = ["/a"]\nnotify = ["/a"]\n',
]


@pytest.mark.parametrize("before", CONFIGS)
def test_notify_there_and_back(before: str) -> None:
    text = config_file.with_notify(before, NOTIFY)
    assert config_file.notified(text) == [NOTIFY, *(config_file.notified(before) or [])]
    rest = {name: value for name, value in tomllib.loads(text).items() if name != "notify"}
    assert rest == {n: v for n, v in tomllib.loads(before).items() if n != "notify"}
    assert config_file.with_notify(text, NOTIFY) == text
    assert config_file.without_notify(text, NOTIFY) == before
    later = text + "\n[tui]\nseen = 1\n"
    assert config_file.without_notify(later, NOTIFY) == before + "\n[tui]\nseen = 1\n"


def test_a_notify_that_is_no_list_is_not_ours_to_change() -> None:
    assert config_file.with_notify('notify = "/a"\n', NOTIFY) == 'notify = "/a"\n'


def test_notify_that_was_written_anew_loses_ours_alone() -> None:
    text = f"notify = [ '{NOTIFY}' ,'/a']\nx = 1 # kept\n"
    left = config_file.without_notify(text, NOTIFY)
    assert config_file.notified(left) == ["/a"]
    assert "x = 1 # kept" in left
    assert "notify" not in config_file.without_notify(f"notify = ['{NOTIFY}']\nx = 1\n", NOTIFY)


@pytest.mark.parametrize("before", CONFIGS)
def test_hooks_in_config_toml_there_and_back(before: str) -> None:
    before += '\n[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "/theirs"\n'
    assert hooks_file.inline(before)
    text = hooks_file.in_toml(before, OURS)
    assert hooks_file.in_toml(text, OURS) == text
    assert hooks_file.places(text, OURS, toml=True) == ["user_prompt_submit:0:0", "stop:1:0"]
    assert hooks_file.out_of_toml(text, OURS) == before
    changed = text.replace("timeout = 30", "timeout = 31")
    left = tomllib.loads(hooks_file.out_of_toml(changed, OURS))
    assert left == tomllib.loads(before)


def test_hooks_that_are_one_value_cannot_be_added_to() -> None:
    with pytest.raises(FatalConnectorError, match=r"move them to hooks\.json"):
        hooks_file.in_toml("[hooks]\nStop = []\n", OURS)


def test_what_codex_has_trusted_is_no_hook() -> None:
    assert not hooks_file.inline('[hooks.state."/x:stop:0:0"]\ntrusted_hash = "sha256:0"\n')


def test_what_codex_has_noted_of_our_hooks_goes_with_them(tmp_path: Path) -> None:
    file = tmp_path / "hooks.json"

    def trusted(place: str) -> str:
        return f'\n[hooks.state."{file}:{place}"]\ntrusted_hash = "sha256:0123"\n'

    before = 'model = "x"\n\n[projects."/w"]\ntrust_level = "trusted"\n'
    ours = f"\n[hooks.state]\n{trusted('user_prompt_submit:0:0')}{trusted('stop:1:0')}"
    places = ["user_prompt_submit:0:0", "stop:1:0"]
    assert config_file.without_trust(before + ours, file, places) == before
    mixed = before + ours + trusted("stop:0:0") + "\n[t]\na = 1\n"
    left = config_file.without_trust(mixed, file, places)
    assert left == f"{before}\n[hooks.state]\n{trusted('stop:0:0')}\n[t]\na = 1\n"
    assert config_file.without_trust(mixed, tmp_path / "other", places) == mixed


def test_what_is_wrong_in_it_is_told_in_the_readers_language(tmp_path: Path) -> None:
    path = tmp_path / "hooks.json"
    with pytest.raises(FatalConnectorError) as error:
        hooks_file.in_json("[]", "x")
    assert reworded(error.value, "de") == say("cx_json_object", "de")
    path.write_bytes(b"\xff")
    with pytest.raises(FatalConnectorError) as error:
        SettingsFile(path, tmp_path / "home", "codex").read()
    assert reworded(error.value, "es") == say("sf_odd", "es", path=path, why=say("sf_utf8", "es"))
    assert str(error.value).endswith("(it is not UTF-8); it was left as it is. Correct it, then try again.")
