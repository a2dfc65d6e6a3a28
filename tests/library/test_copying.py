"""One library's documents in another."""

from __future__ import annotations

import pytest

from munjang.errors import UsageError
from munjang.library.copying import copy_documents


def filled(opened, encoder, name):
    library = opened(encoder, name)
    library.add([{"id": str(number), "text": f"rain {number}"} for number in range(5)])
    return library


def test_a_copy_holds_the_same_answers_and_is_made_once(opened, encoder):
    source, target = filled(opened, encoder, "a.db"), opened(encoder, "b.db")
    target.add([{"id": "own", "text": "snow"}, {"id": "3", "text": "rain 3"}])
    seen = len(encoder.seen)
    assert copy_documents(source.store, target.store) == 4
    assert copy_documents(source.store, target.store) == 0
    assert len(encoder.seen) == seen
    asked = source.search("rain 2", k=3)
    assert [(hit.id, hit.score) for hit in target.search("rain 2", k=3)] == [(hit.id, hit.score) for hit in asked]
    assert target.get(["own"])[0].text == "snow"


def test_a_copy_to_a_library_of_another_model_is_refused_with_both_names(opened, encoder, make_encoder):
    source, target = filled(opened, encoder, "a.db"), opened(make_encoder("other", 8), "b.db")
    with pytest.raises(
        UsageError, match=r"b.db: holds vectors of 'other' \(other-8\), \S+a.db those of 'stub' .*\n  copy to a new library"
    ):
        copy_documents(source.store, target.store)
    assert target.info().documents == 0
