"""Write the pinned, hashed lists that ./run installs: base.txt from base.in, and so on.

    python requirements/lock.py NAME… [--constraint FILE]       needs uv; FILE is a `pip freeze` of where the packages were tested

torch is left out on purpose: the CPU build is installed first and alone, by ./run, and no CUDA package is ever listed.
"""

import argparse
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
NEVER = re.compile(r"^(torch|triton|cuda-|nvidia-|pip==)")  # pip is what installs, and every environment has it


def lock(source: Path, constraints: Path | None) -> None:
    """Resolve one list and write it with hashes."""
    command = ["uv", "pip", "compile", str(source), "--generate-hashes", "--no-header", "--no-annotate", "--quiet"]
    command += ["--no-emit-index-url", "--no-emit-find-links", "--python-version", "3.11"]
    if constraints:
        command += ["--constraint", str(constraints)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    blocks = re.split(r"\n(?=[a-zA-Z0-9])", text)
    kept = sorted(block.rstrip() for block in blocks if block.strip() and not NEVER.match(block))
    bare = _without_dependencies(source)
    source.with_suffix(".txt").write_text("\n".join(kept + bare) + "\n")


def _without_dependencies(source: Path) -> list[str]:
    """Packages that are wanted for their files alone stand in the .in file as `#!no-deps NAME==VERSION`."""
    wanted = re.findall(r"^#!no-deps (\S+)$", source.read_text(), re.MULTILINE)
    found = []
    for name in wanted:
        command = ["uv", "pip", "compile", "-", "--no-deps", "--generate-hashes", "--no-header", "--no-annotate", "--quiet"]
        found.append(subprocess.run(command, input=name, check=True, capture_output=True, text=True).stdout.strip())
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", choices=sorted(path.stem for path in HERE.glob("*.in")))
    parser.add_argument("--constraint", type=Path)
    options = parser.parse_args()
    for name in options.names:
        lock(HERE / f"{name}.in", options.constraint)
