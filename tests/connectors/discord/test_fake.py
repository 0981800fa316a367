# SPDX-License-Identifier: Apache-2.0
"""The fake Discord by itself, with a bare discord.py client: what Discord does, it does."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import discord as library
import pytest
from discord import app_commands, ui
from goodbot.testing.clock import VirtualClock
from goodbot_fakes.discord import (
    FORUM,
    TOKEN,
    WRONG_TOKEN,
    Channel,
    FakeDiscord,
    Person,
    RateLimits,
    components,
    intents,
    permissions,
)

from tests.connectors.discord import schema
from tests.connectors.discord.client import Client, connected
from tests.support import patience

CONTENT = library.Intents(library.Intents.default().value | intents.MESSAGE_CONTENT)


@pytest.fixture
def ada(discord: FakeDiscord) -> Person:
    return discord.person("ada")


@pytest.fixture
def lab(discord: FakeDiscord, ada: Person) -> Channel:
    guild = discord.guild("The lab", [ada, discord.person("bob")])
    return discord.channel("lab", guild)


@pytest.fixture
async def client(discord: FakeDiscord, lab: Channel) -> AsyncIterator[Client]:
    async with connected(discord) as client:
        yield client


def channel(client: Client, place: Channel) -> Any:
    return client.get_partial_messageable(int(place.id))


async def rest(
    discord: FakeDiscord, method: str, path: str, body: Any = None, token: str = f"Bot {TOKEN}"
) -> tuple[int, Any, str]:
    """Status, JSON and content type of a plain request."""
    async with (
        aiohttp.ClientSession() as http,
        http.request(method, f"{discord.api}{path}", json=body, headers={"Authorization": token}) as answer,
    ):
        found = await answer.json() if answer.status != 204 else None
        return answer.status, found, answer.headers.get("Content-Type", "")


# -- the gateway


async def test_a_client_is_greeted_and_knows_where_it_is(
    discord: FakeDiscord, client: Client, lab: Channel
) -> None:
    assert client.user is not None
    assert str(client.user.id) == discord.world.bot.id
    [guild] = client.guilds
    assert [one.name for one in guild.text_channels] == ["lab"]
    assert guild.me.guild_permissions.add_reactions
    assert not guild.me.guild_permissions.manage_messages
    assert discord.gateway.connections == ["identify"]


async def test_words_are_hidden_without_the_intent_but_for_what_is_meant_for_the_bot(
    discord: FakeDiscord, client: Client, ada: Person, lab: Channel
) -> None:
    ada.says("talk among people", lab)
    ada.says("hello bot", lab, mention=True)
    ada.says("in private")
    own = await channel(client, lab).send("my own words")
    answered = discord.world.messages[str(own.id)]
    ada.says("with a ping", lab, reply_to=answered)
    ada.says("without a ping", lab, reply_to=answered, ping=False)
    await discord.until(lambda: len(client.messages) == 6)
    bot = discord.world.bot.id
    assert [message.content for message in client.messages] == [
        "",
        f"<@{bot}> hello bot",
        "in private",
        "my own words",
        "with a ping",
        "",
    ]
    assert client.messages[-1].reference is not None
    resolved = client.messages[-1].reference.resolved
    assert isinstance(resolved, library.Message)
    assert resolved.content == "my own words"
    history = [message.content async for message in channel(client, lab).history()]
    assert history == ["", "with a ping", "my own words", f"<@{bot}> hello bot", ""]


async def test_with_the_intent_it_reads_all(discord: FakeDiscord, ada: Person, lab: Channel) -> None:
    discord.application.privileged.add(intents.MESSAGE_CONTENT)
    async with connected(discord, intents=CONTENT) as client:
        ada.says("talk among people", lab)
        await discord.until(lambda: client.messages)
        [message] = [message async for message in channel(client, lab).history()]
    assert message.content == client.messages[0].content == "talk among people"


async def test_an_intent_that_is_not_switched_on_closes_with_4014(discord: FakeDiscord, lab: Channel) -> None:
    with pytest.raises(library.PrivilegedIntentsRequired):
        async with connected(discord, intents=CONTENT):
            raise AssertionError("it was let in")
    assert discord.gateway.connections == ["4014"]


async def test_a_wrong_token_is_refused_by_both_sides(discord: FakeDiscord) -> None:
    with pytest.raises(library.LoginFailure):
        async with connected(discord, token=WRONG_TOKEN):
            raise AssertionError("it was let in")
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{discord.gateway_url}?v=10&encoding=json") as ws,
    ):
        assert (await ws.receive_json())["op"] == 10
        await ws.send_json({"op": 2, "d": {"token": "no", "intents": 0, "properties": {"os": "x"}}})
        assert (await ws.receive()).data == 4004


async def test_a_plain_connection_is_not_compressed_and_heartbeats_are_answered(discord: FakeDiscord) -> None:
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{discord.gateway_url}?v=10&encoding=json") as ws,
    ):
        hello = await ws.receive_json()
        assert hello["d"]["heartbeat_interval"] == 41_250
        await ws.send_json({"op": 1, "d": None})
        assert (await ws.receive_json())["op"] == 11
        await ws.send_json({"op": 8, "d": {}})
        assert (await ws.receive()).data == 4003, "who are you?"


async def test_a_compressed_connection_is_one_zlib_stream(discord: FakeDiscord) -> None:
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{discord.gateway_url}?v=10&encoding=json&compress=zlib-stream") as ws,
    ):
        unpack = zlib.decompressobj()
        first = await ws.receive_bytes()
        await ws.send_json({"op": 1, "d": None})
        second = await ws.receive_bytes()
    assert first.endswith(b"\x00\x00\xff\xff")
    assert [json.loads(unpack.decompress(one))["op"] for one in (first, second)] == [10, 11]


async def test_resume_tells_what_was_missed_once_and_in_order(
    discord: FakeDiscord, client: Client, ada: Person, lab: Channel
) -> None:
    ada.says("before", lab, mention=True)
    await discord.until(lambda: client.messages)
    discord.cut()
    ada.says("first", lab, mention=True)
    ada.says("second", lab, mention=True)
    discord.mend()
    await discord.until(lambda: len(client.messages) == 3)
    assert [message.clean_content.split()[-1] for message in client.messages] == ["before", "first", "second"]
    assert client.resumed == 1
    assert discord.gateway.connections == ["identify", "resume"]


@pytest.mark.parametrize("code", [None, 4000])
async def test_reconnect_and_other_closes_are_resumed(
    discord: FakeDiscord, client: Client, ada: Person, lab: Channel, code: int | None
) -> None:
    await (discord.gateway.reconnect() if code is None else discord.gateway.close(code))
    await discord.until(lambda: client.resumed)
    ada.says("still there?", lab)
    await discord.until(lambda: client.messages)
    assert discord.gateway.connections[-1] == "resume"


async def test_an_invalid_session_identifies_anew_and_what_was_missed_is_lost(
    discord: FakeDiscord, client: Client, ada: Person, lab: Channel
) -> None:
    await discord.gateway.invalidate()
    ada.says("nobody hears this", lab)
    await discord.until(lambda: discord.gateway.connections == ["identify", "identify"])
    ada.says("but this", lab, mention=True)
    await discord.until(lambda: client.messages)
    assert len(client.messages) == 1


async def test_a_session_that_has_timed_out_cannot_be_resumed(discord: FakeDiscord, client: Client) -> None:
    await discord.gateway.close(4009)
    await discord.until(lambda: discord.gateway.connections[-1] == "identify", 20)
    assert discord.gateway.connections == ["identify", "4009", "invalid", "identify"]


async def test_a_session_is_kept_for_two_minutes(ada: Person) -> None:
    clock = VirtualClock(waits=True)
    async with FakeDiscord(clock=clock) as discord:
        session = discord.sessions.open(intents.GUILD_MESSAGES)
        discord.sessions.lost(session)
        clock.advance(119)
        assert discord.sessions.resume(session.id, 0) is not None
        clock.advance(2)
        assert discord.sessions.resume(session.id, 0) is None


async def test_what_the_bot_may_not_see_it_is_not_told(
    discord: FakeDiscord, client: Client, ada: Person, lab: Channel
) -> None:
    hidden = discord.channel("hidden", discord.world.guilds[lab.guild_id])
    hidden.denied[discord.world.bot.id] = permissions.VIEW_CHANNEL
    ada.says("psst", hidden, mention=True)
    ada.says("hello", lab, mention=True)
    await discord.until(lambda: client.messages)
    assert [str(message.channel.id) for message in client.messages] == [lab.id]
    with pytest.raises(library.Forbidden) as caught:
        await channel(client, hidden).send("hi")
    assert caught.value.code == 50001


# -- messages and reactions


async def test_messages_are_sent_edited_and_deleted(
    discord: FakeDiscord, client: Client, ada: Person, lab: Channel
) -> None:
    asked = ada.says("hello", lab, mention=True)
    place = channel(client, lab)
    sent = await place.send("One.", reference=place.get_partial_message(int(asked.id)))
    await sent.edit(content="Two.")
    [message] = discord.said(lab)
    assert (message.content, message.reply_to, bool(message.edited_at)) == ("Two.", asked.id, True)
    assert message.mentions == [ada.id]
    await sent.delete()
    assert discord.said(lab) == []
    with pytest.raises(library.Forbidden) as caught:
        await place.get_partial_message(int(asked.id)).edit(content="mine now")
    assert caught.value.code == 50005
    with pytest.raises(library.Forbidden) as caught:
        await place.get_partial_message(int(asked.id)).delete()
    assert caught.value.code == 50013
    with pytest.raises(library.NotFound) as lost:
        await sent.edit(content="gone")
    assert lost.value.code == 10008


async def test_the_same_nonce_is_the_same_message(discord: FakeDiscord, client: Client, lab: Channel) -> None:
    path, body = (f"/channels/{lab.id}/messages", {"content": "x", "nonce": "1", "enforce_nonce": True})
    first, again = [await rest(discord, "POST", path, body) for _ in range(2)]
    assert first[1]["id"] == again[1]["id"]
    assert len(discord.said(lab)) == 1


async def test_too_long_and_empty_messages_are_refused(
    discord: FakeDiscord, client: Client, lab: Channel
) -> None:
    for text, code in (("x" * 2001, 50035), (" ", 50006)):
        with pytest.raises(library.HTTPException) as caught:
            await channel(client, lab).send(text)
        assert caught.value.code == code
    await channel(client, lab).send("x" * 2000)


async def test_nobody_is_pinged_who_was_not_to_be(
    discord: FakeDiscord, client: Client, ada: Person, lab: Channel
) -> None:
    text = f"<@{ada.id}> @everyone"
    await channel(client, lab).send(text, allowed_mentions=library.AllowedMentions.none())
    await channel(client, lab).send(text)
    quiet, loud = discord.said(lab)
    assert (quiet.mentions, loud.mentions) == ([], [ada.id])
    assert not loud.mention_everyone, "that takes a right of its own"


async def test_reactions_are_told_raw_and_listed_by_pages(
    discord: FakeDiscord, client: Client, ada: Person, lab: Channel
) -> None:
    sent = await channel(client, lab).send("rate me")
    message = discord.said(lab)[0]
    crowd = [discord.person(f"p{n}") for n in range(130)]
    for person in crowd:
        discord.world.guilds[lab.guild_id].members[person.id] = []
        person.reacts(message, "👍")
    ada.reacts(message, "👎")
    ada.unreacts(message, "👎")
    await sent.add_reaction("👌")
    await discord.until(lambda: len(client.raw) == 133)
    assert {event.message_author_id for event in client.raw if event.event_type.endswith("ADD")} == {
        client.user and client.user.id
    }
    assert client.raw[-2].event_type == "REACTION_REMOVE"
    again = await channel(client, lab).fetch_message(sent.id)
    found = {str(one.emoji): [user.id async for user in one.users()] for one in again.reactions}
    assert sorted(found["👍"]) == [int(person.id) for person in crowd]
    assert found.keys() == {"👍", "👌"}
    path = "/channels/{channel_id}/messages/{message_id}/reactions/{emoji_name}"
    assert len(discord.called("GET", path)) > 2, "a hundred at a time"


async def test_who_wrote_the_message_need_not_be_told(
    discord: FakeDiscord, client: Client, ada: Person, lab: Channel
) -> None:
    discord.world.tells_author = False
    await channel(client, lab).send("rate me")
    ada.reacts(discord.said(lab)[0], "👍")
    await discord.until(lambda: client.raw)
    assert client.raw[0].message_author_id is None


async def test_threads_and_posts_in_a_forum_are_channels(
    discord: FakeDiscord, client: Client, ada: Person, lab: Channel
) -> None:
    guild = discord.world.guilds[lab.guild_id]
    thread = ada.opens_thread("details", ada.says("what about this?", lab))
    ada.says("in the thread", thread, mention=True)
    forum = discord.channel("help", guild, kind=FORUM)
    post = ada.posts("It does not work", "Why?", forum, mention=True)
    await discord.until(lambda: len(client.messages) == 3)
    said = client.messages[1:]
    assert all(isinstance(message.channel, library.Thread) for message in said)
    assert [message.channel.parent_id for message in said] == [int(lab.id), int(forum.id)]
    assert said[1].channel.id == int(post.id), "a post is its first message"
    await said[1].reply("Because.")
    [answer] = discord.said(discord.world.channels[post.id])
    assert answer.content == "Because."
    discord.world.channels[post.id].archived = True
    with pytest.raises(library.HTTPException) as caught:
        await (
            channel(client, discord.world.channels[post.id])
            .get_partial_message(int(answer.id))
            .edit(content="Late.")
        )
    assert caught.value.code == 50083
    with pytest.raises(library.HTTPException) as caught:
        await client.messages[0].create_thread(name="a second one")
    assert caught.value.code == 160004


async def test_a_person_who_takes_no_messages_gets_none(
    discord: FakeDiscord, client: Client, ada: Person
) -> None:
    user = await client.fetch_user(int(ada.id))
    await user.send("hello")
    assert [message.content for message in discord.said(ada.dm)] == ["hello"]
    ada.closes_dms()
    with pytest.raises(library.Forbidden) as caught:
        await user.send("hello?")
    assert caught.value.code == 50007


async def test_json_is_called_json_and_nothing_else(discord: FakeDiscord, lab: Channel) -> None:
    assert (await rest(discord, "GET", "/users/@me"))[2] == "application/json"
    status, body, kind = await rest(discord, "GET", "/users/@me", token="Bearer x")
    assert (status, body["message"], kind) == (401, "401: Unauthorized", "application/json")
    status, found, _ = await rest(discord, "GET", "/gateway/bot")
    assert (status, found["url"]) == (200, discord.gateway_url)
    status, found, _ = await rest(discord, "GET", "/oauth2/applications/@me")
    assert found["flags"] == 0
    discord.application.privileged.add(intents.MESSAGE_CONTENT)
    assert (await rest(discord, "GET", "/applications/@me"))[1]["flags"] == 1 << 19
    for path in ("", "/channels", "/roles", "/threads/active", f"/members/{discord.world.bot.id}"):
        assert (await rest(discord, "GET", f"/guilds/{lab.guild_id}{path}"))[0] == 200
    assert (await rest(discord, "GET", f"/guilds/{lab.guild_id}/members"))[1]["code"] == 50001


# -- interactions


@pytest.fixture
async def commands(client: Client) -> Client:
    """A client with `/rl good [words]` and a command of the message's menu."""
    group = app_commands.Group(name="rl", description="Teach the bot.")

    @group.command(name="good", description="Good.")
    async def good(interaction: library.Interaction[Any], words: str = "") -> None:
        await interaction.response.send_message(f"Good {words}", ephemeral=True)

    async def good_answer(interaction: library.Interaction[Any], message: library.Message) -> None:
        await interaction.response.defer(ephemeral=True, thinking=True)
        await interaction.edit_original_response(content=f"Rated {message.id}: {message.content}")

    client.tree.add_command(group)
    client.tree.add_command(app_commands.ContextMenu(name="Good answer", callback=good_answer))
    await client.tree.sync()
    return client


