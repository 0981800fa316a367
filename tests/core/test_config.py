# SPDX-License-Identifier: Apache-2.0
"""Bad configuration: the file, the line, and what was probably meant."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

import pytest
from goodbot import config
from goodbot.base.errors import ConfigError
from goodbot.config.file import ConfigFile
from hypothesis import given
from hypothesis import strategies as st

GOOD = """\
[model]
path = "models/x"

[serving]
temperature = 1        # a whole number will do

[training]
schedule = "03:30"
min_ratings = 20
held_out = 4

[training.settings]
rank = 4

[connectors.telegram]
owners = [42, "007"]
"""


@dataclass(frozen=True, kw_only=True)
class Settings:
    rank: int = 8
    path: str | None = None


def parse(text: str) -> config.Config:
    return config.parse(text, home=Path("/state"), path=Path("/state/config.toml"))


def test_a_whole_file() -> None:
    parsed = parse(GOOD)
    assert parsed.serving.temperature == 1.0
    assert parsed.training_settings(Settings) == Settings(rank=4)
    grants, settings = parsed.connector("telegram", Settings)
    assert grants.owners == ("42", "007")
    assert settings == Settings()


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("[model]\npth = 'x'", 2, "unknown key 'pth'; did you mean 'path'?"),
        ("[serving]\n\n\ntemprature = 1.0", 4, "did you mean 'temperature'?"),
        ("[sreving]\n", 1, "did you mean 'serving'?"),
        ("zzz = 1", 1, "there are: adapters, connectors, encryption, features, filters, http"),
        ("[model]\npath = 3", 2, "path must be a text in quotes, not 3"),
        ("[serving]\nmax_tokens = '5'", 2, "max_tokens must be a whole number"),
        ("[serving]\nmax_tokens = true", 2, "max_tokens must be a whole number, not True"),
        ("[serving]\nmax_tokens = 0", 2, "at least 1"),
        ("[serving]\ntemperature = 0", 2, "temperature must be above 0"),
        ("[serving]\ntemperature = nan", 2, "temperature must be above 0"),
        ("[serving]\ntemperature = inf", 2, "temperature must be above 0"),
        ("[training]\nheld_out = 40", 2, "between 1 and min_ratings - 1"),
        ("[training]\nheld_out = 0", 2, "between 1 and"),
        ("[training]\nidle_seconds = -1", 2, "idle_seconds"),
        ("[training]\nschedule = '24:00'", 2, "auto"),
        ("[training]\nschedule = 'nightly'", 2, "auto"),
        ("[training]\nschedule = '3:3:0'", 2, "auto"),
        ("[training]\nschedule = ''", 2, "auto"),
        ("[training]\nduplicate_limit = -1", 2, "duplicate_limit must be 0 (off) or more"),
        ("[training]\nage_half_life = nan", 2, "age_half_life must be 0 (off) or more"),
        ("[training]\nreplay_share = 1.0", 2, "replay_share must lie between 0 and 0.9"),
        ("[training]\noutvoted = 'hang'", 2, 'outvoted must be "leave_out" or "count"'),
        ("[training]\non_alarm = 'block'", 2, 'on_alarm must be "tell" or "leave_out"'),
        ("[training]\nquiet_hours = '23-7'", 2, 'two times such as "23:00-07:00"'),
        ("[training]\nquiet_hours = '23:00'", 2, 'two times such as "23:00-07:00"'),
        ("[training]\nquiet_hours = '24:00-07:00'", 2, "two times"),
        ("[training]\nquiet_hours = '07:00-7:00'", 2, "different times"),
        ("[training]\non_battery = 'no'", 2, "on_battery must be true or false"),
        ("[training]\nmax_load = 0", 2, "max_load must be above 0 and at most 1"),
        ("[training]\nmax_load = 75", 2, "max_load must be above 0 and at most 1"),
        ("[training]\nmax_gpu = nan", 2, "max_gpu must be above 0"),
        ("[privacy]\nunrated_days = 0", 2, "unrated_days"),
        ("[privacy]\nunrated_days = -7.0", 2, "unrated_days"),
        ("model = 'x'", 1, "must be a section: [model]"),
        ("connectors = 1", 1, "[connectors.NAME]"),
        ("[connectors]\ntelegram = 1", 2, "[connectors.telegram]"),
        ("[plugins]\nenable = 'x'", 2, "enable must be a list in [ ]"),
        ("[plugins]\nenable = [['x']]", 2, "must be a text in quotes"),
    ],
)
def test_what_is_wrong_and_where(text: str, line: int, says: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse(text)
    assert says in str(error.value)
    assert error.value.line == line
    assert str(error.value).startswith(f"/state/config.toml:{line}: ")
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[connectors.telegram]\nowner = [1]", "did you mean 'owners'?"),
        ("[connectors.telegram]\nowners = '42'", "owners must be a list"),
        ("[connectors.telegram]\nowners = [4.5]", "text in quotes"),
        ("[connectors.telegram]\nowners = [true]", "text in quotes"),
    ],
)
def test_a_connectors_section_is_as_strict(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=r"config\.toml:2") as error:
        parse(text).connector("telegram", Settings)
    assert says in str(error.value)


def test_the_backends_settings_are_as_strict() -> None:
    with pytest.raises(ConfigError, match=r":2: .*did you mean 'rank'"):
        parse("[training.settings]\nrnk = 1").training_settings(Settings)


@pytest.mark.parametrize("cut", range(0, len(GOOD), 3))
def test_cut_off_anywhere_it_is_good_or_a_config_error(cut: int) -> None:
    with contextlib.suppress(ConfigError):
        parse(GOOD[:cut])


@given(st.text(max_size=200))
def test_any_text_is_good_or_a_config_error(text: str) -> None:
    with contextlib.suppress(ConfigError):
        parse(text)


def test_files_that_are_not_there_or_not_text(tmp_path: Path) -> None:
    assert config.load(tmp_path) == config.Config(home=tmp_path)
    with pytest.raises(ConfigError, match="no such file"):
        config.load(tmp_path, tmp_path / "mine.toml")
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read"):
        config.load(tmp_path)
    (tmp_path / "config.toml").unlink()
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        config.load(tmp_path)


def test_a_nest_of_lists_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="not valid TOML"):
        parse("a = " + "[" * 10**5)


def test_nobody_has_a_grant_by_default() -> None:
    grants, _ = config.Config(home=Path("/state")).connector("telegram", Settings)
    assert grants == config.Grants()
    assert grants.owners == grants.raters == grants.talkers == ()


def test_a_linked_file_stays_a_link(tmp_path: Path) -> None:
    (dotfiles := tmp_path / "dotfiles").mkdir()
    (dotfiles / "goodbot.toml").write_text("[serving]\nhistory = 4  # enough\n")
    (tmp_path / "config.toml").symlink_to("dotfiles/goodbot.toml")
    file = ConfigFile(tmp_path)
    file.set("serving.history", 6)
    file.save()
    assert (tmp_path / "config.toml").is_symlink()
    assert (dotfiles / "goodbot.toml").read_text() == "[serving]\nhistory = 6  # enough\n"
    assert [path.name for path in dotfiles.iterdir()] == ["goodbot.toml"]


def test_windows_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    """Notepad and PowerShell write one."""
    (tmp_path / "config.toml").write_bytes(b"\xef\xbb\xbf[model]\r\npath = 'demo'\r\n")
    assert config.load(tmp_path).model.path == "demo"
    file = ConfigFile(tmp_path)
    file.set("training.schedule", "manual")
    assert file.save().model.path == "demo"
    assert config.load(tmp_path).training.schedule == "manual"


def test_another_encoding_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes("[model]".encode("utf-16"))
    with pytest.raises(ConfigError, match="cannot be read: save it as UTF-8"):
        config.load(tmp_path)
    with pytest.raises(ConfigError, match="cannot be read: save it as UTF-8"):
        ConfigFile(tmp_path)


@pytest.mark.parametrize("key", ["token", "bot_token", "app_password", "signing_secret"])
def test_a_token_in_the_config_is_sent_where_tokens_are_kept(key: str) -> None:
    text = f'[connectors.telegram]\n{key} = "1:x"\n'
    with pytest.raises(ConfigError, match="type `goodbot connect telegram`, which asks for it"):
        parse(text).connector("telegram", Settings)


@pytest.mark.parametrize(
    "path", ["C:\\Users\\x", "C:\\new", "C:\\temp", "C:\\files", "D:\\models\\", "\\\\server\\u1"]
)
def test_a_path_with_backslashes_is_told_how_to_be_written(path: str) -> None:
    with pytest.raises(ConfigError, match="write / in paths, or put them in"):
        parse(f'[model]\npath = "{path}"\n')
    assert parse(f"[model]\npath = '{path}'\n").model.path == path


def test_a_broken_text_without_backslashes_is_told_nothing_of_them() -> None:
    with pytest.raises(ConfigError) as error:
        parse("[model\n")
    assert "backslash" not in str(error.value)
    with pytest.raises(ConfigError) as error:
        parse("[model]\npath = 'D:\\models'\nsystem = \n")
    assert "backslash" not in str(error.value), "that path is right"
    assert parse('[model]\npath = "/srv/モデル\u3000８B"\n').model.path == "/srv/モデル\u3000８B"
