# SPDX-License-Identifier: Apache-2.0
"""What setting up, checking and leaving a platform needs, without the connector running.

`goodbot connect` (and `init`) shows the guide and the manifest, asks for the secrets and shows who
they belong to, `goodbot doctor` examines what they may do, `goodbot disconnect` and `uninstall` take
away what the connector has left on the platform. A `ConnectorSpec` names its `ConnectorSetup` the way
it names its connector, so that no SDK is imported before it is needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from goodbot.config.secrets import Secrets

if TYPE_CHECKING:
    from goodbot.api.connector import ConnectorSpec
    from goodbot.api.plugins import PluginHost
    from goodbot.config import Config, Grants


class CheckState(StrEnum):
    """How a check came out; `warn` does not keep the bot from working."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One line of `goodbot doctor`."""

    part: str
    """What was looked at: `database`, `telegram token`."""
    state: CheckState
    text: str
    fix: str = ""
    """What to do, as a command or a sentence; empty when nothing is wrong."""
    exit_code: int = 1
    """Of the program, when this is the worst that was found and `state` is FAIL."""


def ok(part: str, text: str) -> Check:
    """Nothing to do."""
    return Check(part=part, state=CheckState.OK, text=text)


def warn(part: str, text: str, fix: str = "") -> Check:
    """Report something that a person should know; the bot works.

    Args:
        part: The part of goodbot that was looked at.
        text: What was found.
        fix: What to do, as a command or a sentence.

    Returns:
        The line of `goodbot doctor`.
    """
    return Check(part=part, state=CheckState.WARN, text=text, fix=fix)


def fail(part: str, text: str, fix: str = "", *, exit_code: int = 1) -> Check:
    """Report something with which the bot does not work.

    Args:
        part: The part of goodbot that was looked at.
        text: What was found.
        fix: What to do, as a command or a sentence.
        exit_code: Of the program, when this is the worst that was found.

    Returns:
        The line of `goodbot doctor`.
    """
    return Check(part=part, state=CheckState.FAIL, text=text, fix=fix, exit_code=exit_code)


@dataclass(frozen=True, kw_only=True)
class Examined:
    """What a probe may look at. Nothing here may be changed by looking."""

    config: Config
    plugins: PluginHost
    environ: Mapping[str, str]
    """The environment with the stored tokens; values are secret."""
    daemon: Mapping[str, Any] | None
    """`goodbot status --json` of the running daemon, None while none runs."""
    demo_model: bool = False
    """Whether the demonstration model may answer where none is configured."""


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A part that `goodbot doctor` looks at. `run` reports trouble as checks; it starts nothing."""

    name: str
    run: Callable[[Examined], Awaitable[Sequence[Check]]]
    seconds: float = 10.0
    """Longer than this, and the probe has failed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """Whose token it is."""

    account: str
    """The platform's stable id of the bot."""
    name: str
    """As people see it: `@good_bot`."""
    link: str = ""
    """Where a person writes to it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Permission:
    """One thing that the bot asks the platform for."""

    name: str
    """As the platform calls it: `reactions:read`."""
    why: str
    """What goodbot does with it, in one line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """What a platform makes the bot's account of, where it takes such a file."""

    text: str
    """The file, made of what the connector's code needs, or what there is to read of it."""
    file: str
    """What the file is called: `slack-manifest.yaml`; empty where a link is all that is needed."""
    packed: bytes = b""
    """The file itself where it is more than the text: a zip around it."""
    permissions: tuple[Permission, ...] = ()
    link: str = ""
    """Where the file is pasted or given, or a page that has it filled in."""
    filled: bool = False
    """Whether the link has it filled in: then there is nothing to copy."""
    of_account: bool = False
    """Whether it names the account: then it is shown when that is known, not before."""

    @property
    def content(self) -> bytes:
        """What is written into `file`."""
        return self.packed or self.text.encode()


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A setting without a default that is right for all: `goodbot connect` asks for it."""

    key: str
    """Of `[connectors.NAME]`, a text: `app_id`. One that is `true` or `false` is `optional`."""
    text: str
    """What the platform calls it: `Application (client) ID`; of one that is on or off, a question."""
    optional: bool = False
    """Whether it may stay empty."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sketch:
    """A drawing of where something is on the platform's own page, for whoever sets goodbot up in a browser.

    Its words are the platform's.
    """

    line: int
    """Which line of the guide it belongs to, from 1."""
    address: str
    """Of the page: `api.slack.com/apps`."""
    menu: tuple[str, ...] = ()
    """Entries at the side of the page, from the top."""
    here: str = ""
    """The entry of these that is chosen."""
    field: str = ""
    """What the thing is called."""
    value: str = ""
    """How it begins, or what is typed."""
    press: str = ""
    """The button beside it."""


