"""All operations → their OpenAPI description, at /openapi.json, and a page for people, at /docs, that loads nothing from elsewhere."""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema

from munjang import __version__
from munjang.report.page import page, section, table, text
from munjang.serve.call import Call, Operation, Reply
from munjang.serve.cohere import CohereError
from munjang.serve.errors import Dialect
from munjang.serve.library_schema import OwnError
from munjang.serve.openai import OpenAIError
from munjang.serve.tei_schema import TeiError

ERRORS: dict[Dialect, type[BaseModel]] = {
    "openai": OpenAIError,
    "infinity": OpenAIError,
    "tei": TeiError,
    "cohere": CohereError,
    "munjang": OwnError,
}
TITLES: dict[Dialect, str] = {
    "openai": "OpenAI",
    "infinity": "infinity",
    "tei": "text-embeddings-inference",
    "cohere": "Cohere",
    "munjang": "Munjang",
}
REFERENCE = "#/components/schemas/{model}"
PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")

STATUSES = {202: "The work has begun.", 201: "Made."}


def describe(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 description."""
    schemas = _schemas([each for operation in operations for each in _dialects(operation)])
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        path = PARAMETER.sub(r"{\1}", operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = _describe(operation)
    security = {"bearer": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Munjang", "version": __version__, "description": "Encode sentences as vectors, search and analyse them."},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": security},
        "security": [{"bearer": []}, {}],
    }


def operations(described: tuple[Operation, ...]) -> tuple[Operation, ...]:
    """Return the operations that show the others."""

    @cache
    def whole() -> dict[str, Any]:
        return describe(described)

    @cache
    def page_and_policy() -> tuple[str, str]:
        return docs_page(described, whole()["components"]["schemas"])

    async def openapi(_call: Call, _body: None) -> Reply:
        return Reply(whole())

    async def docs(_call: Call, _body: None) -> Reply:
        html, policy = page_and_policy()
        return Reply(html, media="text/html; charset=utf-8", headers={"content-security-policy": policy})

    return (
        Operation("GET", "/openapi.json", "munjang", "This description.", openapi, None, dict[str, Any]),
        Operation("GET", "/docs", "munjang", "This description as a page.", docs),
    )


def docs_page(described: Sequence[Operation], schemas: dict[str, Any]) -> tuple[str, str]:
    """Return the page, and the policy that allows its one style and nothing else."""
    parts = [_dialect_section(dialect, described) for dialect in TITLES]
    shapes = [_shape(name, schema) for name, schema in sorted(schemas.items())]
    html = page("Munjang's HTTP interface", [*parts, section("Shapes", "".join(shapes))], lead="For machines: /openapi.json")
    style = html.partition("<style>")[2].partition("</style>")[0]
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return html, f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def _dialect_section(dialect: Dialect, described: Sequence[Operation]) -> str:
    rows = [
        (each.method, PARAMETER.sub(r"{\1}", each.path), each.summary, each.request.__name__ if each.request else "", _name(each.response))
        for operation in described
        for each in _dialects(operation)
        if each.dialect == dialect
    ]
    return section(TITLES[dialect], table(("method", "path", "what it does", "takes", "gives"), rows))


def _shape(name: str, schema: dict[str, Any]) -> str:
    needed = schema.get("required", [])
    rows = [
        (field, _kind(each), "" if field in needed else json.dumps(each.get("default"))) for field, each in schema["properties"].items()
    ]
    return text(name, tag="h3") + text(schema.get("description", "")) + table(("field", "type", "default"), rows)


def _kind(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " | ".join(_kind(each) for each in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(each) for each in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}"
    return str(schema.get("type", "anything"))


def _name(response: Any) -> str:
    if response is None:
        return "text"
    return response.__name__ if isinstance(response, type) and issubclass(response, BaseModel) else _kind(_response_schema(response))


def _schemas(operations: Iterable[Operation]) -> dict[str, Any]:
    models = {each.request for each in operations if each.request} | set(ERRORS.values())
    _, found = models_json_schema([(model, "validation") for model in sorted(models, key=str)], ref_template=REFERENCE)
    schemas: dict[str, Any] = dict(found["$defs"])
    for operation in operations:
        if operation.response is not None:
            adapter = TypeAdapter(operation.response).json_schema(ref_template=REFERENCE)
            schemas |= adapter.get("$defs", {})
            if isinstance(operation.response, type) and issubclass(operation.response, BaseModel):
                schemas[operation.response.__name__] = {key: value for key, value in adapter.items() if key != "$defs"}
    return schemas


def _describe(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {"summary": operation.summary, "tags": [TITLES[operation.dialect]], "responses": _responses(operation)}
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in PARAMETER.findall(operation.path)
    ]
    if operation.query is not None:
        schema = operation.query.model_json_schema()
        needed = schema.get("required", [])
        parameters += [
            {"name": name, "in": "query", "required": name in needed, "schema": {"type": "string"}} for name in schema["properties"]
        ]
    if parameters:
        found["parameters"] = parameters
    if operation.request is not None:
        taken = [_reference(each.request) for each in _dialects(operation) if each.request is not None]
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": _any_of(taken)}}}
    if operation.uploads:
        binary = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
        found["requestBody"] = {"required": True, "content": binary}
    return found


def _responses(operation: Operation) -> dict[str, Any]:
    status = 202 if operation.uploads else 201 if (operation.method, operation.path) == ("POST", "/api/libraries") else 200
    if operation.response is None:
        schema = {"type": "string"} if operation.media.startswith("text/") else {"type": "string", "format": "binary"}
        content: dict[str, Any] = {operation.media: {"schema": schema}}
    else:
        content = {"application/json": {"schema": _any_of([_response_schema(each.response) for each in _dialects(operation)])}}
    error = {"application/json": {"schema": _any_of([_reference(ERRORS[each.dialect]) for each in _dialects(operation)])}}
    return {
        str(status): {"description": STATUSES.get(status, "The answer."), "content": content},
        "4XX": {"description": "A refusal that says why.", "content": error},
        "default": {"description": "An error.", "content": error},
    }


def _response_schema(response: Any) -> dict[str, Any]:
    if isinstance(response, type) and issubclass(response, BaseModel):
        return _reference(response)
    schema = TypeAdapter(response).json_schema(ref_template=REFERENCE)
    return {key: value for key, value in schema.items() if key != "$defs"}


def _dialects(operation: Operation) -> list[Operation]:
    """Return the operation, and the other dialect's where the path takes two."""
    return [operation] if operation.other is None else [operation, operation.other]


def _any_of(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _reference(model: type[BaseModel]) -> dict[str, Any]:
    return {"$ref": REFERENCE.format(model=model.__name__)}
