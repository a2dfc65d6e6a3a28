"""Late interaction: a question's tokens are compared with the stored tokens of passages, which re-ranks the best hits in milliseconds.

A library with token vectors keeps a few bits for every token of a passage (`vectors/maxsim.py`), made in the same pass as the passage's
vector. A codebook holds the mean of a model's token vectors and how far they stand from it. It is fitted once, on fixed texts, and stored:
so it does not depend on what is added first, and two libraries of one model have the same one. Codes of a model that the library no longer
has are not used. A passage without codes, which an earlier Munjang may have added, gets them at the time of the search.
A library without token vectors makes those of its best hits at the time of a search that asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from munjang.errors import UsageError
from munjang.library.passages import fitting_passages
from munjang.library.results import Hit, WordMatch
from munjang.library.store import Settings, Store, StoredCodebook
from munjang.types import Encoder, TokenEncoder, Vectors
from munjang.vectors.maxsim import DEFAULT_FORMAT, SKIP, TokenCodes, TokenFormat, fit_codebook, maxsim, token_similarities
from munjang.wording import count

TEXTS = (
    "비가 많이 와서 오늘 저녁 경기는 다음 주 토요일로 미뤄졌다.",
    "시청 민원실은 평일 오전 9시부터 오후 6시까지 문을 열며, 점심시간에도 접수를 받습니다.",
    "1998년에 세워진 이 도서관에는 약 12만 권의 책이 있고 해마다 3천 권이 새로 들어온다.",
    "환불은 구매한 날부터 14일 안에 영수증과 함께 매장을 방문하면 받을 수 있다.",
    "그 학자는 조선 후기의 농업 기술이 장터의 성장과 어떻게 이어졌는지를 평생 연구했다.",
    "파일을 저장하지 않고 프로그램을 끝내면 마지막으로 저장한 뒤에 바꾼 내용이 사라집니다.",
    "김치를 담글 때는 배추를 소금물에 하룻밤 절인 다음 물기를 빼는 것이 중요하다.",
    "위원회는 예산안을 찬성 11표, 반대 4표로 통과시켰고 본회의는 금요일에 열린다.",
    "이 약은 하루 세 번 식사 후에 먹고, 열이 나거나 두드러기가 생기면 의사와 상의하십시오.",
    "화산이 폭발한 뒤 섬의 남쪽 해안에는 검은 모래로 된 새로운 해변이 생겼다.",
    "서버가 응답하지 않으면 네트워크 연결과 방화벽 설정을 먼저 확인하세요.",
    "작가는 첫 소설에서 항구 도시로 떠난 두 자매의 이야기를 편지 형식으로 풀어냈다.",
    "전세 계약을 갱신하려면 계약이 끝나기 두 달 전까지 집주인에게 알려야 한다.",
    "지하철 2호선은 사고로 30분 동안 멈췄지만 다친 사람은 없었다.",
    "연구팀은 빛의 세기를 절반으로 줄여도 태양 전지의 효율이 거의 떨어지지 않는다고 밝혔다.",
    "왜 겨울에는 아침 해가 늦게 뜨나요?",
    "그 팀의 감독은 누구이며 언제 우승했는가?",
    "신입 사원은 입사 후 3개월 동안 매주 월요일에 안전 교육을 받는다.",
    "강물이 맑아지자 수달과 은어가 다시 돌아왔고 주민들은 둑길을 산책로로 바꾸었다.",
    "수출이 석 달째 늘었으나 원화 가치가 내려 수입 물가도 함께 올랐다.",
    "The match was moved to next Saturday because the field was under water after two days of rain.",
    "Our office is open from nine to six on weekdays, and visitors without an appointment wait about twenty minutes.",
    "Founded in 1927, the museum keeps more than 40,000 drawings, of which a tenth can be seen at any time.",
    "To return an item, bring it back within fourteen days together with the receipt.",
    "She spent her life studying how trade along the river changed the food that farmers grew.",
    "If the program closes before the file is saved, everything typed since the last save is lost.",
    "Let the dough rest for an hour, then fold it twice and bake it at 220 degrees.",
    "The committee passed the budget by eleven votes to four; the final debate is on Friday.",
    "Take one tablet three times a day after meals, and see a doctor if a rash appears.",
    "A new beach of black sand formed on the southern shore after the volcano erupted.",
    "When the server does not answer, check the network cable and the firewall rules first.",
    "Her first novel tells, in letters, the story of two sisters who leave for a harbour town.",
    "The new bridge carries both lanes of traffic and a railway, and bends less than a hand's width in a storm.",
    "Samples that were kept cold for a week gave the same result as fresh ones within five per cent.",
    "Line 4 stood still for half an hour after an accident, but nobody was hurt.",
    "Halving the intensity of the light hardly changed the efficiency of the cell, the team reports.",
    "Why does the sun rise later in winter?",
    "Who was the first woman to lead the company, and when did she resign?",
    "Exports grew for the third month in a row, while a weaker currency made imports dearer.",
    "Since the water became clear again, otters and trout have returned to the upper valley.",
)


def require_tokens(encoder: Encoder) -> TokenEncoder:
    """Return the encoder if it has vectors of tokens; refuse one that has not."""
    if not isinstance(encoder, TokenEncoder):
        what = type(encoder).__name__
        raise UsageError(f"a {what} has no vectors of tokens, which a library with token vectors needs\n  use a SentenceEncoder")
    return encoder


def make_codebook(encoder: Encoder, format: TokenFormat, *, complete: bool = True) -> StoredCodebook:
    """Fit the codebook of an encoder; it is the same one for every library."""
    whole = Settings(model="", fingerprint=encoder.fingerprint, dimension=0, analyser="", passage_characters=1_000, passage_overlap=0)
    places = fitting_passages(TEXTS, encoder, whole)  # no model is to cut them
    texts = [text[start:stop] for text, spans in zip(TEXTS, places, strict=True) for start, stop in spans]
    _, rows = require_tokens(encoder).encode_with_tokens(texts, keep=np.array, skip=SKIP)
    return StoredCodebook(fit_codebook(np.concatenate(rows), format), encoder.fingerprint, complete)


def find_codebook(store: Store) -> StoredCodebook | None:
    """Return the codebook by which a store's passages can be re-ranked: of its own model, and every passage has codes."""
    stored = store.codebook()
    return stored if stored is not None and stored.complete and stored.fingerprint == store.settings().fingerprint else None


