"""All operations → one ASGI app.

Every file of routes is a tuple of operations; here they become Starlette routes behind the guard, and their OpenAPI description. Paths
without parameters are looked up in a table, which is quicker than trying one pattern after the other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from munjang.serve import api_analyze, api_classify, api_inspect, api_library, cohere, metrics, openai, openapi, pages, tei
from munjang.serve.access_log import AccessLog
from munjang.serve.body import Held
from munjang.serve.call import Operation
from munjang.serve.endpoint import Endpoint
from munjang.serve.errors import Problem
from munjang.serve.guard import Guard, dialect_of
from munjang.serve.service import Service

MESSAGES = {404: "there is nothing at this path; GET /docs lists what there is", 405: "this path does not take this method"}


def all_operations() -> tuple[Operation, ...]:
    """Return every operation, in the order of the documentation."""
    described = (
        *openai.OPERATIONS,
        *tei.OPERATIONS,
        *metrics.OPERATIONS,
        *cohere.OPERATIONS,
        *api_library.OPERATIONS,
        *api_inspect.OPERATIONS,
        *api_analyze.OPERATIONS,
        *api_classify.OPERATIONS,
    )
    return (*described, *openapi.operations(described), *pages.OPERATIONS)


def make_app(service: Service, log: AccessLog) -> Guard:
    """Return the app; when its lifespan ends, the service is closed."""
    held = Held(service.settings.limits.max_held_bytes)
    endpoints = [Endpoint(operation, service, held) for operation in all_operations()]

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        log.flush()
        service.close()

    routes = [Route(each.operation.path, each, methods=[each.operation.method]) for each in endpoints]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _refuse})
    app.router.redirect_slashes = False
    exact = [each for each in endpoints if "{" not in each.operation.path]
    direct: dict[tuple[str, str], Endpoint] = {(each.operation.method, each.operation.path): each for each in exact}
    return Guard(app, service.settings, service.keys, direct, service.metrics, log)


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    problem = Problem(error.status_code, MESSAGES.get(error.status_code, str(error.detail)))
    body = orjson.dumps(problem.body(dialect_of(request.url.path)))
    return Response(body, error.status_code, headers=dict(error.headers or {}), media_type="application/json")
