"""The sample collection: 240 sentences in Korean and English on 24 subjects, written for Munjang.

What the demo, the tutorial and the tests search. The two languages share subjects, not sentences, so a Korean query finds English texts
about the same thing and no translation of itself. It is far too small to judge a model by; that is `evaluate`'s work.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import cast

from munjang.errors import DamagedFile
from munjang.wording import Language

_COLUMNS = ("id", "language", "subject", "text")


@dataclass(frozen=True)
class Sample:
    """One sentence of the collection, and what it is about."""

    id: str
    language: Language
    subject: str
    text: str


@dataclass(frozen=True)
class DemoQuery:
    """A question to try on the collection, and the subject that a good answer is about."""

    text: str
    language: Language
    subject: str


DEMO_QUERIES = (
    DemoQuery("겨울에 얼마나 추워질까?", "ko", "weather"),
    DemoQuery("택배가 안 왔어요", "ko", "shopping and delivery"),
    DemoQuery("밤에 잠이 오지 않을 때", "ko", "sleep"),
    DemoQuery("축구 경기 결과", "ko", "football"),
    DemoQuery("프로그램이 자꾸 멈춰요", "ko", "software bugs"),
    DemoQuery("my dog keeps barking", "en", "pets"),
    DemoQuery("planets around other stars", "en", "space"),
    DemoQuery("the rent is going up", "en", "real estate"),
    DemoQuery("what to do when the ground shakes", "en", "volcano and earthquake"),
    DemoQuery("how to brew better coffee", "en", "coffee"),
)
"""Each asks in other words than the sentences use."""


def load_samples() -> list[Sample]:
    """Return the sample collection in its order: by subject, Korean before English.

    >>> load_samples()[0].id
    'weather-ko-1'
    """
    lines = files("munjang.models").joinpath("samples.tsv").read_text(encoding="utf-8").splitlines()
    rows = [tuple(line.split("\t")) for line in lines]
    if not rows or rows[0] != _COLUMNS or any(len(row) != len(_COLUMNS) for row in rows):
        raise DamagedFile(f"samples.tsv: expected the columns {', '.join(_COLUMNS)} in every line\n  reinstall munjang")
    return [Sample(id=id_, language=cast("Language", language), subject=subject, text=text) for id_, language, subject, text in rows[1:]]