async def test_commands_are_offered_once_they_are_registered(
    discord: FakeDiscord, commands: Client, ada: Person, lab: Channel
) -> None:
    assert ada.commands(lab) == ada.commands() == ["rl", "Good answer"]
    with pytest.raises(LookupError):
        ada.command("rl nonsense", lab)
    interaction = ada.command("rl good and more words", lab)
    await discord.until(lambda: interaction.answer)
    [notice] = ada.notices
    assert (notice.content, notice.ephemeral) == ("Good and more words", True)
    assert discord.said(lab) == [], "nobody else sees it"
    known = discord.application.commands.all()
    assert {command["id"] for command in await _fetch(commands)} == {c["id"] for c in known}
    await commands.tree.sync()
    assert [c["id"] for c in discord.application.commands.all()] == [c["id"] for c in known]


async def _fetch(client: Client) -> list[dict[str, Any]]:
    return [{"id": str(command.id)} for command in await client.tree.fetch_commands()]


async def test_a_command_of_the_menu_reads_the_message_and_its_deferral_becomes_an_answer(
    discord: FakeDiscord, commands: Client, ada: Person, lab: Channel
) -> None:
    message = ada.says("words that the bot does not read otherwise", lab)
    interaction = ada.menu("Good answer", message)
    await discord.until(lambda: interaction.answers and interaction.answers[0].content)
    [notice] = ada.notices
    assert notice.content == f"Rated {message.id}: words that the bot does not read otherwise"
    assert notice.ephemeral
    assert interaction.answer == "deferred"


