"""One operation as an ASGI app: body → checked request → handler → answer, or a refusal in the operation's dialect.

While a handler works, the connection is watched; when the client goes away, what it waits for is dropped from the queue.

JSON that holds a trap is refused, each with its name: what is not UTF-8 (UTF-16 too), NaN and infinities, numbers that do not fit, an
object that has a key twice or too many keys, nesting beyond the limit, and lone surrogates. All of it takes time in proportion to the body.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import orjson

from munjang.errors import quote
from munjang.limits import SERVE_LIMITS
from munjang.serve.body import Held, read_body, read_upload
from munjang.serve.call import Call, Operation, Reply, Seen, client_of
from munjang.serve.errors import Dialect, Disconnected, Problem, Refusal, problem_of
from munjang.serve.keys import ANYONE
from munjang.serve.service import Service
from munjang.serve.work_item import RequestWork
from munjang.text.records import first_repeated

_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)  # matches at every quote, so a scan is linear
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_DIGITS = 400
"""Digits of a whole number, at most; no field needs more, and converting very long ones is slow."""


def parse_json(body: bytes, *, max_depth: int = SERVE_LIMITS.max_json_depth) -> Any:
    """Return the value, or refuse the body with status 400.

    >>> parse_json(b'{"input": "rain"}')
    {'input': 'rain'}
    """
    if not body.strip():
        raise Refusal(400, "the body is empty, expected JSON")
    _check_depth(body, max_depth)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refusal(400, f"byte {error.start:,} of the body is not UTF-8, which JSON is written in") from None
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise Refusal(400, f"the body is not JSON: {error.msg} at character {error.pos:,}") from None
    except RecursionError:
        raise Refusal(400, f"the JSON is nested deeper than {max_depth} levels") from None
    if _SURROGATE.search(body):
        _check_surrogates(value)
    return value


def _check_depth(body: bytes, limit: int) -> None:
    if body.count(b"[") + body.count(b"{") <= limit:
        return
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(body):
        sign = found.group()
        if sign in (b"[", b"{"):
            depth += 1
            if depth > limit:
                raise Refusal(400, f"the JSON is nested deeper than {limit} levels")
        elif sign in (b"]", b"}"):
            depth -= 1


def _check_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise Refusal(400, "a text holds half of a surrogate pair (\\ud800 to \\udfff), which is no character") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > SERVE_LIMITS.max_json_keys:
        raise Refusal(400, f"an object has {len(pairs):,} keys, the limit is {SERVE_LIMITS.max_json_keys:,}")
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Refusal(400, f"the key {quote(first_repeated(name for name, _ in pairs) or '')} occurs twice in one object")
    return found


def _float(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise Refusal(400, f"the number {quote(written, 30)} is too large")
    return number


def _integer(written: str) -> int:
    if len(written) > _DIGITS:
        raise Refusal(400, f"the number {quote(written, 30)} has more than {_DIGITS} digits")
    return int(written)


def _constant(written: str) -> Any:
    raise Refusal(400, f"{written} is no JSON value")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_int=_integer, parse_constant=_constant)


Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

WATCH_AFTER = 0.05
"""Seconds after which a connection is watched; most answers are out before."""

LARGE_BODY = 64 * 2**10
"""Bytes of JSON from which parsing is done in a thread."""

ONE_LIBRARY = "/api/libraries/{name}"
"""How paths begin that are about one library, to which a key must have a right."""

PIECE = 2**18
"""Bytes of a file that are sent at once."""

JSON = "application/json"
QUERY_FIELDS = 20


class Endpoint:
    """Answers one operation."""

    def __init__(self, operation: Operation, service: Service, held: Held) -> None:
        self.operation = operation
        self._service = service
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        seen: Seen = scope.get("munjang.seen") or Seen()
        seen.route, seen.dialect = self.operation.path, self.operation.dialect
        try:
            with self._held.account() as taken:
                reply = await self._answer(scope, receive, seen, taken)
        except Disconnected:
            return
        except Exception as error:
            reply = make_refusal(problem_of(error), seen.dialect)
            if reply.status == 500:
                _report(error, seen.id)
        await send_reply(send, reply)

    async def _answer(self, scope: Scope, receive: Receive, seen: Seen, taken: list[int]) -> Reply:
        operation, service = self.operation, self._service
        key, path = scope.get("munjang.key", ANYONE), scope.get("path_params") or {}
        key.check(operation.right, path["name"] if operation.path.startswith(ONE_LIBRARY) else None)
        client = client_of(scope)
        if operation.computes:
            service.batcher.check_room(client)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        query = _query(scope, operation)
        call = Call(service, path, query, seen, key, request_work=RequestWork(client))
        if operation.uploads:
            return await self._upload(call, receive, headers)
        request = None
        if operation.request is not None:
            _check_media(headers)
            body = await read_body(receive, headers, self._held, taken, service.settings.limits)
            value = parse_json(body) if len(body) < LARGE_BODY else await service.in_text_thread(parse_json, body)
            operation = operation.spoken(value)
            seen.dialect = operation.dialect
            assert operation.request is not None
            request = operation.request.model_validate(value)
            call.model = getattr(request, "model", None)
        watch = asyncio.get_running_loop().call_later(WATCH_AFTER, _watch, receive, call)
        try:
            return await operation.handle(call, request)
        finally:
            watch.cancel()
            if call.watcher is not None:
                call.watcher.cancel()

    async def _upload(self, call: Call, receive: Receive, headers: Mapping[str, str]) -> Reply:
        service = self._service
        name = call.query.get("filename", "")
        suffix, room = service.upload_suffix(name), service.upload_room
        service.jobs.check_room()
        path, size = await read_upload(receive, headers, service.upload_folder(), suffix, room, service.settings.limits)
        call.upload = path
        sizes = [size]

        def discard() -> None:
            path.unlink(missing_ok=True)
            if sizes:
                room.give_back(sizes.pop())

        call.discard_upload = discard
        try:
            return await self.operation.handle(call, None)
        except BaseException:
            discard()
            raise


def make_refusal(problem: Problem, dialect: Dialect) -> Reply:
    """Return a refusal as an answer."""
    closing = {"connection": "close"} if problem.status in (408, 413, 431) else {}
    return Reply(problem.body(dialect), problem.status, problem.headers | closing)


async def send_reply(send: Send, reply: Reply) -> None:
    """Write an answer."""
    if reply.file is not None:
        await _send_file(send, reply, reply.file)
        return
    if reply.media is None:
        body = orjson.dumps(reply.content, option=orjson.OPT_SERIALIZE_NUMPY)
    else:
        body = reply.content if isinstance(reply.content, bytes) else str(reply.content).encode()
    await send(_head(reply, len(body)))
    await send({"type": "http.response.body", "body": body})


async def _send_file(send: Send, reply: Reply, file: Path) -> None:
    """Write a file piece by piece, each as soon as the client has taken the one before."""
    loop = asyncio.get_running_loop()
    try:
        with file.open("rb") as handle:
            await send(_head(reply, file.stat().st_size))
            while piece := await loop.run_in_executor(None, handle.read, PIECE):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        reply.finish()


def _head(reply: Reply, size: int) -> dict[str, Any]:
    headers = [(b"content-type", (reply.media or JSON).encode("latin-1")), (b"content-length", str(size).encode())]
    headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers.items()]
    return {"type": "http.response.start", "status": reply.status, "headers": headers}


def _watch(receive: Receive, call: Call) -> None:
    async def until_gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        call.request_work.drop()

    call.watcher = asyncio.get_running_loop().create_task(until_gone())


def _query(scope: Scope, operation: Operation) -> Mapping[str, str]:
    if operation.query is None:
        return {}
    try:
        pairs = parse_qsl(scope["query_string"].decode("ascii"), keep_blank_values=True, max_num_fields=QUERY_FIELDS, errors="strict")
    except ValueError:
        raise Refusal(400, f"the query is not UTF-8, or has more than {QUERY_FIELDS} fields") from None
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Refusal(400, "a field of the query occurs twice")
    operation.query.model_validate(found, strict=False)
    return found


def _check_media(headers: Mapping[str, str]) -> None:
    written = headers.get("content-type", JSON)
    media, _, parameters = written.partition(";")
    charset = parameters.partition("charset=")[2].strip().strip('"').lower()
    if media.strip().lower() != JSON or charset not in ("", "utf-8", "utf8"):
        raise Refusal(415, "content-type: expected application/json in UTF-8")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Refusal(415, "content-encoding: compressed bodies are not read; send the JSON as it is")


def _report(error: Exception, request: str) -> None:
    """Show a bug of ours on standard error: the places, and no values that could be a client's text."""
    places = "".join(traceback.format_tb(error.__traceback__))
    print(f"munjang: internal error in request {request}: {type(error).__name__}\n{places}", file=sys.stderr, flush=True)
