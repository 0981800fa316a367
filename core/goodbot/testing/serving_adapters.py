# SPDX-License-Identifier: Apache-2.0
"""Adapters: loaded beside what is served, made active, unloaded last, and proven."""

from __future__ import annotations

import asyncio
import math
import shutil
from pathlib import Path

import pytest

from goodbot.api.server import BASE, Server
from goodbot.base.errors import AdapterError, ServerError
from goodbot.testing.patience import patience
from goodbot.testing.serving_base import PATIENCE, Answering, ServingGround, answered, asking, messages

TOP = 10


class AdaptersContract(ServingGround):
    """load, activate, unload, served, reload, first_tokens."""

    async def test_loading_disturbs_nothing(self, server: Server, directories: tuple[Path, Path]) -> None:
        before = await answered(server)
        await server.load(1, directories[0])
        assert await server.served() == BASE
        after = await answered(server)
        assert (after.version, after.text) == (BASE, before.text)

    async def test_a_loaded_version_answers_who_names_it(
        self, server: Server, directories: tuple[Path, Path]
    ) -> None:
        base = await answered(server)
        await server.load(1, directories[0])
        named = await answered(server, version=1)
        assert named.version == 1
        assert named.text != base.text

    async def test_new_questions_go_to_the_active_version(
        self, server: Server, directories: tuple[Path, Path]
    ) -> None:
        await server.load(1, directories[0])
        named = await answered(server, version=1)
        await server.activate(1)
        assert await server.served() == 1
        active = await answered(server)
        assert (active.version, active.text) == (1, named.text)
        await server.activate(BASE)
        assert await server.served() == BASE
        assert (await answered(server)).version == BASE

    async def test_versions_stand_side_by_side(self, server: Server, directories: tuple[Path, Path]) -> None:
        """Each as itself, also in one batch: no cache of one is taken for another."""
        for version, directory in enumerate(directories, start=1):
            await server.load(version, directory)
        alone = [(await answered(server, version=version)).text for version in (0, 1, 2)]
        assert len(set(alone)) == 3, "the fixture's adapters must differ in what they answer"
        async with asyncio.timeout(patience(PATIENCE)):
            together = await asyncio.gather(
                *(answered(server, version=version) for version in (1, 0, 2, 2, 0, 1))
            )
        assert [whole.version for whole in together] == [1, 0, 2, 2, 0, 1]
        assert [whole.text for whole in together] == [alone[v] for v in (1, 0, 2, 2, 0, 1)]

    async def test_an_answer_ends_on_the_version_that_it_began_with(
        self, server: Server, directories: tuple[Path, Path]
    ) -> None:
        for version, directory in enumerate(directories, start=1):
            await server.load(version, directory)
        await server.activate(1)
        expected = await answered(server)
        async with Answering(server, asking()) as answer:
            await answer.begun()
            await server.activate(2)
            whole = await answer.rest()
        assert (whole.version, whole.text) == (1, expected.text)
        assert (await answered(server)).version == 2

    async def test_unloading_waits_for_what_is_being_written(
        self, server: Server, directories: tuple[Path, Path]
    ) -> None:
        await server.load(1, directories[0])
        expected = await answered(server, version=1)
        async with Answering(server, asking(version=1)) as answer:
            await answer.begun()
            unloading = asyncio.create_task(server.unload(1))
            whole = await answer.rest()
        assert (whole.version, whole.text) == (1, expected.text)
        async with asyncio.timeout(patience(PATIENCE)):
            await unloading
        with pytest.raises((ServerError, AdapterError)):
            await answered(server, version=1)

    async def test_what_is_being_unloaded_can_be_loaded_again(
        self, server: Server, directories: tuple[Path, Path]
    ) -> None:
        """Somebody rolls back while a long answer holds the old version: it stays."""
        await server.load(1, directories[0])
        expected = await answered(server, version=1)
        async with Answering(server, asking(version=1)) as answer:
            await answer.begun()
            unloading = asyncio.create_task(server.unload(1))
            await asyncio.sleep(0.05)
            async with asyncio.timeout(patience(PATIENCE)):
                await server.load(1, directories[0])
                await server.activate(1)
            assert (await answer.rest()).text == expected.text
        async with asyncio.timeout(patience(PATIENCE)):
            await asyncio.gather(unloading, return_exceptions=True)
        again = await answered(server)
        assert (again.version, again.text) == (1, expected.text)

    async def test_an_answer_that_was_cancelled_holds_no_version_back(
        self, server: Server, directories: tuple[Path, Path]
    ) -> None:
        await server.load(1, directories[0])
        async with Answering(server, asking(version=1, max_tokens=400)) as answer:
            await answer.begun()
        async with asyncio.timeout(patience(PATIENCE)):
            await server.unload(1)

    async def test_the_active_version_is_not_unloaded(
        self, server: Server, directories: tuple[Path, Path]
    ) -> None:
        await server.load(1, directories[0])
        await server.activate(1)
        with pytest.raises((ServerError, AdapterError)):
            await server.unload(1)
        assert (await answered(server)).version == 1

    async def test_unloading_what_is_not_there_is_nothing(
        self, server: Server, directories: tuple[Path, Path]
    ) -> None:
        await server.unload(9)
        await server.load(1, directories[0])
        await server.unload(1)
        await server.unload(1)

    async def test_doing_it_twice_is_harmless(self, server: Server, directories: tuple[Path, Path]) -> None:
        for _ in range(2):
            await server.load(1, directories[0])
        named = await answered(server, version=1)
        for _ in range(2):
            await server.activate(1)
        await server.load(1, directories[0])
        assert (await answered(server)).text == named.text

    async def test_a_version_that_was_unloaded_can_come_back(
        self, server: Server, directories: tuple[Path, Path]
    ) -> None:
        await server.load(1, directories[0])
        before = await answered(server, version=1)
        await server.unload(1)
        await server.load(1, directories[0])
        assert (await answered(server, version=1)).text == before.text

    async def test_what_is_not_loaded_is_not_made_active(
        self, server: Server, directories: tuple[Path, Path]
    ) -> None:
        with pytest.raises((ServerError, AdapterError)):
            await server.activate(7)
        assert await server.served() == BASE
        assert (await answered(server)).version == BASE

    async def test_a_bad_adapter_is_refused_and_the_old_one_goes_on(
        self, server: Server, directories: tuple[Path, Path], tmp_path: Path
    ) -> None:
        await server.load(1, directories[0])
        await server.activate(1)
        before = await answered(server)
        bad = tmp_path / "bad"
        shutil.copytree(directories[1], bad)
        weights = bad / "adapter_model.safetensors"
        content = weights.read_bytes()
        weights.chmod(0o600)
        weights.write_bytes(content[: len(content) // 2])
        with pytest.raises(AdapterError):
            await server.load(2, bad)
        assert await server.served() == 1
        assert (await answered(server)).text == before.text

    async def test_after_a_restart_it_says_truly_what_it_serves(
        self, server: Server, directories: tuple[Path, Path]
    ) -> None:
        """What it forgot, loading and activating bring back, as the reconciler does it."""
        texts = [(await answered(server)).text]
        await server.load(1, directories[0])
        texts.append((await answered(server, version=1)).text)
        await server.activate(1)
        await server.stop()
        await server.start()
        served = await server.served()
        assert served in (BASE, 1)
        whole = await answered(server)
        assert (whole.version, whole.text) == (served, texts[served])
        await server.load(1, directories[0])
        await server.activate(1)
        assert await server.served() == 1
        assert (await answered(server)).text == texts[1]

    async def test_reloading_puts_a_version_right(
        self, server: Server, directories: tuple[Path, Path]
    ) -> None:
        await server.load(1, directories[0])
        await server.activate(1)
        before = await answered(server)
        await server.reload(1, directories[0])
        assert await server.served() == 1
        after = await answered(server)
        assert (after.version, after.text) == (1, before.text)
        await server.activate(BASE)
        await server.unload(1)

    async def test_it_tells_how_an_answer_may_begin(self, server: Server) -> None:
        first = await server.first_tokens(messages(), version=BASE, top=TOP)
        if not self.tells_first_tokens:
            assert first == {}
            return
        assert 0 < len(first) <= TOP
        assert all(logprob <= 1e-4 for logprob in first.values())
        assert sum(map(math.exp, first.values())) <= 1.001

    async def test_an_adapter_changes_how_an_answer_may_begin(
        self, server: Server, directories: tuple[Path, Path]
    ) -> None:
        """Told of the version that is named, whichever is active, and never out of another's cache."""
        if not self.tells_first_tokens:
            pytest.skip("this server tells no first tokens")
        base = await server.first_tokens(messages(), version=BASE, top=TOP)
        for version, directory in enumerate(directories, start=1):
            await server.load(version, directory)
        one, two, again = [
            await server.first_tokens(messages(), version=version, top=TOP) for version in (1, 2, BASE)
        ]
        assert base == pytest.approx(again, abs=1e-2)
        assert await server.served() == BASE
        assert min(map(len, (base, one, two))) > 0
        for left, right in ((base, one), (base, two), (one, two)):
            common = left.keys() & right.keys()
            apart = max((abs(left[token] - right[token]) for token in common), default=math.inf)
            assert left.keys() != right.keys() or apart > 0.05

    async def test_a_server_that_takes_no_adapters_says_so(self, server: Server, tmp_path: Path) -> None:
        if self.takes_adapters:
            pytest.skip("this server takes adapters")
        with pytest.raises(AdapterError):
            await server.load(1, tmp_path)
        with pytest.raises((ServerError, AdapterError)):
            await server.activate(1)
        await server.activate(BASE)
        await server.unload(1)
        assert await server.served() == BASE