class Rate(ui.View):
    def __init__(self) -> None:
        super().__init__(timeout=None)

    @ui.button(label="👎 Bad", custom_id="bad")
    async def bad(self, interaction: library.Interaction[Any], button: ui.Button[Any]) -> None:
        await interaction.response.send_modal(Why())


class Why(ui.Modal, title="What was wrong?"):
    words = ui.Label(text="In your words", component=ui.TextInput[Any](custom_id="words", max_length=200))

    async def on_submit(self, interaction: library.Interaction[Any]) -> None:
        assert isinstance(self.words.component, ui.TextInput)
        await interaction.response.send_message(self.words.component.value, ephemeral=True)
        await interaction.followup.send("Thank you.", ephemeral=True)


async def test_a_button_opens_a_form_and_the_form_is_answered_and_followed_up(
    discord: FakeDiscord, client: Client, ada: Person, lab: Channel
) -> None:
    await channel(client, lab).send("rate me", view=Rate())
    [message] = discord.said(lab)
    interaction = ada.presses(message, "bad")
    await discord.until(lambda: ada.form is interaction)
    with pytest.raises(AssertionError, match="required"):
        ada.submits(interaction)
    ada.submits(interaction, words="Too long.")
    await discord.until(lambda: len(ada.notices) == 2)
    assert [notice.content for notice in ada.notices] == ["Too long.", "Thank you."]
    assert ada.form is None
    with pytest.raises(AssertionError):
        ada.presses(message, "good")