def choose_search_codebook(store: Store, encoder: Encoder) -> tuple[StoredCodebook, bool]:
    """Return the codebook that passages are compared by, and whether the store's codes are of it; those without get theirs then."""
    stored = store.codebook()
    if stored is not None and stored.fingerprint == store.settings().fingerprint:
        return stored, True
    if encoder.fingerprint not in _FITTED:
        if len(_FITTED) >= MOST_FITTED:
            _FITTED.clear()
        _FITTED[encoder.fingerprint] = make_codebook(encoder, DEFAULT_FORMAT)
    return _FITTED[encoder.fingerprint], False


MOST_FITTED = 16
_FITTED: dict[str, StoredCodebook] = {}
"""Codebooks of models whose libraries keep none, by fingerprint; fitting one takes as long as encoding its texts."""


def choose_codebook(store: Store, encoder: Encoder, format: TokenFormat | None) -> StoredCodebook | None:
    """Return the codebook for documents that are written now; a new one where `format` asks for it and no document is there yet."""
    stored = store.codebook()
    if stored is not None and stored.fingerprint == encoder.fingerprint:
        return stored
    if format is None:
        return None
    check_format(store, format)
    return make_codebook(encoder, format)


def check_format(store: Store, format: TokenFormat) -> None:
    """Refuse to keep token vectors otherwise than the library does, or beside documents that have none."""
    stored = store.codebook()
    if stored is not None and stored.fingerprint == store.settings().fingerprint:
        kept = stored.codebook.format
        if kept != format:
            raise UsageError(f"{store.name}: keeps token vectors in {kept}, found {format}\n  open it with token_vectors={kept!r}")
        return
    documents, _ = store.count()
    if documents:
        fact = f"{store.name}: holds {count(documents, 'document')} without token vectors"
        raise UsageError(f"{fact}\n  make these first with Library.add_token_vectors").at_shell(
            f"{fact}\n  make these first: munjang index {store.name} --late"
        )


def encode_passages(encoder: Encoder, texts: Sequence[str], book: StoredCodebook) -> tuple[Vectors, list[bytes]]:
    """Return the vector of each passage and the codes of its tokens, from one pass."""
    codebook = book.codebook
    return require_tokens(encoder).encode_with_tokens(texts, keep=lambda rows_TD: codebook.quantize(rows_TD).tobytes(), skip=SKIP)


def encode_questions(encoder: Encoder, texts: Sequence[str]) -> tuple[Vectors, list[Vectors]]:
    """Return the vector of each question and those of its tokens, from one pass."""
    return require_tokens(encoder).encode_with_tokens(texts, keep=np.array, skip=SKIP)


@dataclass(frozen=True)
class LateScores:
    """The candidates of one question: their MaxSim by row, and the codes that it was computed from."""

    scores: dict[int, float]
    codes: dict[int, bytes]
    book: StoredCodebook


def score_passages(
    tokens_QD: Vectors, passages: Mapping[int, str], stored: Mapping[int, bytes], book: StoredCodebook, encoder: Encoder
) -> LateScores:
    """Return the MaxSim of passages, given by row with their texts; those without stored codes are encoded."""
    missing = [row for row in passages if row not in stored]
    made = encode_passages(encoder, [passages[row] for row in missing], book)[1] if missing else []
    codes = {**stored, **dict(zip(missing, made, strict=True))}
    scores_P = maxsim(tokens_QD, TokenCodes.join([codes[row] for row in passages], book.codebook), book.codebook)
    return LateScores(dict(zip(passages, scores_P.tolist(), strict=True)), {row: codes[row] for row in passages}, book)


def match_words(
    query: str, tokens_QD: Vectors, hit: Hit, codes: bytes, book: StoredCodebook, *, query_encoder: Encoder, encoder: Encoder
) -> tuple[WordMatch, ...]:
    """Return for each word of the question the word of the passage that it met, by their most similar tokens."""
    codes_TB = TokenCodes.join([codes], book.codebook).codes_TB
    asked = require_tokens(query_encoder).token_places(query, skip=SKIP)
    there = require_tokens(encoder).token_places(hit.passage, skip=SKIP)
    if len(asked) != len(tokens_QD) or len(there) != len(codes_TB) or not there:
        return ()
    similarity_QT = token_similarities(tokens_QD, codes_TB, book.codebook)
    best: dict[tuple[int, int], WordMatch] = {}
    for token, place in enumerate(asked):
        word = _widen(query, place)
        other = int(similarity_QT[token].argmax())
        cosine = float(similarity_QT[token, other])
        if word not in best or best[word].cosine < cosine:
            start, stop = _widen(hit.passage, there[other])
            best[word] = WordMatch(query[slice(*word)], hit.passage[start:stop], cosine, hit.start + start, hit.start + stop)
    return tuple(best[word] for word in sorted(best))


def _widen(text: str, place: tuple[int, int]) -> tuple[int, int]:
    """Return the word, between white space, that holds a stretch of a text."""
    start, stop = place
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    while stop < len(text) and not text[stop].isspace():
        stop += 1
    return start, stop
