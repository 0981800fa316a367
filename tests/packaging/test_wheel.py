# SPDX-License-Identifier: Apache-2.0
"""What people install: the wheel's content, its metadata, and a life without any extra."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
import zipfile
from email.message import Message
from email.parser import Parser
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.source import PACKAGES, ROOT, modules, pyproject
from tests.end_to_end.newcomer import shop, surroundings
from tests.support import patience, require
from tests.surroundings import CLOSED

EXTRAS = {
    "mlx",
    "ray",
    "torch",
    "torch-4bit",
    "discord",
    "slack",
    "telegram",
    "teams",
    "gguf",
    "llama-tests",
    "encryption",
    "postgres",
    "postgres-tests",
    "push",
    "keyring",
    "tensorboard",
    "wandb",
    "trackio",
    "otel",
    "bench",
    "dev",
    "docs",
    "zstd",
}
WHEEL = set(PACKAGES) - {"goodbot_fakes"}
BASE = ("aiohttp", "aiosqlite", "pluggy", "shtab", "tomlkit")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT, tmp_path_factory.mktemp("wheel"))


def built(root: Path, out: Path) -> Path:
    """The wheel of the project in `root`."""
    require("build")
    require("hatchling")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, root],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [wheel] = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def told(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


def test_it_holds_three_packages_and_nothing_else(names: set[str]) -> None:
    tops = {name.split("/")[0] for name in names}
    info = {top for top in tops if top.endswith(".dist-info")}
    assert tops - info == WHEEL
    assert len(info) == 1
    assert not [n for n in names if "test_" in n or "/tests/" in n or "__pycache__" in n]


def test_it_holds_every_module_and_what_they_read(names: set[str]) -> None:
    roots = {f"{root.name}/": "" for root in PACKAGES.values()}
    for module in modules():
        if module.package not in WHEEL:
            continue
        root = module.path.split("/")[0] + "/"
        assert module.path.replace(root, roots[root], 1) in names
    beside = {
        str(path.relative_to(root))
        for package, root in PACKAGES.items()
        if package in WHEEL
        for path in (root / package).rglob("*")
        if path.is_file() and path.suffix != ".py" and "__pycache__" not in path.parts
    }
    assert beside - names == set(), "a page, a migration, a model"
    assert "goodbot/store/migrations/0001_initial.sql" in beside
    model = {n.rpartition("/")[2] for n in names if n.startswith("goodbot_training/tiny/model/")}
    assert model >= {"config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"}


def test_it_is_typed_and_licensed(names: set[str], told: Message) -> None:
    assert {f"{package}/py.typed" for package in WHEEL} <= names, "a checker reads no types"
    assert any(re.fullmatch(r"goodbot-[^/]+\.dist-info/licenses/LICENSE", name) for name in names)
    assert told["License-Expression"] == "Apache-2.0 AND BSD-3-Clause", "ours, and what the pages load"
    assert any(name.endswith("/vendored/LICENSE.highlight") and "/licenses/" in name for name in names)


def test_its_metadata_name_the_extras(told: Message) -> None:
    assert set(told.get_all("Provides-Extra") or []) == EXTRAS
    assert set(pyproject()["project"]["optional-dependencies"]) == EXTRAS
    required = [line for line in told.get_all("Requires-Dist") or [] if "extra ==" not in line]
    assert {re.split(r"[^\w-]", line)[0] for line in required} == set(BASE)
    assert told["Requires-Python"] == ">=3.11"


def test_two_builds_are_equal_to_the_bit(wheel: Path, tmp_path: Path) -> None:
    """Of another folder, with other times of its files: who builds it again gets what is published."""
    copy = tmp_path / "elsewhere"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "core", "connectors", "training", ".gitignore"):
        here = ROOT / name
        if here.is_dir():
            ignored = shutil.ignore_patterns("node_modules", "__pycache__")
            shutil.copytree(here, copy / name, ignore=ignored, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(here, copy / name)
    assert built(copy, tmp_path / "again").read_bytes() == wheel.read_bytes()


def test_the_wheel_is_small(wheel: Path) -> None:
    size = wheel.stat().st_size
    assert size < 6 * 1024 * 1024
    [told] = re.findall(r"\(([\d.]+) MB as a package\)", (ROOT / "docs/costs.md").read_text(encoding="utf-8"))
    assert abs(size / 1e6 - float(told)) < 0.3, f"docs/costs.md: it is {size / 1e6:.1f} MB"


def test_the_fakes_are_a_distribution_of_their_own(tmp_path: Path) -> None:
    with zipfile.ZipFile(built(ROOT / "connectors/goodbot_fakes", tmp_path)) as archive:
        names = set(archive.namelist())
        [about] = [n for n in names if n.endswith(".dist-info/METADATA")]
        told = Parser().parsestr(archive.read(about).decode())
    fakes = {m.path.removeprefix("connectors/") for m in modules() if m.package == "goodbot_fakes"}
    assert len(fakes) > 50
    assert {n for n in names if n.endswith(".py")} == fakes
    assert {n for n in names if not n.endswith(".py") and ".dist-info/" not in n} == {
        "goodbot_fakes/LICENSE",
        "goodbot_fakes/py.typed",
    }
    version = pyproject()["project"]["version"]
    assert told["Version"] == version
    assert f"goodbot=={version}" in (told.get_all("Requires-Dist") or [])


def _closure(names: tuple[str, ...]) -> set[str]:
    """These distributions and what they need here, extras aside."""
    found: set[str] = set()
    open_ = list(names)
    while open_:
        name = canonicalize_name(open_.pop())
        if name in found:
            continue
        found.add(name)
        for text in metadata.requires(name) or ():
            wanted = Requirement(text)
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                open_.append(wanted.name)
    return found


class Bare:
    """A virtual environment with the wheel and the required dependencies, and no extra."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self._folder = folder
        venv.create(folder, symlinks=True)
        site = next((folder / "lib").glob("python*/site-packages"))
        for name in _closure(BASE):
            dist = metadata.distribution(name)
            for file in dist.files or ():
                if file.parts[0] not in ("..", "__pycache__") and "__pycache__" not in file.parts:
                    target = site / file
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.symlink_to(str(dist.locate_file(file)))
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "--python",
                folder / "bin" / "python",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--no-deps",
                "--no-index",
                wheel,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def run(self, *words: str, home: Path) -> subprocess.CompletedProcess[str]:
        """`goodbot WORDS` in an empty place."""
        environ = {name: value for name, value in os.environ.items() if name[:6] != "PYTHON"}
        return subprocess.run(
            [self._folder / "bin" / "goodbot", "--home", home, *words],
            cwd=home.parent,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=patience(60),
        )


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Bare:
    return Bare(tmp_path_factory.mktemp("bare"), wheel)


