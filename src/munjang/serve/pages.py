"""The page at /, and its files: what lies in the folder `page` beside this file, and the drawing of maps that reports use too.

The files are served under /page/DIGEST/NAME, and the digest is of all their contents. So a browser keeps them for good, and never mixes
those of two versions. The front itself is asked for anew each time, and says the digest.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256
from importlib.resources import files as resources
from pathlib import Path

from munjang.serve.api_analyze import ClustersRequest, KeywordsRequest, TopicsRequest
from munjang.serve.api_classify import ClassifyRequest
from munjang.serve.call import Call, Operation, Reply
from munjang.serve.errors import Refusal
from munjang.serve.schema import OwnModel

FOLDER = Path(__file__).parent / "page"
FRONT = "index.html"
REQUESTS: dict[str, type[OwnModel]] = {
    "keywords": KeywordsRequest,
    "topics": TopicsRequest,
    "clusters": ClustersRequest,
    "classify": ClassifyRequest,
}
"""The requests whose bounds the front shows: `data-option="keywords top"`."""
MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
KEPT = "public, max-age=31536000, immutable"
DIGEST_PLACE = b"DIGEST"
"""What stands in the front instead of the digest."""


@cache
def files() -> dict[str, tuple[bytes, str]]:
    """Return every file of the page by its path inside the folder, with its type; read once."""
    found = sorted(path for path in FOLDER.rglob("*") if path.suffix in MEDIA and path.is_file())
    contents = {path.relative_to(FOLDER).as_posix(): path.read_bytes() for path in found}
    report = resources("munjang.report")
    contents["map.js"] = report.joinpath("map.js").read_bytes() + b"\nexport { drawMap };\n"  # a script there, a module here
    contents["map.css"] = report.joinpath("map.css").read_bytes()
    return {name: (content, MEDIA[Path(name).suffix]) for name, content in contents.items()}


@cache
def digest() -> str:
    """Return what names this version of the files: 16 hexadecimal digits of a hash of them all."""
    whole = sha256()
    for name, (content, _) in sorted(files().items()):
        whole.update(f"{name} {len(content)}\n".encode() + content)
    return whole.hexdigest()[:16]


@cache
def front_page() -> bytes:
    """Return the front, which names its files by the digest and has the bounds, defaults and choices of the requests it makes."""
    filled = re.sub(rb'data-(option|choices)="(\w+) (\w+)"', _fill, files()[FRONT][0])
    return filled.replace(DIGEST_PLACE, digest().encode())


def _fill(place: re.Match[bytes]) -> bytes:
    what, request, name = (part.decode() for part in place.groups())
    schema = REQUESTS[request].model_json_schema()["properties"][name]
    parts = {key: value for part in (schema, *schema.get("anyOf", ())) for key, value in part.items()}
    if what == "choices":
        return f'data-choices="{" ".join(parts["enum"])}"'.encode()
    given = {"min": parts.get("minimum"), "max": parts.get("maximum"), "value": schema.get("default")}
    return " ".join(f'{attribute}="{value}"' for attribute, value in given.items() if value is not None).encode()


async def front(_call: Call, _body: None) -> Reply:
    """Show the page."""
    return Reply(front_page(), media=MEDIA[".html"])


async def part(call: Call, _body: None) -> Reply:
    """Return one file of the page; of this version alone."""
    version, _, name = call.path["name"].partition("/")
    found = files().get(name)
    if found is None or version != digest() or name == FRONT:
        raise Refusal(404, "the page has no such file\n  reload the page")
    return Reply(found[0], headers={"cache-control": KEPT, "etag": f'"{version}"'}, media=found[1])


OPERATIONS = (
    Operation("GET", "/", "munjang", "The page.", front, open=True),
    Operation("GET", "/page/{name:path}", "munjang", "A file of the page.", part, open=True),
)
