# SPDX-License-Identifier: Apache-2.0
"""All that the published document allows, and much that it does not, asked of a whole goodbot.

schemathesis draws the requests: bounded, and the same ones every time. No answer may be a 5xx, and
each must be as the document says: its status, its type, its shape; what the document does not allow
must be refused, and what it allows must not be.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from goodbot_connectors.api import table
from hypothesis import HealthCheck, Phase, assume, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.specs.openapi import checks

from tests.connectors.api.daemon import Served, served
from tests.core.builders import check_store

EXAMPLES = 15
"""Requests an operation and mode."""
COMMAND = "POST /v1/commands"
CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
]


@pytest.fixture
async def api(tmp_path: Path, unused_tcp_port: int) -> AsyncIterator[Served]:
    async with served(tmp_path, unused_tcp_port) as api:
        yield api
        await check_store(api.bot.store)


async def published(api: Served) -> Any:
    status, document = await api.me.get("/v1/openapi.json")
    assert status == 200
    return schemathesis.openapi.from_dict(document)


def asking(api: Served, operation: Any, mode: GenerationMode) -> Callable[[], None]:
    """Asks one operation with data drawn by a mode."""
    more = {GenerationMode.POSITIVE: _accepted, GenerationMode.NEGATIVE: _refused}[mode]

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Case) -> None:
        assume(_numbers_fit(case.body))
        case.call_and_validate(
            base_url=f"http://127.0.0.1:{api.port}",
            checks=[*CHECKS, more],
            headers={"Authorization": f"Bearer {api.me.token}", "x-api-key": api.me.token},
        )

    return ask


def _accepted(context: Any, response: Any, case: Case) -> bool | None:
    """No schema of a command's words can say which of them it takes; the command says it.

    Which ones are drawn also depends on the texts in the modules that are loaded.
    """
    if response.status_code == 422 and case.operation.label == COMMAND:
        return None
    return checks.positive_data_acceptance(context, response, case)


def _refused(context: Any, response: Any, case: Case) -> bool | None:
    """What is too large is refused, too, whatever else is wrong with it."""
    return response.status_code == 413 or checks.negative_data_rejection(context, response, case) or None


def _numbers_fit(value: Any) -> bool:
    """No schema of a free value can say that an integer has at most 64 bits; the text says it."""
    if isinstance(value, dict):
        return all(map(_numbers_fit, value.values()))
    if isinstance(value, list):
        return all(map(_numbers_fit, value))
    return not isinstance(value, int) or abs(value) < 2**63


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
async def test_every_answer_is_as_published(mode: GenerationMode, api: Served) -> None:
    await api.me.captured()
    schema = await published(api)
    asked: list[str] = []
    for result in schema.get_all_operations():
        operation = result.ok()
        asked.append(operation.label)
        await asyncio.to_thread(asking(api, operation, mode))
    assert len(asked) == len(table.ROUTES)
