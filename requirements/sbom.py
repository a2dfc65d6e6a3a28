"""A list of pinned packages → a bill of materials (CycloneDX 1.6, JSON): name, version, package address and SHA-256 of each.

    python requirements/sbom.py [LIST]     LIST is base, dev, bench, …; base unless named; the result goes to standard output

The same list always gives the same bytes: no date and no random number is in it.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import uuid
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PINNED = re.compile(r"^([A-Za-z0-9._-]+)(\[[^\]]*\])?==([^\s;\\]+)")
VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def packages(text: str) -> list[dict[str, Any]]:
    """Return the components of a list as pip reads it: one pinned name a line, its hashes on the lines that follow."""
    found: list[dict[str, Any]] = []
    for line in text.splitlines():
        if pinned := PINNED.match(line):
            name, version = pinned[1].lower().replace("_", "-"), pinned[3]
            purl = f"pkg:pypi/{name}@{version.replace('+', '%2B')}"
            found.append({"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl, "hashes": []})
        found[-1]["hashes"] += [{"alg": "SHA-256", "content": digest} for digest in HASH.findall(line)] if found else []
    return found


def bill(name: str) -> dict[str, Any]:
    """Return the bill of materials of requirements/NAME.txt."""
    text = (HERE / f"{name}.txt").read_text(encoding="utf-8")
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = VERSION.findall((HERE.parent / "src/munjang/__init__.py").read_text(encoding="utf-8"))[0]
    own = {"type": "application", "bom-ref": project["name"], "name": project["name"], "version": version}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, project['name'] + version + text)}",
        "version": 1,
        "metadata": {"component": {**own, "licenses": [{"license": {"id": project["license"]}}]}},
        "components": packages(text),
    }


if __name__ == "__main__":
    print(json.dumps(bill(sys.argv[1] if len(sys.argv) > 1 else "base"), indent=1))
