# SPDX-License-Identifier: Apache-2.0
"""Setting up, examining and leaving Discord, on a Discord of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from goodbot.api.setup import Check, CheckState
from goodbot.base.errors import ConnectorError, FatalConnectorError, RetriableError
from goodbot.config.secrets import Secret, Secrets
from goodbot_connectors.discord import SPEC, permissions
from goodbot_connectors.discord.config import TOKEN, DiscordSettings
from goodbot_connectors.discord.permissions import BITS
from goodbot_fakes.discord import TOKEN as REAL
from goodbot_fakes.discord import WRONG_TOKEN, Channel, FakeDiscord, intents

from tests.support import require

require("discord")

from goodbot.base.clock import SystemClock  # noqa: E402
from goodbot_connectors.discord import access, commands, members  # noqa: E402  they need discord.py
from goodbot_connectors.discord.api import Api  # noqa: E402
from goodbot_connectors.discord.setup import DiscordSetup  # noqa: E402

MEMBERS = intents.GUILD_MEMBERS


def setup_of(discord: FakeDiscord, token: str = REAL, **settings: Any) -> DiscordSetup:
    found = DiscordSettings(api_base=discord.api, gateway=discord.gateway_url, **settings)
    return DiscordSetup(Secrets(SPEC.secrets, {TOKEN: token}), found)


def by_part(checks: Sequence[Check]) -> dict[str, Check]:
    return {check.part: check for check in checks}


@pytest.fixture
def lab(discord: FakeDiscord) -> Channel:
    """A channel of a server where nobody may anything but by a role."""
    guild = discord.guild("The lab", [discord.person("ada")], rights=permissions.bits())
    guild.roles[guild.id].permissions = 0
    return discord.channel("lab", guild)


async def test_the_token_says_whose_it_is_and_where_one_writes_to_it(discord: FakeDiscord) -> None:
    me = await setup_of(discord).identify()
    assert (me.account, me.name) == (discord.world.bot.id, "@goodbot")
    assert me.link == f"https://discord.com/users/{me.account}"


@pytest.mark.parametrize("token", [WRONG_TOKEN, "not.a.token"])
async def test_a_wrong_token_is_told_without_it(discord: FakeDiscord, token: str) -> None:
    with pytest.raises(FatalConnectorError, match=TOKEN) as caught:
        await setup_of(discord, token).examine()
    assert token not in str(caught.value)


async def test_a_network_that_is_down_is_no_wrong_token(discord: FakeDiscord) -> None:
    discord.cut()
    with pytest.raises(RetriableError, match="cannot be reached"):
        await setup_of(discord).identify()
    discord.mend()
    discord.faults.break_down()
    with pytest.raises((RetriableError, ConnectorError)):
        await setup_of(discord).identify()


async def test_what_is_lost_without_the_intent_is_said(discord: FakeDiscord) -> None:
    check = by_part(await setup_of(discord).examine())["discord intents"]
    assert check.state is CheckState.OK
    for lost in ("replies to it without a ping", "later words in its threads"):
        assert lost in check.text
    assert "message_content = true" in check.fix
    discord.application.privileged.add(intents.MESSAGE_CONTENT)
    check = by_part(await setup_of(discord, message_content=True).examine())["discord intents"]
    assert (check.state, check.fix) == (CheckState.OK, "")


async def test_an_intent_that_is_wanted_and_off_is_a_failure(discord: FakeDiscord) -> None:
    check = by_part(await setup_of(discord, message_content=True).examine())["discord intents"]
    assert check.state is CheckState.FAIL
    assert "Message Content" in check.fix


@pytest.mark.parametrize("gone", permissions.needed())
async def test_a_missing_permission_is_named_with_what_it_is_for(
    discord: FakeDiscord, lab: Channel, gone: str
) -> None:
    setup = setup_of(discord)
    setup.channels = [lab.id]
    check = by_part(await setup.examine())["discord permissions"]
    assert check.state is CheckState.OK, check.text
    lab.denied[discord.world.bot.id] = BITS[gone]
    check = by_part(await setup.examine())["discord permissions"]
    assert check.state is CheckState.FAIL
    if gone != "VIEW_CHANNEL":  # then nothing is told of it any more
        assert f"{gone}: {permissions.WHY[gone]}" in check.text
    assert permissions.invite(discord.application.id) in check.fix


async def test_a_thread_has_the_permissions_of_its_channel(discord: FakeDiscord, lab: Channel) -> None:
    thread = discord.world.add_thread("one", lab, discord.world.bot.id)
    setup = setup_of(discord)
    setup.channels = [thread.id]
    assert by_part(await setup.examine())["discord permissions"].state is CheckState.OK


async def test_a_channel_where_it_is_not_is_told(discord: FakeDiscord) -> None:
    setup = setup_of(discord)
    setup.channels = ["1440000000000000077"]
    check = by_part(await setup.examine())["discord permissions"]
    assert check.state is CheckState.FAIL
    assert "1440000000000000077" in check.text


async def test_commands_are_looked_at_and_taken_away(discord: FakeDiscord) -> None:
    setup = setup_of(discord)
    first = by_part(await setup.examine())["discord commands"]
    assert (first.state, "once goodbot has started" in first.text) == (CheckState.OK, True), "no false alarm"
    discord.application.commands.overwrite(commands.commands()[:1])
    assert by_part(await setup.examine())["discord commands"].state is CheckState.WARN
    discord.application.commands.overwrite([])
    assert await setup.remove(dry_run=False) == ()
    discord.application.commands.overwrite(commands.commands())
    assert by_part(await setup.examine())["discord commands"].state is CheckState.OK
    told = await setup.remove(dry_run=True)
    assert told == (f"its {len(commands.commands())} commands on Discord",)
    assert discord.application.commands.all()
    assert await setup.remove(dry_run=False) == told
    assert discord.application.commands.all() == []


GUILD = {"id": "10", "owner_id": "1", "roles": [{"id": "10", "permissions": "1024"}]}


@pytest.mark.parametrize(
    ("roles", "overwrites", "has"),
    [
        ((), [], 1024),
        ((), [{"id": "10", "deny": "1024"}], 0),
        (("20",), [{"id": "10", "deny": "1024"}, {"id": "20", "allow": "1024"}], 1024 | 64),
        (("20", "21"), [{"id": "20", "deny": "64"}, {"id": "21", "allow": "64"}], 1024 | 64),
        (("20",), [{"id": "20", "allow": "2048"}, {"id": "5", "deny": "2048"}], 1024 | 64),
        (("22",), [{"id": "5", "deny": "1024"}], None),
    ],
)
def test_permissions_are_computed_as_discord_does(
    roles: tuple[str, ...], overwrites: list[dict[str, Any]], has: int | None
) -> None:
    named = [
        {"id": "20", "permissions": "64"},
        {"id": "21", "permissions": "0"},
        {"id": "22", "permissions": "8"},
    ]
    guild = GUILD | {"roles": [*GUILD["roles"], *named]}
    channel = {"permission_overwrites": overwrites}
    found = access.computed(guild, channel, user="5", roles=frozenset(roles))
    if has is None:
        assert permissions.missing(found) == (), "an administrator may everything"
    else:
        assert found == has
    assert permissions.missing(access.computed(guild, channel, user="1", roles=frozenset())) == ()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("", "nothing was typed"),
        ("Bot abc", "word Bot"),
        ("1440000000000000000", "that is an id"),
        ("abcdefghijklmnopqrstuvwxyz012345", "client secret"),
        ("a.b", "three parts"),
        ("bm90LWFuLWlk.x.y", "three parts"),
        (f"{REAL} ", ""),
        (REAL, ""),
        ("ä.b.c", "not copied whole"),
        ("x" * 300, "not copied whole"),
    ],
)
def test_what_no_token_is_is_said_without_asking(value: str, told: str) -> None:
    found = DiscordSetup.malformed(TOKEN, value)
    assert (told in found) if told else found == ""
    assert len(value) < 4 or value not in found


def test_a_name_is_no_user_id() -> None:
    assert DiscordSetup.wrong_user_id("80351110224678912") == ""
    for wrong in ("ada", "@ada", "7", "", "80351110224678912x"):
        assert "Copy User ID" in DiscordSetup.wrong_user_id(wrong)


def test_the_invite_link_needs_nobody_to_be_asked() -> None:
    with_token = DiscordSetup(Secrets(SPEC.secrets, {TOKEN: REAL}), DiscordSettings()).manifest()
    assert with_token.link == permissions.invite("420000100000000001")
    without = DiscordSetup(Secrets(SPEC.secrets, {}), DiscordSettings()).manifest()
    assert "YOUR_APPLICATION_ID" in without.link
    for permission in without.permissions:
        assert permission.name in without.text
        assert permission.why in without.text


async def with_roles(discord: FakeDiscord) -> tuple[Api, str, str]:
    people = [discord.person(name) for name in ("ada", "bob", "carl")]
    guild = discord.guild("The lab", people)
    role = discord.world.ids.next()
    guild.roles[role] = type(guild.roles[guild.id])(id=role, name="raters", permissions=0)
    guild.members[people[1].id] = [role]
    guild.members[discord.world.bot.id].append(role)
    api = Api(Secret(REAL), SystemClock(), discord.api)
    await api.open()
    return api, f"{guild.id}/{role}", people[1].id


async def test_the_people_with_a_role_are_found_page_by_page(
    discord: FakeDiscord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "_PAGE", 2)
    discord.application.privileged.add(MEMBERS)
    api, group, bob = await with_roles(discord)
    assert await members.with_role(api, group) == {bob}, "bots rate nothing"
    await api.close()


async def test_where_discord_does_not_tell_the_owner_is_told_what_to_switch_on(discord: FakeDiscord) -> None:
    api, group, _ = await with_roles(discord)
    with pytest.raises(ConnectorError, match="Server Members intent"):
        await members.with_role(api, group)
    for wrong in ("raters", "1/x", "", group.replace("/", ":")):
        with pytest.raises(ConnectorError, match="SERVER/ROLE"):
            await members.with_role(api, wrong)
    await api.close()


def test_an_environment_without_the_token_is_told_its_name() -> None:
    with pytest.raises(FatalConnectorError, match=TOKEN):
        Api(Secrets(SPEC.secrets, {}).get(TOKEN), SystemClock())
