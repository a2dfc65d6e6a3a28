"""Mixed work for minutes or hours: encode, search, add, remove and serve again and again, and the process does not grow."""

from __future__ import annotations

import random
import statistics
import time

import pytest
from tests.conftest import TEXTS
from tests.serve.conftest import LIMITS, running
from tests.trust.sizes import sized

from munjang import Library, SentenceEncoder
from munjang.serve.settings import ServerSettings

psutil = pytest.importorskip("psutil", reason="it reads the memory of a process")

MOST = 0.05
"""How much of its memory a process may have gained between the first and the last quarter."""
WARM = 0.3
"""The part of the time after which memory counts: caches and pools are full by then."""
FULL = [text for text in TEXTS if text.strip()]
"""A library takes no empty text."""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::munjang.models.long_text.TruncationWarning")
def test_mixed_work_does_not_grow(tiny_bert_folder, tmp_path, figures):
    model, chance, rows = SentenceEncoder.load(tiny_bert_folder), random.Random(1), []
    seconds = sized("seconds of mixed work", "slow")
    started, me = time.monotonic(), psutil.Process()
    with Library.open(tmp_path / "a.db", model, analyser="bigrams") as library, running(ServerSettings(limits=LIMITS), model) as server:
        rounds = 0
        while (passed := time.monotonic() - started) < seconds:
            _one_round(model, library, server, chance)
            rounds += 1
            if rounds % 200 == 0:
                library.compact()
            if rounds % 10 == 0 and passed > WARM * seconds:
                rows.append(me.memory_info().rss)
    quarter = max(1, len(rows) // 4)
    first, last = statistics.median(rows[:quarter]), statistics.median(rows[-quarter:])
    drift = last / first - 1
    notes = f"{seconds:,} s, {rounds:,} rounds, {first / 2**20:.0f} MB, drift {100 * drift:+.1f} %"
    figures("mixed work does not grow in memory", cases=rounds, bad=int(drift > MOST), notes=notes)
    assert drift <= MOST, notes


def _one_round(model: SentenceEncoder, library: Library, server, chance: random.Random) -> None:
    texts = [" ".join(chance.choices(FULL, k=2)) for _ in range(8)]
    model.encode(texts, long_text=chance.choice(("truncate", "window")))
    library.add([{"id": str(chance.randrange(200)), "text": text} for text in texts])
    library.remove([str(chance.randrange(200))])
    library.search(chance.choice(FULL), k=5, by=chance.choice([None, "meaning"]))
    answer = server.post("/v1/embeddings", {"input": texts, "model": "any"})
    assert answer.status == 200
