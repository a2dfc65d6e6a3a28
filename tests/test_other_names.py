"""An argument by sentence-transformers' name is answered with ours, and signatures stay honest."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from munjang import CrossEncoder, Library, SentenceEncoder
from munjang.other_names import ENCODE, LOAD, PREDICT, RANK, SEARCH

CALLS = [
    (SentenceEncoder.load, LOAD),
    (SentenceEncoder.encode, ENCODE),
    (SentenceEncoder.encode_query, ENCODE),
    (SentenceEncoder.encode_document, ENCODE),
    (SentenceEncoder.encode_stream, ENCODE),
    (SentenceEncoder.encode_with_report, ENCODE),
    (CrossEncoder.load, LOAD),
    (CrossEncoder.predict, PREDICT),
    (CrossEncoder.rank, RANK),
    (Library.search, SEARCH),
    (Library.search_many, SEARCH),
]


@pytest.mark.parametrize(("function", "names"), CALLS, ids=lambda each: getattr(each, "__qualname__", ""))
def test_every_foreign_name_is_answered_with_ours(function, names):
    own = inspect.signature(function).parameters
    assert not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in own.values())
    for name, advice in names.items():
        if name not in own:
            with pytest.raises(TypeError, match=f"does not take {name}: ") as caught:
                function(object(), "text", **{name: 1})
            assert str(caught.value).endswith(advice)


def test_what_sentence_transformers_takes_is_known_here():
    st = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    theirs = {
        SentenceEncoder.encode: (st.SentenceTransformer.encode, ENCODE),
        SentenceEncoder.load: (st.SentenceTransformer.__init__, LOAD),
        CrossEncoder.predict: (st.CrossEncoder.predict, PREDICT),
        CrossEncoder.rank: (st.CrossEncoder.rank, RANK),
    }
    for ours, (function, names) in theirs.items():
        own = set(inspect.signature(ours).parameters) | {"self", "query", "documents"}
        given = {name for name, each in inspect.signature(function).parameters.items() if each.kind is not inspect.Parameter.VAR_KEYWORD}
        assert given - own - set(names) <= {"precision", "modules", "model_card_data", "processor_kwargs", "use_auth_token", "kwargs"}, ours


def test_an_unknown_name_is_pythons_own_error(tiny_bert_folder: Path) -> None:
    model = SentenceEncoder.load(tiny_bert_folder)
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        model.encode(["rain"], nonsense=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="batch_size: leave it out: .*; show_progress_bar: use progress"):
        model.encode(["rain"], batch_size=8, show_progress_bar=True)  # type: ignore[call-arg]
