"""The server's routes and shapes, from its own OpenAPI description."""

from __future__ import annotations

import json
from typing import Any

from munjang.serve.app import all_operations
from munjang.serve.openapi import TITLES, describe
from website.reference.markdown import code, table


def page() -> str:
    """Return the page of the HTTP interface."""
    description = describe([each for each in all_operations() if each.dialect in TITLES])
    parts = [
        "# HTTP\n",
        "What `munjang serve` answers. A running server shows the same at `/docs`, and for machines at `/openapi.json`. How to use it:\n"
        "[serving](../serve.md).\n",
    ]
    for title in TITLES.values():
        parts += [f"## {title}\n", table(("method", "path", "what it does", "takes", "gives"), _rows(description["paths"], title))]
    parts.append("## Shapes\n")
    for name, schema in sorted(description["components"]["schemas"].items()):
        parts += [f"### {name}\n", _shape(schema)]
    return "\n".join(parts)


def _rows(paths: dict[str, Any], title: str) -> list[tuple[str, ...]]:
    return [
        (method.upper(), code(path), each["summary"], _body(each.get("requestBody", {})), _answer(each["responses"]))
        for path, methods in paths.items()
        for method, each in methods.items()
        if each["tags"] == [title]
    ]


def _body(body: dict[str, Any]) -> str:
    return " or ".join(_linked(kind.get("schema", {})) for kind in body.get("content", {}).values())


def _answer(responses: dict[str, Any]) -> str:
    first = next(status for status in responses if status.startswith("2"))
    return " or ".join(_linked(kind["schema"]) for kind in responses[first].get("content", {}).values())


def _linked(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_linked(each) for each in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_linked(schema.get('items', {}))}"
    if "enum" in schema or "const" in schema:
        return " or ".join(code(json.dumps(each)) for each in schema.get("enum", [schema.get("const")]))
    return str(schema.get("format") or schema.get("type") or "anything")


def _shape(schema: dict[str, Any]) -> str:
    needed = schema.get("required", [])
    rows = [
        (
            code(name),
            _linked(each),
            "required" if name in needed else code(json.dumps(each.get("default"), ensure_ascii=False)),
            _bounds(each),
        )
        for name, each in schema.get("properties", {}).items()
    ]
    says = schema.get("description", "")
    return (f"{says}\n\n" if says else "") + (table(("field", "type", "default", "bounds"), rows) if rows else _linked(schema) + "\n")


def _default(schema: dict[str, Any]) -> str:
    return code(json.dumps(schema.get("default"), ensure_ascii=False))


def _bounds(schema: dict[str, Any]) -> str:
    kinds = [schema, *schema.get("anyOf", [])]
    names = {"minimum": "≥", "maximum": "≤", "exclusiveMinimum": ">", "exclusiveMaximum": "<"}
    names |= {"minLength": "length ≥", "maxLength": "length ≤", "minItems": "items ≥", "maxItems": "items ≤"}
    return ", ".join(f"{sign} {kind[key]:,}" for kind in kinds for key, sign in names.items() if key in kind)
