"""A child that opens damaged folders one after the other, with 2 GB of memory, and says what came of each.

    python opening.py KIND FOLDER SCRATCH FIRST COUNT

A kind may end in parts of the library's file, as "library/passages_of,vectors": then single bits are flipped there, in each part in turn.

One JSON line each: {"seed", "how", "is"}, where "is" is "same", "refused", "changed", or what went wrong. A line with "how" alone comes
before the folder is opened, so that whoever watches knows at which damage a child died or hung.
"""

from __future__ import annotations

import json
import resource
import shutil
import sys
import warnings
from pathlib import Path

MEMORY = 2 * 2**30


def main(kind: str, folder: Path, scratch: Path, first: int, count: int) -> None:
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.trust.damage import damage, flip_in_region, regions
    from tests.trust.looks import ABSENT, LOOKS

    from munjang.errors import MunjangError

    warnings.simplefilter("ignore")
    kind, _, names = kind.partition("/")
    look = LOOKS[kind]
    pages = [regions(folder / "a.db")[name] for name in names.split(",") if name]
    good = look(Path(shutil.copytree(folder, scratch / "good")))  # imports what it needs
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for seed in range(first, first + count):
        place = Path(shutil.copytree(folder, scratch / "damaged"))
        how = flip_in_region(place / "a.db", pages[seed % len(pages)], seed) if pages else damage(place, seed)
        print(json.dumps({"seed": seed, "how": how}), flush=True)
        try:
            found = look(place)
            what = "same" if found == good else "refused" if found == ABSENT else "changed"
        except MunjangError as error:
            what = "refused" if str(error).strip() else "refused without a word"
        except BaseException as error:
            what = f"{type(error).__name__}: {str(error)[:200]}"
        print(json.dumps({"seed": seed, "how": how, "is": what}), flush=True)
        shutil.rmtree(place)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
