"""An encoder whose vectors are sums of random vectors of words, and texts about three things."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np

WIDTH = 48
SUBJECTS = {
    "경제": "금리 환율 주식 수출 물가 은행 투자 증시 무역 기업".split(),  # noqa: SIM905
    "스포츠": "야구 축구 선수 감독 경기 우승 골 홈런 리그 결승".split(),  # noqa: SIM905
    "날씨": "비 눈 바람 기온 태풍 맑음 장마 폭염 한파 구름".split(),  # noqa: SIM905
}
FILLER = "오늘 내일 어제 다시 크게 조금 올해 지난해 전국 서울".split()  # noqa: SIM905


class WordEncoder:
    """Texts that share words are alike."""

    dimension = WIDTH
    name = "words"

    def __init__(self, fingerprint: str = "words-1") -> None:
        self.fingerprint = fingerprint

    def encode(self, texts: Iterable[str], /) -> np.ndarray:
        rows = [sum((_vector(word) for word in text.split()), np.zeros(WIDTH)) for text in texts]
        return np.asarray(rows, dtype=np.float32).reshape(-1, WIDTH)


def _vector(word: str) -> np.ndarray:
    return np.random.default_rng(zlib.crc32(word.encode())).standard_normal(WIDTH)


def write_texts(each: int, *, seed: int = 0, words: int = 3) -> tuple[list[str], list[str]]:
    """Return texts of a few words about each subject, and their labels, shuffled."""
    random = np.random.default_rng(seed)
    made = []
    for label, own in SUBJECTS.items():
        for _ in range(each):
            chosen = [*random.choice(own, words, replace=False), *random.choice(FILLER, 3, replace=False)]
            made.append((" ".join(random.permutation(chosen).tolist()), label))
    order = random.permutation(len(made))
    return [made[place][0] for place in order], [made[place][1] for place in order]
