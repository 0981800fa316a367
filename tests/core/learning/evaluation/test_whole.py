# SPDX-License-Identifier: Apache-2.0
"""The whole way on the tiny model, with a real sampler: live, asked, chosen, and back.

Only the training is left out (`tests/core/learning/training` has that): the adapter is one of random weights.
"""

from __future__ import annotations

from pathlib import Path

from goodbot.api.sentences import in_words
from goodbot.config import ServingConfig
from goodbot.learning.training import batch
from goodbot.store import codec, runs
from goodbot.testing import Pilot

from tests.cli.program import need_backend
from tests.core.builders import rows, until
from tests.core.inference.servers import tiny

SERVING = ServingConfig(max_tokens=12, history=0, ask="after")


async def test_real_answers_are_compared_and_kept_with_their_log_probs(tmp_path: Path) -> None:
    need_backend()
    async with Pilot.open(tmp_path / "home", serving=SERVING) as pilot:
        app = pilot.app
        for number in range(7):
            assert (await pilot.say(f"What is {number}+1?")).turn
        # The scheduler takes that run for an interrupted one: it neither goes on nor is given up.
        await pilot.command("pause")
        run = await app.store.write(
            lambda db: runs.start(
                db,
                pool=app.ab_test.pool,
                parent=0,
                cause=in_words("a test"),
                backend="none",
                settings=batch.settings_of(app),
                items=(),
                now=app.clock.now(),
            )
        )
        verdict = await app.trainer._going_live.go(
            run,
            active=0,
            parent=0,
            output=tiny.adapter(tmp_path / "made", 1),
            metrics={},
            baseline={},
            gate={},
            verdict=in_words("no harm found"),
        )
        assert (verdict.state, verdict.version) == ("activated", 1), verdict.reason
        await pilot.command("resume")
        await app.plugins.on_training_finished(run, verdict.state, verdict.reason)

        def questions() -> list[str]:
            return [said.text for said in pilot.chat.news if "Which is better?" in said.text]

        await until(questions, 60)
        pairs = await rows(
            app.store,
            "SELECT id, old_answer, old_tokens, old_logprobs, new_answer, new_tokens,"
            " new_logprobs, prompt_tokens FROM pairs ORDER BY id",
        )
        assert 4 <= len(pairs) <= 5, "of seven questions; two that say the same are no question"
        for _, *sides, prompt in pairs:
            assert sides[0] != sides[3]
            assert codec.unpack_ints(prompt)
            for tokens, logprobs in (sides[1:3], sides[4:6]):
                assert len(codec.unpack_ints(tokens)) == len(codec.unpack_floats(logprobs)) > 0
                assert max(codec.unpack_floats(logprobs)) <= 0
        told, number = "", 0
        while "again" not in told:
            number += 1
            text = await pilot.command("compare")
            a = text.partition("\nA:\n")[2].partition("\n\nB:\n")[0]
            old = {pair[1].strip() for pair in pairs}
            told = await pilot.command("compare", "a" if a in old else "b")
        assert told == f"Noted. 0 for v1, {number} for the base model. The base model answers again."
        assert (await app.registry.active(), await app.server.served()) == (0, 0)
        both = await pilot.command("compare", "base v1 What is 2+1?")
        assert both.startswith("the base model:\n")
        assert "\n\nv1:\n" in both
        assert await app.server.served() == 0