async def test_a_view_of_components_v2_has_no_content(
    discord: FakeDiscord, client: Client, ada: Person, lab: Channel
) -> None:
    view = ui.LayoutView()
    row = ui.ActionRow[Any](ui.Button(label="Yes", custom_id="y"))
    view.add_item(ui.Container(ui.TextDisplay("Words."), row))
    await channel(client, lab).send(view=view)
    [message] = discord.said(lab)
    assert (message.content, ada.read(message)) == ("", "Words.")
    assert [one["custom_id"] for one in components.buttons(message.components)] == ["y"]
    path = f"/channels/{lab.id}/messages/{message.id}"
    assert (await rest(discord, "PATCH", path, {"content": "x"}))[1]["code"] == 50035
    assert (await rest(discord, "PATCH", path, {"flags": 0}))[1]["code"] == 50035


async def test_an_update_changes_the_message_under_which_the_button_stands(
    discord: FakeDiscord, client: Client, ada: Person, lab: Channel
) -> None:
    await channel(client, lab).send("rate me", view=Rate())
    [message] = discord.said(lab)
    client.add_view(Rate(), message_id=int(message.id))
    interaction = discord.interactions.start(
        3, ada.user, lab, {"component_type": 2, "custom_id": "other", "id": 1}, message
    )
    await discord.until(lambda: client.interactions)
    await client.interactions[0].response.edit_message(content="rated", view=None)
    assert (message.content, message.components, interaction.answer) == ("rated", [], "update")


