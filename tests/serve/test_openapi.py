"""The description fits the server: schemathesis makes requests from it, and answers fit their schemas."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from tests.serve.conftest import Running

from munjang.serve.app import all_operations
from munjang.serve.errors import GATEWAY_ERRORS
from munjang.serve.openapi import docs_page

schemathesis = pytest.importorskip("schemathesis", reason="it makes requests from the description")


def run_cases(server: Running, count: int) -> int:
    """Let schemathesis send about so many requests, good and bad, to all operations together; return how many were sent."""
    import requests
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis.errors import Unsatisfiable
    from schemathesis import GenerationMode

    schema = schemathesis.openapi.from_dict(server.get("/openapi.json").json)
    schema.config.update(base_url=server.url)
    operations = [result.ok() for result in schema.get_all_operations()]
    sent = 0
    with requests.Session() as session:
        for operation in operations:
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

                @settings(
                    max_examples=max(1, count // (2 * len(operations))),
                    deadline=None,
                    database=None,
                    derandomize=True,
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                )
                @given(operation.as_strategy(generation_mode=mode))
                def check(case: Any) -> None:
                    nonlocal sent
                    response = case.call(session=session, base_url=server.url, timeout=300)  # a busy machine is no error
                    sent += 1
                    assert response.status_code < 500, (case.as_curl_command(), response.text)
                    if response.status_code == 200 and case.operation.path != "/metrics":
                        case.operation.validate_response(response)

                try:
                    check()
                except Unsatisfiable:  # there is nothing wrong to send to an operation without parameters
                    continue
    return sent


def test_generated_requests_get_no_5xx_and_answers_fit_the_description(server: Running) -> None:
    assert run_cases(server, 80) > 40


REQUESTS = int(os.environ.get("MUNJANG_GENERATED_REQUESTS", "3000"))
"""How many the slow test sends; 75,000 make more than 50,000 and take an hour."""


@pytest.mark.slow
def test_thousands_of_generated_requests_get_no_5xx(server: Running) -> None:
    assert run_cases(server, REQUESTS) >= REQUESTS * 2 // 3


def test_every_operation_is_described_and_documented(server: Running) -> None:
    described = server.get("/openapi.json").json
    page = server.get("/docs").body.decode()
    for operation in all_operations():
        path = operation.path.replace(":path", "")
        if path not in ("/docs", "/openapi.json", "/page/{name}") and (operation.method, path) != ("GET", "/"):
            assert operation.method.lower() in described["paths"][path]
            assert path in page
    assert "http" not in page.replace("http-equiv", "").replace("HTTP", "").replace("https://example", "")


def test_every_reference_leads_somewhere(server: Running) -> None:
    described = server.get("/openapi.json").json
    written = json.dumps(described)
    for name in {part.split('"')[0] for part in written.split("#/components/schemas/")[1:]}:
        assert name in described["components"]["schemas"], name


def test_no_list_is_described_as_one_of_nothing(server: Running) -> None:
    """A field that is named like a type hides the type: `float: list[list[float]]` was described as lists of nulls."""
    written = json.dumps(server.get("/openapi.json").json)
    assert '"items": {"type": "null"}' not in written


def test_the_docs_page_allows_its_own_style_only() -> None:
    html, policy = docs_page([], {})
    assert html.count("<style>") == 1
    assert "sha256-" in policy
    assert "unsafe" not in policy


def test_teis_error_types_are_those_of_the_description() -> None:
    assert set(GATEWAY_ERRORS.values()) <= {"Unhealthy", "Backend", "Overloaded", "Validation", "Tokenizer", "Empty"}
