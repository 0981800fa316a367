# SPDX-License-Identifier: Apache-2.0
"""One chat's state: what was asked, what may be rated, what was undone. Knows no terminal."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from goodbot.api.actions import COMMAND, HINTS, RETRY
from goodbot.api.commands import as_typed, find
from goodbot.api.labels import is_stars
from goodbot.api.texts import ended
from goodbot.api.texts.terminal import here, phrase, told_here

from goodbot_connectors.terminal.link import Link
from goodbot_connectors.terminal.view import ConversationView
from goodbot_connectors.terminal.words import KEYS, RATINGS, again, answers_now, help_

_COMMAND = re.compile(r"/(?:rl(?:\s+|$))?([A-Za-z?]*)(?:\s+(.*))?$", re.DOTALL)


class Conversation:
    """`links` are to be watched; give what can be read from to `read`."""

    def __init__(self, link: Link, control: Path, view: ConversationView) -> None:
        self.chat = link
        self.waiting: list[str] = []
        """Ids of messages that have no answer yet."""
        self.last = ""
        """The turn of the last answer."""
        self._message = ""
        """The id of the message that it was."""
        self.open = False
        """Whether that answer waits for a rating."""
        self.undoable = False
        """Whether a lone `u` means undo: until something else is said."""
        self.rated: list[str] = []
        """Turns that were rated here, the last one last."""
        self.chats = 1
        """How many chats are attached, with this one."""
        self.failures = 0
        self.status: dict[str, Any] = {}
        self.ended = False
        self._reads = {"language": language} if (language := told_here()) else {}
        self._control = control
        self._view = view
        self._requests: dict[Link, str] = {}
        self._streamed = ""
        self._time = 0
        self._unsettled: set[str] = set()
        """Ids of ratings without a receipt."""
        self._news: list[tuple[Callable[[str], None], str]] = []
        self._untaken: dict[str, dict[str, Any]] = {}
        """Lines that the daemon has not stored yet."""
        self._said: dict[str, str] = {}
        """Messages without an answer, unless the person has stopped it."""

    @property
    def links(self) -> list[Link]:
        """What to wait for."""
        return [self.chat, *self._requests]

    @property
    def busy(self) -> bool:
        """Whether an answer or a command's result is still to come."""
        commands = [name for name in self._requests.values() if name != "poll"]
        return bool(self.waiting or self._unsettled or commands)

    @property
    def polling(self) -> bool:
        """Whether a status is under way."""
        return "poll" in self._requests.values()

    def say(self, text: str) -> None:
        """Send a message, or run the command that it is."""
        if (found := _COMMAND.match(text)) is not None:
            name = found[1].lower()
            if name == "again":
                self._again((found[2] or "").strip())
            elif name in ("", "?", "help") and not found[2]:
                self._view.result(help_())
            else:
                self.command(name, (found[2] or "").split())
            return
        id_ = self._send({"say": text})
        self.waiting.append(id_)
        self._said[id_] = text
        self.open = self.undoable = False
        self.last = ""  # where no answer comes, a key means none, and not the one before

    @property
    def keys(self) -> Sequence[str]:
        """Which of `KEYS` mean something now."""
        if self.waiting:
            return ()
        rates = [key for key in KEYS if key != "u"] if self.open else []
        return [*rates, "u"] if self.rated and self.undoable else rates

    def press(self, key: str) -> bool:
        """Do what one of `KEYS` means; False when there is nothing to do it to."""
        match KEYS[key]:
            case "undo":
                return self.undo()
            case "skip":  # the last answer stays without a rating
                self.open = self.undoable = False
                return True
            case action:
                if self.last:
                    self.rate(action)
                return bool(self.last)

    def rate(self, action: str) -> None:
        """Rate the last answer: `good`, `bad` or `star:4`."""
        self.open = False
        line = {"rate": RATINGS[action]} if action in RATINGS else {"press": action}
        self._unsettled.add(self._send({**line, "turn": self.last}))

    def _again(self, hint: str) -> None:
        """Ask for another answer in place of the last one."""
        if hint not in HINTS or not self.last:
            self._view.note(again() if self.last else phrase("chat_none"))
            return
        press = {"press": f"{RETRY}:{hint}", "turn": self.last, "message": self._message}
        self.waiting.append(self._send(press))
        self.open = self.undoable = False

    def undo(self) -> bool:
        """Take the last rating back; False when there is none."""
        if self.rated:
            self._unsettled.add(self._send({"rate": 0, "turn": self.rated[-1]}))
        return bool(self.rated)

    def stop(self) -> bool:
        """Stop the answer that is coming; False when there is none."""
        for id_ in self.waiting:
            self.chat.send({"stop": id_})
            self._said.pop(id_, None)
        return bool(self.waiting)

    def command(self, name: str, args: list[str]) -> None:
        """Run one command of the daemon's; `poll` is a status that is not shown."""
        link = Link.open(self._control)
        request = {"command": "status" if name == "poll" else name, "args": args, **self._reads}
        if link is not None and link.send(request):
            self._requests[link] = name
        elif name != "poll":
            self._view.result(phrase("chat_not_ready"))

    def read(self, link: Link) -> None:
        """Take what has come in on one of `links`."""
        lines = link.receive()
        if link is self.chat:
            if lines is None:
                self.ended = True
            for line in lines or ():
                self._chat_line(line)
        else:
            answers = [line for line in lines or () if "ok" in line]  # the others tell progress
            if lines is None or answers:
                name = self._requests.pop(link)
                link.close()
                self._answered(name, answers[0] if answers else {"error": phrase("chat_ended")})

    def reattach(self, link: Link) -> None:
        """Go on with a daemon that has come back; what the old one had not stored is sent again."""
        self.chat.close()
        self.chat, self.ended = link, False
        for line in self._untaken.values():
            link.send(line)

    def _send(self, line: dict[str, Any]) -> str:
        id_ = uuid.uuid4().hex
        self._time = max(self._time + 1, int(time.time() * 1000))  # noqa: TID251  a client, no core
        self._untaken[id_] = {**line, **self._reads, "id": id_, "at": self._time}
        if not self.chat.send(self._untaken[id_]):
            self.ended = True
        return id_

    def _chat_line(self, line: dict[str, Any]) -> None:
        match line:
            case {"hello": _, "chats": int(chats)}:
                self.chats = chats
            case {"text": str(text)}:
                self._streamed += text
                self._view.piece(text)
            case {"late": str(text)}:
                self._view.note(text)
            case {"said": str(text)}:
                self.open = False
                self._view.other(text)
            case {"news": str(text)}:
                tell = self._view.note if line.get("id") in self.waiting else self._view.news
                self._news.append((tell, as_typed(text, "/")))
                self._tell()
            case _:
                self._outcome(line)

    def _outcome(self, line: dict[str, Any]) -> None:
        """What came of something that was said here."""
        match line:
            case {"answer": str(text), "turn": str(turn)}:
                self._finish(text)
                self._settle(line.get("to"))
                if turn:
                    self.last, self.open, self.undoable = turn, True, True
                    self._message = str(line.get("id"))
            case {"failed": str(text)}:
                self._end()
                self._settle(line.get("to"), back=True)
                self.failures += 1
                self._view.note(text)
            case {"taken": str(id_)}:
                self._untaken.pop(id_, None)
            case {"refused": str(text), "id": str(id_)}:
                if id_ in self._unsettled:
                    self.open = True
                self._untaken.pop(id_, None)
                self._settle(id_, back=True)
                self.failures += 1
                self._view.note(phrase("chat_not_stored", why=text))
            case {"receipt": str(text), "turn": str(turn)}:
                self._settle(line.get("id"))
                self._receipt(text, turn, line.get("value"), stars=is_stars(str(line.get("source"))))
                self._offered(line.get("offer") or ())
            case _:
                pass  # of a newer daemon

    def _offered(self, actions: Sequence[Any]) -> None:
        """Say how to type what elsewhere is a button."""
        if any(str(action).startswith(f"{RETRY}:") for action in actions):
            self._view.note(again())
        if f"{COMMAND}:train" in actions:
            self._view.note(phrase("chat_train"))

    def _settle(self, id_: Any, *, back: bool = False) -> None:
        """Nothing more comes for this line; where its message has no answer, it can be changed and sent."""
        if (text := self._said.pop(id_, "")) and back:
            self._view.put_back(text)
        self._unsettled.discard(id_)
        if id_ in self.waiting:
            self.waiting.remove(id_)
        self._tell()

    def _tell(self) -> None:
        """Show what came unasked, but not in the middle of an answer."""
        while self._news and not self.waiting:
            tell, text = self._news.pop(0)
            tell(text)

    def _finish(self, text: str) -> None:
        """Show what of the whole answer was not streamed."""
        if text.startswith(self._streamed):
            self._view.piece(text[len(self._streamed) :])
        else:  # attached half way, or the core has changed it
            self._view.whole()
            self._view.piece(text)
        self._end()

    def _end(self) -> None:
        self._streamed = ""
        self._view.whole()

    def _receipt(self, text: str, turn: str, value: float | None, *, stars: bool = False) -> None:
        """Tell it, and remember what is rated; without a value a rating was taken back."""
        if text:
            mark = "" if value is None else "★ " if stars else "👍 " if value > 0 else "👎 "
            self._view.note((mark if turn else "") + text)
        if not turn:
            return
        self.rated = [other for other in self.rated if other != turn]
        if value is not None:
            self.rated.append(turn)
        if turn == self.last:
            self.open = value is None

    def _answered(self, name: str, line: dict[str, Any]) -> None:
        if name == "poll":
            if line.get("ok"):
                self._compare(line["data"])
        elif not line.get("ok"):
            self.failures += 1
            self._view.result(as_typed(ended(str(line.get("error")), here()), "/"))
        elif (command := find(name)) and command.name in RATINGS:
            self._receipt(line["text"], line["data"].get("turn", ""), RATINGS[command.name] or None)
        else:
            self._view.result(as_typed(line["text"], "/"))

    def _compare(self, now: dict[str, Any]) -> None:
        """Tell when another version answers."""
        before, self.status = self.status, now
        if changed := answers_now(before, now):
            self._view.news(changed)