async def test_first_answers_are_due_in_three_seconds_and_tokens_last_fifteen_minutes() -> None:
    clock = VirtualClock(waits=True)
    async with FakeDiscord(clock=clock) as discord:
        ada = discord.person("ada")
        button = {"type": 2, "id": 2, "style": 2, "custom_id": "x", "label": "x"}
        message = discord.world.post(
            ada.dm, discord.world.bot.id, "rate me", components=[{"type": 1, "id": 1, "components": [button]}]
        )
        late, good = ada.presses(message, "x"), ada.presses(message, "x")
        webhook = f"/webhooks/{discord.application.id}/{good.token}"
        words = {"content": "Yes.", "flags": 64}

        async def answer(interaction: Any, body: Any) -> int:
            path = f"/interactions/{interaction.id}/{interaction.token}/callback"
            status, found, _ = await rest(discord, "POST", path, body, token="")
            return found["code"] if status >= 400 else status

        assert (await rest(discord, "POST", webhook, words))[1]["code"] == 10015, "not before"
        clock.advance(2.9)
        assert await answer(good, {"type": 5, "data": {"flags": 64}}) == 204
        clock.advance(0.2)
        assert await answer(late, {"type": 6}) == 10062
        assert discord.interactions.failed(late)
        assert await answer(good, {"type": 6}) == 40060
        clock.advance(890)
        assert (await rest(discord, "PATCH", f"{webhook}/messages/@original", words))[0] == 200
        assert (await rest(discord, "POST", webhook, words))[0] == 200
        clock.advance(10)
        assert (await rest(discord, "POST", webhook, words))[1]["code"] == 50027
        assert [notice.content for notice in ada.notices] == ["Yes.", "Yes."]
        schema.check_all(discord)