class ConnectorSetup(ABC):
    """Setting up one platform. Methods raise `RetriableError` or `FatalConnectorError`."""

    title: ClassVar[str]
    """The platform's name as people write it."""
    guide: ClassVar[str]
    """Where the secrets come from, in a few lines for somebody who has never done it."""
    sketches: ClassVar[tuple[Sketch, ...]] = ()
    """Drawings for its lines."""
    questions: ClassVar[tuple[Question, ...]] = ()
    """Settings that are asked for before the secrets."""
    pairs: ClassVar[bool] = True
    """Whether somebody owns the bot there by sending it a code, or by their user id; False where
    they log in from this machine, with `goodbot web`."""

    owner: ClassVar[str] = ""
    """The id of its owner there, where nobody has to be asked: whoever sits at this machine (`me`)."""

    remove_seconds: ClassVar[float] = 15.0
    """So long `remove` may take, and `install` at least; more where they run another program's commands."""

    home: Path
    """goodbot's directory; set, with `address`, by who makes the setup."""
    address: str = "http://127.0.0.1:8321"
    """The daemon's base URL, as `ConnectorHost.address`."""
    socket: bool = False
    """Whether the daemon is to listen at its Unix socket, too (`[http] socket`); set like `address`."""
    channels: Sequence[str] = ()
    """Ids of the shared channels in which the bot is on, as far as the doctor knows them."""

    def __init__(self, secrets: Secrets, settings: Any) -> None:
        self.secrets = secrets
        self.settings = settings

    @classmethod
    def malformed(cls, name: str, value: str) -> str:
        """Say why `value` cannot be the secret `name`, as a sentence; empty if it may be."""
        return "" if value.strip() else f"{name} is empty"

    @classmethod
    def wrong_user_id(cls, value: str) -> str:
        """Say why `value` can be nobody's user id there, as a sentence; empty if it may be."""
        return ""

    @classmethod
    def wrong_setting(cls, key: str, value: str) -> str:
        """Say why `value` cannot be the setting `key` of `questions`, as a sentence; empty if it may be."""
        return ""

    @classmethod
    def called(cls, name: str) -> str:
        """Name the secret `name` as the platform does, for the question: `Bot token (xoxb-…)`."""
        return name

    @classmethod
    def pairing_link(cls, bot: Identity, code: str) -> str:
        """Make a link that sends the one-time code to the bot when it is opened there; empty for none."""
        return ""

    def manifest(self) -> Manifest | None:
        """Make the file that the account is made of, by the settings; None where there is no such file.

        Works without any secret (with a placeholder in what a secret would tell), and asks nobody.
        """
        return None

    def addresses(self) -> Sequence[str]:
        """List what it calls, by the settings; the doctor says what of that goes through a proxy."""
        return ()

    def listens(self) -> str:
        """Say where the connector itself takes calls, as `host:port`, by the settings; empty for nowhere."""
        return ""

    @abstractmethod
    async def identify(self) -> Identity:
        """Ask the platform whose secrets these are."""

    @abstractmethod
    async def examine(self) -> Sequence[Check]:
        """Find out what the secrets may do there, and what is missing for what goodbot needs."""

    async def install(self, *, dry_run: bool) -> Sequence[str]:
        """Change the settings of the program that is to call us; by default there is nothing to do.

        Called once our own section of the config is stored, and again at every `connect`: a second
        time changes nothing. Returns a text each; with `dry_run` what would be changed. Its first line
        is a sentence, further ones are to be copied: they are printed as they are.
        """
        return ()

    async def remove(self, *, dry_run: bool) -> Sequence[str]:
        """Take away what the connector has left on the platform (commands, a webhook).

        What `install` has changed is as it was before. Returns one line each; with `dry_run` what
        would be removed.
        """
        return ()


class GoodbotProgram(ABC):
    """The `goodbot` program, for a plugin's own command: `arguments.program`."""

    @abstractmethod
    def connector(self, spec: ConnectorSpec) -> tuple[Grants, ConnectorSetup]:
        """Who may what at a connector of the plugin's, and its setup as the config has it.

        Raises UsageError while it is not connected, ConfigError.
        """

    @abstractmethod
    def run(self, command: str, *args: str) -> str:
        """What a command of the chat says, by the daemon or without it. Raises GoodbotError."""
