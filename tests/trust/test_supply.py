"""What is installed is what was tested: every package is pinned with a checksum, and the bill of materials lists them all."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

REQUIREMENTS = Path(__file__).parents[2] / "requirements"
LISTS = sorted(path.stem for path in REQUIREMENTS.glob("*.txt"))


def statements(name: str) -> list[str]:
    """Return the list's lines as pip sees them: joined where a backslash ends one."""
    text = (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    return [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


@pytest.mark.parametrize("name", LISTS)
def test_every_package_is_pinned_with_a_checksum(name, figures):
    lines = [line for line in statements(name) if not line.startswith("--")]
    bad = [line for line in lines if not re.match(r"[\w.\[\],-]+==\S+.*--hash=sha256:[0-9a-f]{64}", line)]
    figures("every package is pinned with a checksum", cases=len(lines), bad=len(bad))
    assert not bad
    assert lines


@pytest.mark.parametrize("name", LISTS)
def test_the_bill_of_materials_lists_every_package(name):
    done = subprocess.run([sys.executable, str(REQUIREMENTS / "sbom.py"), name], capture_output=True, text=True, check=True, timeout=60)
    bill = json.loads(done.stdout)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    listed = {f"{each['name']}=={each['version']}" for each in bill["components"]}
    wanted = {re.sub(r"\[.*?\]", "", line.split()[0].rstrip(";")).lower().replace("_", "-") for line in statements(name) if "==" in line}
    assert listed == wanted
    for each in bill["components"]:
        assert each["purl"].startswith(f"pkg:pypi/{each['name']}@")
        assert each["hashes"]
        assert each["bom-ref"] == each["purl"]
