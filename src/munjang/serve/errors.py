"""Why a request is refused, and how each dialect says it.

Comes in: an error of ours, or a `Refusal` raised by the server itself. Goes out: a status, headers and one JSON body in the shape that the
route's clients read. A message names the limit that was met; it never holds a key and shows user text only through `quote`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pydantic import ValidationError

from munjang.errors import Busy, MunjangError, quote

Dialect: TypeAlias = Literal["openai", "infinity", "tei", "cohere", "munjang"]

GATEWAY_ERRORS = {424: "Backend", 429: "Overloaded", 503: "Unhealthy"}
OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
CODES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    409: "conflict",
    411: "length_required",
    413: "too_large",
    415: "unsupported_media_type",
    421: "unknown_host",
    422: "invalid",
    424: "no_model",
    429: "overloaded",
    431: "headers_too_large",
    501: "not_installed",
    503: "unavailable",
    507: "no_space",
}


class Refusal(MunjangError):
    """The server says no."""

    def __init__(self, status: int, message: str, *, field: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.http_status = status
        self.field = field
        self.retry_after = retry_after


class NothingSent(Refusal):
    """A list that should hold something is empty."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(400, message, field=field)


class Overloaded(Busy):
    """The queue is full; come back later."""

    def __init__(self, message: str, *, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Disconnected(Exception):
    """The client has gone; nobody reads the answer."""


@dataclass(frozen=True)
class Problem:
    """A refusal in no dialect yet."""

    status: int
    message: str
    field: str | None = None
    retry_after: int | None = None
    empty: bool = False
    """Nothing was sent, for which text-embeddings-inference has a type of its own."""

    @property
    def headers(self) -> dict[str, str]:
        """What goes beside the body."""
        found = {} if self.retry_after is None else {"retry-after": str(self.retry_after)}
        return found | ({"www-authenticate": "Bearer"} if self.status == 401 else {})

    def body(self, dialect: Dialect) -> dict[str, Any]:
        """Return the body in the shape that the dialect's clients read."""
        code = CODES.get(self.status, "internal_error" if self.status >= 500 else "bad_request")
        if dialect in ("openai", "infinity"):
            kind = OPENAI_TYPES.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
            return {"error": {"message": self.message, "type": kind, "param": self.field, "code": code}}
        if dialect == "tei":
            kind = "Empty" if self.empty else GATEWAY_ERRORS.get(self.status, "Validation" if self.status < 500 else "Backend")
            return {"error": self.message, "error_type": kind}
        if dialect == "cohere":
            return {"message": self.message}
        return {"error": {"message": self.message, "code": code, "field": self.field}}


def problem_of(error: Exception) -> Problem:
    """Say what a client is told about an error; of a bug of ours, only that there is one."""
    if isinstance(error, ValidationError):
        return _invalid(error)
    if isinstance(error, MunjangError):
        retry = getattr(error, "retry_after", None)
        if retry is None and error.http_status == 429:
            retry = 1
        return Problem(error.http_status, str(error), getattr(error, "field", None), retry, isinstance(error, NothingSent))
    return Problem(500, "internal error; the server's log says which")


def _invalid(error: ValidationError) -> Problem:
    """Name the first field at fault; where a field has several forms, say only that none fits."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    first = found[0]
    place = [str(part) for part in first["loc"]]
    if not place:
        return Problem(422, f"the body: {first['msg']}")
    forms = sum(each["loc"][:1] == first["loc"][:1] for each in found)
    if forms > 1 and len(place) > 1:
        return Problem(422, f"{_name_field(place[0])} has none of the forms it may have; GET /docs shows them", _name_field(place[0]))
    where = _name_field(".".join(place))
    return Problem(422, f"{where}: {first['msg']}", where)


def _name_field(field: str) -> str:
    """Return a field's name as it is; one that a client made up may hold anything and is quoted."""
    return field if field.replace("_", "").replace(".", "").isalnum() and len(field) < 60 else quote(field)