class TestWithoutAnyExtra:
    def test_help_lists_the_commands(self, bare: Bare, tmp_path: Path) -> None:
        done = bare.run("--help", home=tmp_path / "home")
        assert (done.returncode, done.stderr) == (0, "")
        for command in ("run", "doctor", "status", "train", "plugins", "chat", "demo"):
            assert re.search(rf"\b{command}\b", done.stdout), command
        assert not (tmp_path / "home").exists()

    def test_the_version_is_the_wheels(self, bare: Bare, told: Message, tmp_path: Path) -> None:
        done = bare.run("--version", home=tmp_path / "home")
        assert done.stdout == f"goodbot {told['Version']}\n"

    def test_plugins_are_listed_beside_what_is_missing(self, bare: Bare, tmp_path: Path) -> None:
        done = bare.run("plugins", home=tmp_path / "home")
        assert (done.returncode, done.stderr) == (2, "")
        assert "telegram" in done.stdout
        assert "'mlx-lm" in done.stdout

    @pytest.mark.parametrize(
        ("words", "said"), [(("demo",), "Good bot. Bad bot. It learns.\n\n"), (("run", "--demo-model"), "")]
    )
    def test_what_is_missing_is_a_sentence(
        self, bare: Bare, tmp_path: Path, words: tuple[str, ...], said: str
    ) -> None:
        done = bare.run(*words, home=tmp_path / "home")
        assert done.returncode == 1
        assert done.stdout == said
        assert " pip install " in done.stderr
        assert "'mlx-lm" in done.stderr
        assert "goodbot[" not in done.stderr
        assert "Traceback" not in done.stderr
        assert len(done.stderr.splitlines()) == 1

    def test_status_says_what_to_do_first(self, bare: Bare, tmp_path: Path) -> None:
        done = bare.run("status", home=tmp_path / "home")
        assert (done.returncode, done.stderr) == (0, "")
        assert "`goodbot init` sets it up" in done.stdout
        assert not (tmp_path / "home").exists()

    def test_a_platform_without_its_extra_is_a_sentence(self, bare: Bare, tmp_path: Path) -> None:
        home = tmp_path / "home"
        home.mkdir(mode=0o700)
        (home / "config.toml").write_text('[connectors.telegram]\nowners = ["1"]\n')
        done = bare.run("doctor", home=home)
        assert done.returncode == 2  # no model is configured; that is the first failure
        assert "'python-telegram-bot>=" in done.stdout
        assert "'mlx-lm" in done.stdout
        assert "goodbot[" not in done.stdout
        assert "Traceback" not in done.stdout + done.stderr

    def test_a_word_that_is_none_is_a_usage_error(self, bare: Bare, tmp_path: Path) -> None:
        done = bare.run("fly", home=tmp_path / "home")
        assert done.returncode == 2
        assert "'fly'" in done.stderr
        assert "Traceback" not in done.stderr


