"""Odd texts through the Python door, in a child with 2 GB: encode, encode tokens, add to a library, search it.

python odd_child.py MODEL SCRATCH     prints {name: {"is", "seconds", "vector"}}
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from pathlib import Path


def main(folder: str, scratch: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parents[2]))
    import numpy as np
    from tests.trust.odd_texts import ODD_TEXTS

    from munjang import Library, SentenceEncoder
    from munjang.errors import MunjangError

    warnings.simplefilter("ignore")
    model = SentenceEncoder.load(folder, threads=1)
    library = Library.open(scratch / "a.db", model, analyser="bigrams")
    library.add([{"id": "good", "text": "rain and snow"}])
    resource.setrlimit(resource.RLIMIT_AS, (2 * 2**30, 2 * 2**30))
    reports = {}
    for name, text in ODD_TEXTS.items():
        started, report = time.process_time(), {}
        for door, work in {
            "encode": lambda text=text: model.encode([text]),
            "window": lambda text=text: model.encode([text], long_text="window"),
            "add": lambda text=text, name=name: library.add([{"id": name, "text": text or "x", "note": text[:1_000]}]) and None,
            "search": lambda text=text: library.search(text, k=3) and None,
        }.items():
            try:
                found = work()
            except MunjangError as error:
                report[door] = f"refused: {error}"
            else:
                report[door] = "fine" if found is None or np.isfinite(found).all() else "not finite"
                if door == "encode":
                    report["vector"] = found[0].tolist()
        reports[name] = {**report, "seconds": time.process_time() - started}
    reports["check"] = library.check()
    print(json.dumps(reports))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
