# SPDX-License-Identifier: Apache-2.0
"""Our own model for programs: the rules of a chat, and where a server of the owner's is asked itself."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from goodbot.api.completions import CompletionRequest, NoModel, with_tools
from goodbot.api.events import ChannelKind, ChannelRef, UserRef
from goodbot.api.model import ResolvedModel
from goodbot.api.server import Generated, GenerateRequest, Server
from goodbot.base import sampling
from goodbot.base.errors import AdapterError, ServerError, UsageError
from goodbot.base.sampling import Filters
from goodbot.config import Config
from goodbot.conversation.asking import conversation
from goodbot.conversation.completions import ServedModel
from goodbot.inference.servers.plugin import VllmSettings
from goodbot.inference.servers.vllm import VllmServer

from tests.core.inference.servers.remote import parts

USER = UserRef(connector="api", account="local", id="ada")
PLACE = ChannelRef(connector="api", account="local", id="ada", kind=ChannelKind.PRIVATE, thread="s")
TOOLS = [{"type": "function", "function": {"name": "add"}}]


class Recorded(Server):
    """Answers with the version that it was asked for; the canary's may fail."""

    def __init__(self) -> None:
        self.asked: list[GenerateRequest] = []
        self.fails = False

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[str | Generated, None]:
        self.asked.append(request)
        if self.fails and request.version is not None:
            raise AdapterError("v7 is not loaded")
        yield "Hi"
        yield Generated(text="Hi", version=request.version or 5, finish="stop")

    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def load(self, version: int, directory: Path) -> None: ...
    async def activate(self, version: int) -> None: ...
    async def unload(self, version: int) -> None: ...
    async def served(self) -> int:
        return 5

    def healthy(self) -> bool:
        return True