def line(page: str, tool: str) -> list[str]:
    """The words of the one line with which a page installs or runs goodbot by uv or by pipx."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    [found] = re.findall(rf"(?:`|^)({tool}x? [^`\n]+)", text, flags=re.M)
    return shlex.split(found)


class Newcomer:
    """Somebody with an empty home, uv and pipx, and a folder of wheels in the place of an index."""

    def __init__(self, home: Path, wheels: Path) -> None:
        here = surroundings(home, wheels)
        self._home = home
        self._environ = {
            **CLOSED,
            **here,
            "PATH": f"{home}/.local/bin:{here['PATH']}",
            "TMPDIR": str(home),
            "UV_FIND_LINKS": str(wheels),  # and UV_OFFLINE, which is in CLOSED
            "UV_PYTHON": sys._base_executable,  # of no environment, as theirs
            "UV_PYTHON_DOWNLOADS": "never",
            "PIPX_DEFAULT_BACKEND": "pip",  # else it takes the uv that is here
            "PIPX_DISABLE_SHARED_LIBS_AUTO_UPGRADE": "1",  # its pip is the one that Python brings
        }

    def types(self, *words: str) -> str:
        """What a command prints that ends well."""
        done = subprocess.run(
            words,
            cwd=self._home,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=patience(120),
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shop(tmp_path_factory.mktemp("shop") / "wheels", sorted(_closure(BASE)))


@pytest.fixture(params=["uv", "pipx"])
def tool(request: pytest.FixtureRequest) -> str:
    """Asked for before the wheels are packed."""
    require(request.param)
    require("ensurepip")
    return request.param


@pytest.mark.slow
def test_one_line_of_uv_or_pipx_is_enough(
    tool: str, request: pytest.FixtureRequest, told: Message, tmp_path: Path
) -> None:
    """Their lines as the pages have them, with this wheel in the place of the folder and of its extra."""
    wheel, wheels = request.getfixturevalue("wheel"), request.getfixturevalue("wheels")
    home = tmp_path / "ada"
    home.mkdir()
    ada = Newcomer(home, wheels)
    runs, installs = (
        [str(wheel) if word.startswith(".") else word for word in line(page, tool)]
        for page in ("demo", "getting-started")
    )
    assert runs[-2:] == ["goodbot", "demo"]
    said = f"goodbot {told['Version']}\n"
    assert ada.types(*runs[:-1], "--version").endswith(said)
    mine = home / ".local/bin/goodbot"
    assert not mine.exists(), "it was to run once only"
    assert installs[-1] == str(wheel)
    ada.types(*installs)
    assert mine.exists()
    assert ada.types("goodbot", "--version") == said
    assert "`goodbot init` sets it up" in ada.types("goodbot", "status")
    assert not (home / ".goodbot").exists()
