"""What `munjang inspect` found → a page."""

from __future__ import annotations

from munjang.cli.inspect import TOKEN_COLUMNS, layer_rows, pair_rows, sum_sentence, token_rows, vector_facts
from munjang.models.inspect import Inspection, TokenComparison
from munjang.report.heatmap import heatmap_svg
from munjang.report.page import page, section, table, text, wide

FOOTER = "Made by munjang inspect"


def inspection_page(found: Inspection, *, model: str) -> str:
    """Return a page about one sentence."""
    return page(found.text, _about(found), lead=f"Model {model}", footer=FOOTER)


def comparison_page(compared: TokenComparison, *, model: str, words: str = "") -> str:
    """Return a page about two sentences, with the heat maps first."""
    rows, columns = ([token.text for token in one.tokens] for one in (compared.first, compared.second))
    cosine = heatmap_svg(compared.cosine_NM, rows, columns, title="Cosine of every token with every token")
    sections = [section("Cosine of every token with every token", wide(cosine))]
    if compared.contribution_NM is not None:
        shares = heatmap_svg(compared.contribution_NM * 100, rows, columns, title="What every pair adds to the score, in hundredths")
        sections.append(section("What every pair adds to the score, in hundredths", wide(shares)))
    pairs = table(("first", "second", "cosine", "adds to the score"), pair_rows(compared), numbers=("cosine", "adds to the score"))
    sections.append(section("The pairs that carry it", wide(pairs) + text(sum_sentence(compared))))
    for one in (compared.first, compared.second):
        sections += _about(one, prefix=f"{one.text}: ")
    lead = f"{compared.first.text} · {compared.second.text} · score {compared.score:.4f}{words} · model {model}"
    return page("Two sentences, token by token", sections, lead=lead, footer=FOOTER)


def _about(found: Inspection, *, prefix: str = "") -> list[str]:
    facts = "".join(text(f"{name}: {value}") for name, value in vector_facts(found))
    numbers = ("#", "id", "segment", "position", "mask", "characters")
    return [
        section(f"{prefix}tokens", table(TOKEN_COLUMNS, token_rows(found), numbers=numbers)),
        section(f"{prefix}layers", table(("output", "shape", "mean norm"), layer_rows(found), numbers=("mean norm",)) + facts),
    ]