class Present:
    """A model that is there, or authorization that lets everybody talk."""

    async def present(self) -> None: ...

    async def asked(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        return await ask()

    def may_talk(self, *_: object, **__: object) -> bool:
        return True


def own(
    home: Path, server: Server, *, tried: Callable[[ChannelRef], int | None] = lambda _: None
) -> tuple[ServedModel, list[str]]:
    talked: list[str] = []

    async def active() -> int:
        return 5

    async def routed(place: ChannelRef, _: UserRef) -> int | None:
        return tried(place)

    (home / "config.json").write_text(
        '{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 8,'
        ' "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8, "vocab_size": 512,'
        ' "max_position_embeddings": 100}'
    )
    present: Any = Present()
    core: Any = SimpleNamespace(
        server=server,
        model=ResolvedModel(name="m", path=home),
        config=Config(home=home),
        sampling=sampling.of(home, {}),
        authorization=present,
        registry=SimpleNamespace(active=active),
        scheduler=SimpleNamespace(somebody_talks=lambda: talked.append("x")),
        scopes=SimpleNamespace(version_for=routed, missed=lambda _: None),
    )
    return ServedModel(core, presence=present), talked


def question(**more: Any) -> CompletionRequest:
    given = {"messages": [{"role": "user", "content": "Hello"}], "user": USER, "channel": PLACE}
    return CompletionRequest(**{**given, **more})


async def said(model: ServedModel, asked: CompletionRequest) -> list[str | Generated]:
    return [piece async for piece in model.answer(asked)]


async def test_a_program_is_answered_like_a_person(tmp_path: Path) -> None:
    server = Recorded()
    model, talked = own(tmp_path, server, tried=lambda place: 7 if place == PLACE else None)
    [_, end] = await said(model, question())
    assert isinstance(end, Generated)
    assert end.version == 7  # it meets the version that is tried, as its chat would
    [request] = server.asked
    assert (request.max_tokens, request.temperature) == (512, 0.7)
    assert request.filters == Filters(top_p=0.9)
    assert talked == ["x"]  # a training waits for quiet
    await said(model, question(version=5, temperature=0.2, max_tokens=9, seed=3, filters={"top_k": 5}))
    assert (server.asked[1].version, server.asked[1].temperature) == (5, 0.2)
    assert (server.asked[1].max_tokens, server.asked[1].seed) == (9, 3)
    assert server.asked[1].filters == Filters(top_k=5, top_p=0.9)
    assert list(await model.versions()) == [0, 5]


async def test_where_the_tried_version_fails_the_active_one_answers(tmp_path: Path) -> None:
    server = Recorded()
    server.fails = True
    model, _ = own(tmp_path, server, tried=lambda _: 7)
    assert (await said(model, question()))[0] == "Hi"
    assert [one.version for one in server.asked] == [7, None]
    with pytest.raises(AdapterError):
        await said(model, question(version=3))  # which was asked for by name


class Breaking(Recorded):
    """The version that is tried ends after so many pieces."""

    def __init__(self, pieces: int, *, raises: bool) -> None:
        super().__init__()
        self.pieces, self.raises = pieces, raises

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[str | Generated, None]:
        if request.version is None:
            async for piece in super().generate(request):
                yield piece
            return
        self.asked.append(request)
        for _ in range(self.pieces):
            yield "H"
        if self.raises:
            raise ServerError("it broke off")


async def test_once_an_answer_has_begun_no_other_version_goes_on_with_it(tmp_path: Path) -> None:
    server = Breaking(1, raises=True)
    model, _ = own(tmp_path, server, tried=lambda _: 7)
    with pytest.raises(ServerError, match="broke off"):
        await said(model, question())
    assert [one.version for one in server.asked] == [7]


async def test_where_the_tried_version_says_nothing_the_active_one_answers(tmp_path: Path) -> None:
    server = Breaking(0, raises=False)
    model, _ = own(tmp_path, server, tried=lambda _: 7)
    assert (await said(model, question()))[0] == "Hi"
    assert [one.version for one in server.asked] == [7, None]
    assert len({one.seed for one in server.asked}) == 1  # the same question


async def test_a_conversation_is_one_person_s_in_one_place_by_any_door(tmp_path: Path) -> None:
    server = Recorded()
    model, _ = own(tmp_path, server)
    await said(model, question())
    assert server.asked[0].conversation == conversation(PLACE, USER)
    others = [
        conversation(PLACE, replace(USER, account="another")),
        conversation(PLACE, replace(USER, id="bob")),
        conversation(replace(PLACE, thread="t"), USER),
    ]
    assert len({conversation(PLACE, USER), *others}) == 4


async def test_what_is_too_long_is_said_before_it_is_tried(tmp_path: Path) -> None:
    server = Recorded()
    model, _ = own(tmp_path, server)
    long = [{"role": "user", "content": "word " * 200}]
    with pytest.raises(UsageError, match="too long"):
        await said(model, question(messages=long))
    assert server.asked == []


@pytest.mark.parametrize(
    ("template", "calls"),
    [("{{ tools }}<tool_call>{}</tool_call>", True), ("{{ messages }}", False), (None, False)],
)
async def test_tools_need_a_template_that_knows_them(
    tmp_path: Path, template: str | None, calls: bool
) -> None:
    model, _ = own(tmp_path, Recorded())
    if template is not None:
        (tmp_path / "chat_template.jinja").write_text(template)
    assert await model.calls_tools() is calls


async def test_a_server_of_ours_has_no_far_side_and_one_of_the_owners_has(tmp_path: Path) -> None:
    model, _ = own(tmp_path, Recorded())
    async with model.far_side(question()) as far:
        assert far is None
    async with NoModel().far_side(question()) as far:
        assert far is None
    server = VllmServer(VllmSettings(), parts("http://127.0.0.1:9", key="k"))
    server.names = {0: "base", 7: "goodbot-v7"}
    server.follows_temperature = True
    await server.activate(7)
    model, _ = own(tmp_path, server)
    messages = with_tools([{"role": "user", "content": "Hello"}], TOOLS)
    async with model.far_side(question(messages=messages)) as far:
        assert far is not None
        assert (far.url, far.version, far.tells) == ("http://127.0.0.1:9", 7, True)
        assert far.fields["model"] == "goodbot-v7"
        assert far.fields["tools"] == TOOLS
        assert far.fields["messages"] == [{"role": "user", "content": "Hello"}]
        assert server._in_flight.any("goodbot-v7")  # it stays as long as it is asked
    assert not server._in_flight.any()
    async with contextlib.AsyncExitStack() as stack:
        with pytest.raises(Exception, match="v9 is not loaded"):
            await stack.enter_async_context(model.far_side(question(version=9)))


async def test_where_the_tried_version_is_not_there_the_active_one_is_asked(tmp_path: Path) -> None:
    server = VllmServer(VllmSettings(), parts("http://127.0.0.1:9", key="k"))
    server.names = {0: "base", 5: "goodbot-v5"}
    await server.activate(5)
    model, _ = own(tmp_path, server, tried=lambda _: 7)
    async with model.far_side(question()) as far:
        assert far is not None
        assert (far.version, far.fields["model"]) == (5, "goodbot-v5")
    assert not server._in_flight.any()
    with pytest.raises(ServerError, match="v7 is not loaded"):
        async with model.far_side(question(version=7)):
            pass
    with pytest.raises(ServerError, match="broke off"):  # of who asks there, not of the version
        async with model.far_side(question()):
            raise ServerError("it broke off")
