"""`munjang inspect`: one sentence → tokens, layers and vector; two sentences → which tokens make them alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from munjang.atomic import atomic_write
from munjang.cli.load_model import load_model
from munjang.cli.options import JsonOption, LanguageOption, ModelOption, OutputOption, examples, new_app, report_language
from munjang.cli.row_files import PAGES, check_rows_output
from munjang.cli.show import emit, note, print_facts, print_heat, print_table
from munjang.cli.similar import sentence
from munjang.errors import UsageError
from munjang.models.expected_similarity import describe_expected, expect_similarity
from munjang.models.inspect import Inspection, TokenComparison, compare_tokens, inspect_text
from munjang.report.heatmap import heatmap_svg
from munjang.report.page import page, section, table, text, wide
from munjang.report.words import Word, say
from munjang.wording import Language, count

FIRST_NUMBERS = 8
PAIRS_SHOWN = 10
TOKEN_COLUMNS = (Word.TOKEN, Word.TOKEN_ID, Word.SEGMENT, Word.POSITION, Word.MASK, Word.CHARACTERS, Word.POOLED)
LAYER_COLUMNS = (Word.LAYER_OUTPUT, Word.SHAPE, Word.MEAN_NORM)
PAIR_COLUMNS = (Word.FIRST, Word.SECOND, Word.COSINE, Word.ADDS)
_LAYERS = {
    "token vectors": Word.TOKEN_VECTORS,
    "embeddings": Word.EMBEDDINGS,
    "layer norm": Word.LAYER_NORM,
    "normalize": Word.NORMALIZE,
    "cut": Word.CUT,
}
_NUMBERED_LAYERS = (("layer ", Word.LAYER, "number"), ("pooling ", Word.POOLING_LAYER, "modes"), ("dense ", Word.DENSE_LAYER, "activation"))

app = new_app()


@app.command(
    epilog=examples(
        'munjang inspect "오늘은 비가 온다"',
        'munjang inspect "A man plays guitar" "Someone is making music" -o tokens.html',
    )
)
def inspect(
    first: Annotated[str, typer.Argument(metavar="SENTENCE", help='A sentence; "-" is standard input.')],
    second: Annotated[str | None, typer.Argument(metavar="SENTENCE", help="A second sentence, to compare token by token.")] = None,
    output: OutputOption = None,
    language: LanguageOption = None,
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a sentence's tokens, or why two sentences are similar.

    -o writes the tables, and for two sentences the heat map, as an HTML page.
    """
    check_rows_output(output, suffixes=PAGES)
    encoder, spoken = load_model(model), report_language(language)
    if second is None:
        found = inspect_text(encoder, sentence(first))
        _warn_if_cut(found)
        _show_one(found, encoder.name, output=output, language=spoken, as_json=as_json)
        return
    if first == second == "-":
        raise UsageError('"-" can stand for one of the two sentences, not for both')
    compared = compare_tokens(encoder, sentence(first), sentence(second))
    _warn_if_cut(compared.first)
    _warn_if_cut(compared.second)
    expected = expect_similarity(encoder, compared.first.text, compared.second.text, compared.score)
    _show_two(compared, encoder.name, expected=expected, output=output, language=spoken, as_json=as_json)


def _show_one(found: Inspection, model: str, *, output: Path | None, language: Language, as_json: bool) -> None:
    if output is not None:
        _write(output, inspection_page(found, model=model, language=language))
    if as_json:
        emit({"model": model, **found.to_json()})
    elif output is None:
        tokens, layers = token_head(), [say(word) for word in LAYER_COLUMNS]
        print_table(tokens, token_rows(found), right=(tokens[0], *tokens[2:-1]))
        print_table(layers, layer_rows(found), right=layers[-1:])
        print_facts(vector_facts(found))


