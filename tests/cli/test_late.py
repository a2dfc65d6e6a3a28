"""Token vectors at the shell: `add --late`, `index --late`, what `search --rerank` means, `rerank --late`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_library import _tiny_default, news  # noqa: F401

Munjang = Callable[..., Any]


def test_a_library_added_late_re_ranks_by_itself(news: Path, munjang: Munjang) -> None:  # noqa: F811
    assert munjang("add", "late.db", news, "--late").code == 0
    assert munjang("info", "late.db", "--json").json["token_vectors"] == "1bit"
    found = munjang("search", "late.db", "winter weather", "--json").json
    assert {(hit["reranked"], hit["scored_by"]) for hit in found} == {(True, "late")}
    assert munjang("search", "late.db", "winter weather", "--rerank", "--json").json == found
    plain = munjang("search", "late.db", "winter weather", "--no-rerank", "--json").json
    assert "scored_by" not in plain[0]
    shown = munjang("search", "late.db", "winter weather", "--explain", "-k", "1")
    assert "met: winter~" in shown.out
    assert munjang("check", "late.db").code == 0


def test_an_older_library_is_indexed_first(news: Path, munjang: Munjang) -> None:  # noqa: F811
    assert munjang("add", "news.db", news).code == 0
    refused = munjang("add", "news.db", news, "--late")
    assert refused.code == 2
    assert "munjang index news.db --late" in refused.err
    assert munjang("index", "news.db", "--json").json["token_vectors"] is None
    done = munjang("index", "news.db", "--late", "--json").json
    assert (done["token_vectors"], done["passages"] > 0) == ("1bit", True)
    assert munjang("index", "news.db", "--late", "--json").json["passages"] == 0
    assert munjang("search", "news.db", "winter", "--json").json[0]["scored_by"] == "late"


def test_texts_are_ranked_by_their_tokens(news: Path, munjang: Munjang) -> None:  # noqa: F811
    found = munjang("rerank", "winter weather", news, "--late", "-k", "3", "--json").json
    assert [hit["rank"] for hit in found] == [1, 2, 3]
    assert found[0]["score"] >= found[1]["score"] >= found[2]["score"]
    late = munjang("rerank", "winter weather", news, "--late", "--budget", "1000", "--json").json
    assert sorted(hit["id"] for hit in late) != [hit["id"] for hit in found]
    assert late[:3] == found


@pytest.mark.usefixtures("news")
def test_what_contradicts_itself_is_refused(munjang: Munjang) -> None:
    assert munjang("search", "a.db", "q", "--no-rerank", "--reranker", "x").code == 2
    assert munjang("search", "a.db", "q", "--no-rerank", "--rerank-share", "0.5").code == 2
