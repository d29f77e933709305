"""The interface fuzzed from its own description: nothing breaks, and answers are as described."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from served_archive import fill, running

from letopis.archive import Archive
from letopis.catalog.accounts import Accounts
from letopis.config import FetchSettings, Settings

schemathesis = pytest.importorskip("schemathesis")

EXAMPLES = 200 if os.environ.get("LETOPIS_LONG") else 5


def test_no_request_that_fits_the_description_breaks_the_server(tmp_path: Any) -> None:
    # Whatever address is made up, nobody outside is asked: the only way out leads to a closed door.
    nowhere = Settings(fetch=FetchSettings(proxy="http://127.0.0.1:9", retries=0))
    with Archive(tmp_path / "archive", settings=nowhere) as archive:
        fill(archive)
        token = Accounts(archive.catalog.database).create_token("t", None, "write", 0)
        with running(archive) as web:
            schema = schemathesis.openapi.from_url(f"{web.address}/openapi.json")
            for result in schema.get_all_operations():
                _fuzz(result.ok(), {"Authorization": f"Bearer {token}"})


def _fuzz(operation: Any, headers: dict[str, str]) -> None:
    from hypothesis import given
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

    @settings(max_examples=EXAMPLES, deadline=None, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(operation.as_strategy())
    def one(case: Any) -> None:
        case.call_and_validate(
            headers=headers,
            timeout=300,
            checks=[not_a_server_error, content_type_conformance, response_schema_conformance],
        )

    one()
