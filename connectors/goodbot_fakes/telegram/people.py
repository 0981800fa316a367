# SPDX-License-Identifier: Apache-2.0
"""People with the app in their hands: what they do becomes updates, by Telegram's rules."""

from __future__ import annotations

from typing import Any

from goodbot_fakes.telegram import keyboards, reactions, texts
from goodbot_fakes.telegram.account import BotAccount, Toast
from goodbot_fakes.telegram.chats import HERE, Chat, Message, as_reply, member
from goodbot_fakes.telegram.errors import Json
from goodbot_fakes.telegram.reactions import reaction


class Person:
    """One user, human or (with `is_bot`) another bot. Actions are in their private chat by default."""

    def __init__(self, account: BotAccount, user: Json) -> None:
        self._account = account
        self.user = user

    @property
    def id(self) -> int:
        return self.user["id"]

    @property
    def chat(self) -> Chat:
        """The private chat with the bot."""
        return self._account.chats[self.id]

    def says(
        self,
        text: str,
        *,
        chat: Chat | None = None,
        reply_to: int = 0,
        thread: int = 0,
        mention: bool = False,
        **fields: Any,
    ) -> int:
        """Write a message, with `fields` (a photo, a `forward_origin`) beside; its id."""
        account, chat = self._account, chat or self.chat
        if chat.private:
            chat.started, chat.blocked = True, False
        if mention:
            text = f"@{account.user['username']} {text}".strip()
        if text:
            name = "text" if not {"photo", "document", "voice", "video"} & fields.keys() else "caption"
            fields = {name: text} | fields
            if entities := texts.entities_of(text):
                fields = {"entities" if name == "text" else "caption_entities": entities} | fields
        if reply_to:
            fields["reply_to_message"] = as_reply(chat.messages[reply_to].json)
        message = account.post(chat, self.user, thread=thread, **fields)
        account.tell(chat, message.json)
        return message.id

    def edits(self, message_id: int, text: str, *, chat: Chat | None = None) -> None:
        """Change a message of one's own."""
        chat = chat or self.chat
        message = chat.messages[message_id]
        assert message.author == self.id, "people edit their own messages"
        message.json |= {"text": text, "edit_date": self._account.seconds()}
        message.json["entities"] = texts.entities_of(text)
        self._account.tell(chat, message.json, "edited_message")

    def reacts(self, message_id: int, *words: str, chat: Chat | None = None) -> None:
        """Choose these reactions on a message, in place of those before; none takes them away.

        A bot is told in private chats and where it is an administrator.
        """
        account, chat = self._account, chat or self.chat
        most = reactions.MOST if self.user.get("is_premium") else 1
        assert len(words) <= most, f"without Premium a person has one reaction, with it {most}"
        message = chat.messages[message_id]
        before, after = message.reactions.get(self.id, []), [reaction(word) for word in words]
        if before == after:
            return
        message.reactions[self.id] = after
        if not (chat.private or account.is_admin(chat)):
            return
        changed: Json = {"chat": chat.json, "message_id": message_id, "date": account.seconds()}
        lists = {"old_reaction": before, "new_reaction": after}
        account.updates.put("message_reaction", changed | {"user": self.user} | lists)

    def presses(self, message_id: int, data: str, *, chat: Chat | None = None) -> str:
        """Press a button with this data, be it there or not: clients can be made to. The query's id."""
        account, chat = self._account, chat or self.chat
        found = chat.messages.get(message_id)
        gone: Json = {"chat": chat.json, "message_id": message_id, "date": 0}
        id_ = account.query(self.id)
        query = {
            "id": id_,
            "from": self.user,
            "chat_instance": str(-(chat.id * 7919)),
            "data": data,
            "message": found.json if found else gone,
        }
        account.updates.put("callback_query", query)
        return id_

    def presses_label(self, message_id: int, label: str, *, chat: Chat | None = None) -> str:
        """Press the button that is called so."""
        chat = chat or self.chat
        found = keyboards.buttons(chat.messages[message_id].json)
        data = next(button["callback_data"] for button in found if label in button["text"])
        return self.presses(message_id, data, chat=chat)

    def answers(self, text: str) -> int:
        """Type into the reply interface that the bot's newest `ForceReply` has opened."""
        prompts = [message.id for message in self.chat.messages.values() if message.force_reply]
        assert prompts, "the bot has asked for no reply"
        return self.says(text, reply_to=prompts[-1])

    def blocks(self) -> None:
        """Stop the bot. It hears of it, and may not write until they write again."""
        self.chat.blocked = True
        self._bot_became(self.chat, "member", "kicked")

    def promotes(self, chat: Chat) -> None:
        """Make the bot an administrator of a group."""
        self._changes(chat, "administrator")

    def demotes(self, chat: Chat) -> None:
        """Make the bot an ordinary member again."""
        self._changes(chat, "member")

    def removes(self, chat: Chat) -> None:
        """Throw the bot out of a group."""
        self._changes(chat, "kicked")

    def menu(self, chat: Chat | None = None) -> list[Json]:
        """What is suggested to this person after a slash."""
        chat = chat or self.chat
        return self._account.menus.shown(
            chat.id,
            self.id,
            private=chat.private,
            language=self.user.get("language_code", ""),
            admin=chat.members.get(self.id) in ("creator", "administrator"),
        )

    @property
    def toasts(self) -> list[Toast]:
        """What was shown to this person alone."""
        return [toast for toast in self._account.seen.toasts if toast.user == self.id]

    def sees(self, chat: Chat | None = None) -> list[Message]:
        """The bot's messages in a chat, oldest first."""
        chat = chat or self.chat
        return [one for one in chat.messages.values() if one.author == self._account.id]

    @property
    def draft(self) -> str:
        """What the bot is seen to be writing in the private chat."""
        draft = self._account.seen.drafts.get(self.id)
        return draft.text if draft and draft.until > self._account.clock.monotonic() else ""

    def _changes(self, chat: Chat, status: str) -> None:
        before, chat.members[self._account.id] = chat.members.get(self._account.id, "left"), status
        self._bot_became(chat, before, status)

    def _bot_became(self, chat: Chat, before: str, after: str) -> None:
        account = self._account
        change = {
            "chat": chat.json,
            "from": self.user,
            "date": account.seconds(),
            "old_chat_member": member(account.user, before),
            "new_chat_member": member(account.user, after),
        }
        account.updates.put("my_chat_member", change)

    def joins(self, chat: Chat) -> None:
        """Come into a group; the bot sees the service message."""
        assert chat.members.get(self.id) not in HERE
        chat.members[self.id] = "member"
        account = self._account
        message = account.post(chat, self.user, new_chat_members=[self.user])
        account.tell(chat, message.json)