# -- limits


async def test_buckets_are_counted_and_told_in_headers() -> None:
    clock = VirtualClock(waits=True)
    async with FakeDiscord(clock=clock, limits=RateLimits()) as discord:
        dm = discord.person("ada").dm
        path = f"/channels/{dm.id}/messages"
        answers = [(await rest(discord, "POST", path, {"content": str(n)})) for n in range(6)]
        assert [status for status, _, _ in answers] == [200] * 5 + [429]
        assert answers[-1][1]["retry_after"] == 5.0
        assert (await rest(discord, "POST", f"/channels/{dm.id}/typing"))[0] == 204, "its own"
        clock.advance(5)
        assert (await rest(discord, "POST", path, {"content": "6"}))[0] == 200
        schema.check_all(discord)


async def test_a_limit_on_demand_is_obeyed_by_discord_py(
    discord: FakeDiscord, client: Client, lab: Channel
) -> None:
    route = "POST /channels/{channel_id}/messages"
    discord.faults.rate_limit(route, seconds=0.2)
    discord.faults.rate_limit(route, seconds=0.1, scope="global")
    await channel(client, lab).send("patience")
    tries = discord.called(*route.split(" ", 1))
    assert [call.status for call in tries] == [429, 429, 200]
    assert tries[1].at - tries[0].at >= 0.2


async def test_a_dead_network_answers_nothing(
    discord: FakeDiscord, client: Client, ada: Person, lab: Channel
) -> None:
    discord.cut()
    with pytest.raises(aiohttp.ClientError):
        await rest(discord, "GET", "/users/@me")
    await discord.until(lambda: not discord.gateway.live)
    assert client.messages == []
    ada.says("while it was away", lab, mention=True)
    discord.mend()
    await discord.until(lambda: client.messages, 20)
    assert len(client.messages) == 1


async def test_a_handshake_that_fails_is_no_websocket(discord: FakeDiscord) -> None:
    discord.gateway.refuses = 503
    async with aiohttp.ClientSession() as http:
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await http.ws_connect(f"{discord.gateway_url}?v=10&encoding=json")
    discord.gateway.refuses = 0
    async with asyncio.timeout(patience(5)), connected(discord):
        pass


# -- the document


async def test_what_discord_s_own_document_does_not_know_is_seen() -> None:
    schema.require()
    for body in ({"content": "x", "contant": "y"}, {"content": 1}):
        async with FakeDiscord() as discord:
            path = f"/channels/{discord.person('ada').dm.id}/messages"
            async with aiohttp.ClientSession(headers={"Authorization": f"Bot {TOKEN}"}) as http:
                await http.post(f"{discord.api}{path}", json=body)
            with pytest.raises(AssertionError, match=r"contant|fell over"):
                schema.check_all(discord)
    async with FakeDiscord() as discord:
        ada = discord.person("ada")
        session = discord.sessions.open(intents.DIRECT_MESSAGES)
        discord.world.post(ada.dm, ada.id, "hello", flags=None)
        assert session.sequence == 1
        with pytest.raises(AssertionError, match="flags"):
            schema.check_all(discord)
