"""Late interaction: a question's tokens are compared with the stored tokens of passages, which re-ranks the best hits in milliseconds.

A library with token vectors keeps a few bits for every token of a passage (`vectors/maxsim.py`), made in the same pass as the passage's
vector. The codebook is fitted once, on fixed texts, and stored with them. Codes of a model that the library no longer has are not used.
A passage without codes, which an earlier Munjang may have added, gets them at the time of the search.

Special tokens and the prompt's are left out on both sides: every text has them, so they tell nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from munjang.errors import UsageError
from munjang.library.codebook_texts import TEXTS
from munjang.library.passages import fitting_passages
from munjang.library.results import Hit, WordMatch
from munjang.library.store import Settings, Store, StoredCodebook
from munjang.types import Encoder, SkippedTokens, TokenEncoder, Vectors
from munjang.vectors.maxsim import TokenCodes, TokenFormat, fit_codebook, maxsim, token_similarities
from munjang.vectors.similarity import normalize
from munjang.wording import count

SKIP: tuple[SkippedTokens, ...] = ("special", "prompt")
WEIGHT, WEIGHT_AFTER_MEANING = 0.5, 0.9
"""The weight of MaxSim where nobody says otherwise, after words and meaning and after meaning alone; the rest goes to the first stage.

Chosen on questions that are not reported (docs/results.md, library and search).
"""


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


def score_texts(query: str, texts: Sequence[str], encoder: Encoder, *, query_encoder: Encoder) -> list[float]:
    """Return the MaxSim of each text in float32; token vectors are held for one batch only."""
    _, [tokens_QD] = encode_questions(query_encoder, [query])
    unit_QD = normalize(tokens_QD) if len(tokens_QD) else tokens_QD

    def score(rows_TD: Vectors) -> float:
        return float((unit_QD @ normalize(rows_TD).T).max(axis=1).mean()) if len(rows_TD) and len(unit_QD) else 0.0

    return require_tokens(encoder).encode_with_tokens(texts, keep=score, skip=SKIP)[1]


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
