# SPDX-License-Identifier: Apache-2.0
"""Who may do what, and what is kept of them: in a chat, most of it also in a terminal."""

from __future__ import annotations

from goodbot.api.commands.entry import ALL, CHAT_ONLY, LONG, TERMINAL, Arg, Command, Grant, option, words

PEOPLE: tuple[Command, ...] = (
    Command(
        "pair",
        "a one-time code that makes its sender an owner",
        "people:pair",
        (Arg("connector", "which, if there are several", "CONNECTOR", required=False),),
        personal=True,
    ),
    Command(
        "people",
        "who may talk, rate and administer",
        "people:list_or_change",
        (words("owner, rater or talker, and CONNECTOR:ID", "grant ROLE PERSON | revoke|link|unlink PERSON"),),
        personal=True,
    ),
    Command(
        "channels",
        "where the bot is on; switch it on and off",
        "channels:list_or_switch",
        (words("which one is named as in `list`", "list | enable|disable CONNECTOR:ID"),),
        personal=True,
    ),
    Command(
        "enable", "answer in this channel or group", "channels:enable", where=CHAT_ONLY, menus=("shared",)
    ),
    Command(
        "disable",
        "be silent in this channel or group",
        "channels:disable",
        where=CHAT_ONLY,
        menus=("shared",),
    ),
    Command(
        "share",
        "whether your private chats may train what others talk to",
        "privacy:share",
        (Arg("choice", "on: they may; off: they may not", choices=("on", "off")),),
        Grant.TALK,
        where=("chat", "api"),
        menus=LONG,
        personal=True,
        own=True,
    ),
    Command(
        "forget",
        "delete all words and ratings of one person, and what was learnt from them",
        "privacy:forget",
        (
            Arg("person", "`me`; an owner may name another", "me", where=CHAT_ONLY),
            Arg("person", "connector:id, see `people`", "PERSON", where=TERMINAL),
            option("--yes", "do not ask"),
        ),
        Grant.TALK,
        menus=LONG,
        plain=True,
        personal=True,
        own=True,
    ),
    Command(
        "link",
        "your accounts are one person with one vote",
        "links:link",
        (Arg("code", "of the other", "CODE", required=False),),
        Grant.TALK,
        menus=LONG,
        personal=True,
    ),
    Command(
        "unlink",
        "this account is on its own again",
        "links:unlink",
        grant=Grant.TALK,
        personal=True,
        own=True,
    ),
    Command(
        "web",
        "a link that logs you in to the browser, once",
        "web:web",
        (
            option("--user", "whom: by default the owner", "NAME"),
            option("--sign-out", "sign everybody out there"),
        ),
        Grant.RATE,
        program="web:main",
        menus=LONG,
        plain=True,
        personal=True,
    ),
    Command("plugins", "what is plugged in", "status:plugins", where=ALL, personal=True),
)
