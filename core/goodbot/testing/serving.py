# SPDX-License-Identifier: Apache-2.0
"""What every model server must do. Subclass `ServingContract` and give it two fixtures.

::

    from goodbot.testing.serving import ServingContract

    class TestMyServer(ServingContract):
        @pytest.fixture
        async def server(self, tmp_path):
            server = MyServer(MySettings(), parts)  # a `ServerParts`
            await server.start()
            yield server
            await server.stop()

        @pytest.fixture
        def adapters(self):
            return Path("one"), Path("two")  # two adapters that answer `QUESTION` differently

A driver of `AdapterFormat.NONE` sets `takes_adapters = False` instead of the second; one that cannot
tell log-probs of a first token sets `tells_first_tokens = False`. The tests need pytest-asyncio
(`asyncio_mode = "auto"`).
"""

from __future__ import annotations

from goodbot.testing.serving_adapters import AdaptersContract
from goodbot.testing.serving_answers import AnswersContract


class ServingContract(AnswersContract, AdaptersContract):
    """The whole suite."""
