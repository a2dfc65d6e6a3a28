"""What `munjang inspect` found → a page."""

from __future__ import annotations

from munjang.cli.inspect import LAYER_COLUMNS, PAIR_COLUMNS, layer_rows, pair_rows, sum_sentence, token_head, token_rows, vector_facts
from munjang.models.expected_similarity import describe_expected
from munjang.models.inspect import Inspection, TokenComparison
from munjang.report.heatmap import heatmap_svg
from munjang.report.page import page, section, table, text, wide
from munjang.report.words import Word, say
from munjang.wording import Language

_VERDICTS = {
    word.value[0]: word for word in (Word.NEARLY_THE_SAME, Word.VERY_SIMILAR, Word.SIMILAR, Word.SOMEWHAT_SIMILAR, Word.NOT_SIMILAR)
}
"""Words for an expected similarity, by their English."""


def inspection_page(found: Inspection, *, model: str, language: Language = "en") -> str:
    """Return a page about one sentence."""
    lead, footer = say(Word.MODEL, language, model=model), say(Word.INSPECT_FOOTER, language)
    return page(found.text, _about(found, language), lead=lead, footer=footer, language=language)


def comparison_page(compared: TokenComparison, *, model: str, expected: float | None = None, language: Language = "en") -> str:
    """Return a page about two sentences, with the heat maps first."""
    rows, columns = ([token.text for token in one.tokens] for one in (compared.first, compared.second))
    cosines = say(Word.TOKEN_COSINES, language)
    sections = [section(cosines, wide(heatmap_svg(compared.cosine_NM, rows, columns, title=cosines)))]
    if compared.contribution_NM is not None:
        shares = say(Word.TOKEN_SHARES, language)
        sections.append(section(shares, wide(heatmap_svg(compared.contribution_NM * 100, rows, columns, title=shares))))
    head = [say(word, language) for word in PAIR_COLUMNS]
    pairs = table(head, pair_rows(compared), numbers=head[2:])
    sections.append(section(say(Word.TOKEN_PAIRS, language), wide(pairs) + text(sum_sentence(compared, language))))
    for one in (compared.first, compared.second):
        sections += _about(one, language, prefix=f"{one.text}: ")
    lead = say(
        Word.INSPECT_LEAD,
        language,
        first=compared.first.text,
        second=compared.second.text,
        score=compared.score,
        verdict="" if expected is None else f" ({say(_VERDICTS[describe_expected(expected)], language)})",
        model=model,
    )
    return page(say(Word.INSPECT_TITLE, language), sections, lead=lead, footer=say(Word.INSPECT_FOOTER, language), language=language)


def _about(found: Inspection, language: Language, *, prefix: str = "") -> list[str]:
    facts = "".join(text(f"{name}: {value}") for name, value in vector_facts(found, language))
    tokens, layers = token_head(language), [say(word, language) for word in LAYER_COLUMNS]
    return [
        section(prefix + say(Word.TOKENS, language), table(tokens, token_rows(found, language), numbers=(tokens[0], *tokens[2:-1]))),
        section(prefix + say(Word.LAYERS, language), table(layers, layer_rows(found, language), numbers=layers[-1:]) + facts),
    ]