def _show_two(
    compared: TokenComparison, model: str, *, expected: float | None, output: Path | None, language: Language, as_json: bool
) -> None:
    if output is not None:
        _write(output, comparison_page(compared, model=model, expected=expected, language=language))
    if as_json:
        emit({"model": model, **compared.to_json(), "score": round(compared.score, 6)})
    elif output is None:
        rows, columns = ([token.text for token in one.tokens] for one in (compared.first, compared.second))
        verdict = "" if expected is None else f" ({describe_expected(expected)})"
        print(f"score {compared.score:.4f}{verdict}\n")
        print("cosine of every token with every token")
        print_heat(compared.cosine_NM, rows, columns)
        head = [say(word) for word in PAIR_COLUMNS]
        print_table(head, pair_rows(compared), right=head[2:])
        print(sum_sentence(compared))


def token_head(language: Language = "en") -> list[str]:
    """Return the columns of the table of tokens; all but the token and the last are numbers."""
    return ["#", *(say(word, language) for word in TOKEN_COLUMNS)]


def token_rows(found: Inspection, language: Language = "en") -> list[tuple[str, ...]]:
    """Return the table of tokens, as text."""
    return [
        (
            str(place),
            token.text,
            str(token.id),
            str(token.segment),
            str(token.position),
            str(token.mask),
            "" if token.special else f"{token.start}-{token.end}",
            say(Word.YES if token.pooled else Word.NO, language),
        )
        for place, token in enumerate(found.tokens)
    ]


def layer_rows(found: Inspection, language: Language = "en") -> list[tuple[str, ...]]:
    """Return the table of layers, as text."""
    return [
        (
            layer_name(layer.name, language),
            " x ".join(str(size) for size in layer.shape),
            "" if layer.mean_norm is None else f"{layer.mean_norm:.4f}",
        )
        for layer in found.layers
    ]


def layer_name(name: str, language: Language) -> str:
    """Return the name of a layer in a language.

    >>> layer_name("layer 3", "ko"), layer_name("pooling (mean)", "ko")
    ('3층', '풀링 (mean)')
    """
    if name in _LAYERS:
        return say(_LAYERS[name], language)
    for start, word, key in _NUMBERED_LAYERS:
        if name.startswith(start):
            return say(word, language, **{key: name.removeprefix(start).strip("()")})
    return name


def vector_facts(found: Inspection, language: Language = "en") -> list[tuple[str, str]]:
    """Return what there is to say about the sentence vector."""
    numbers = ", ".join(f"{value:.4f}" for value in found.vector[:FIRST_NUMBERS])
    size = say(Word.VECTOR_SIZE, language, count=len(found.vector), norm=float(np.linalg.norm(found.vector)))
    return [(say(Word.VECTOR, language), size), (say(Word.VECTOR_BEGINS, language), f"{numbers}, …")]


def pair_rows(compared: TokenComparison) -> list[tuple[str, ...]]:
    """Return the token pairs that carry the similarity: by what they add to the score, or by cosine where that is not known."""
    first, second = compared.first.tokens, compared.second.tokens
    if compared.contribution_NM is None:
        pairs = [(pair.first, pair.second) for pair in compared.best_pairs]
    else:
        order = (-compared.contribution_NM).argsort(axis=None, kind="stable")
        pairs = [divmod(int(place), len(second)) for place in order]
    rows: list[tuple[str, ...]] = []
    for row, column in pairs[:PAIRS_SHOWN]:
        share = "" if compared.contribution_NM is None else f"{compared.contribution_NM[row, column]:+.4f}"
        rows.append((first[row].text, second[column].text, f"{compared.cosine_NM[row, column]:.4f}", share))
    return rows


def sum_sentence(compared: TokenComparison, language: Language = "en") -> str:
    """Say how the pairs relate to the score."""
    if compared.contribution_NM is None:
        return say(Word.NO_SHARES, language)
    return say(Word.ADDS_UP, language, count=compared.contribution_NM.size, total=float(compared.contribution_NM.sum()))


def _warn_if_cut(found: Inspection) -> None:
    if found.was_cut:
        said = f"the text has {count(found.tokens_before_cut, 'token')}, the model's limit is {len(found.tokens):,}"
        note(f"{said}; only the beginning is shown")


def _write(output: Path, html: str) -> None:
    atomic_write(output, html)
    note(f"written to {output}")


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
