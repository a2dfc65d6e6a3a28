"""`munjang keywords`: a file → the phrases of each text that say what it is about, in a table, in the texts themselves, or on a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from munjang.cli.options import (
    UTF8,
    EncodingOption,
    FormatOption,
    JsonOption,
    LanguageOption,
    LibraryComputeOption,
    ModelOption,
    NoQuotingOption,
    OutputOption,
    TextColumnOption,
    TextsArgument,
    examples,
    new_app,
    report_language,
)
from munjang.cli.row_files import Columns, TextRow, check_rows_output, write_rows
from munjang.cli.show import console, emit, one_line, print_facts, print_table
from munjang.cli.text_options import AnalyserOption, UserWordOption
from munjang.errors import UsageError

if TYPE_CHECKING:
    from munjang.analyze.keywords import Keyword
    from munjang.wording import Language

    Found = Sequence[tuple[TextRow, tuple[Keyword, ...]]]

app = new_app()


@app.command(
    epilog=examples(
        "munjang keywords news.csv --top 5",
        "munjang keywords news.csv --html keywords.html",
        "munjang keywords - --max-words 2 --json < letter.txt",
    )
)
def keywords(
    file: TextsArgument,
    top: Annotated[int, typer.Option("--top", "-k", min=1, help="The most keywords of a text.")] = 5,
    min_words: Annotated[int, typer.Option(min=1, help="The fewest words of a phrase.")] = 1,
    max_words: Annotated[int, typer.Option(min=1, help="The most words of a phrase.")] = 3,
    choice: Annotated[
        Literal["mmr", "max-sum", "nearest"], typer.Option(help="How phrases are chosen that are not all alike; nearest does not care.")
    ] = "mmr",
    diversity: Annotated[float, typer.Option(min=0, max=1, help="For mmr: 0 looks at closeness alone, 1 at unlikeness alone.")] = 0.5,
    pool: Annotated[int, typer.Option(min=1, help="For max-sum: how many of the closest phrases are looked at.")] = 20,
    seed_word: Annotated[list[str] | None, typer.Option(help="A word towards which the choice is drawn; may be given again.")] = None,
    min_frequency: Annotated[int, typer.Option(min=1, help="How often a phrase must stand in all texts together.")] = 1,
    highlight: Annotated[bool, typer.Option("--highlight", help="Print the texts with their keywords marked.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page with the keywords marked in their texts.")] = None,
    language: LanguageOption = None,
    output: OutputOption = None,
    analyser: AnalyserOption = None,
    user_word: UserWordOption = None,
    model: ModelOption = None,
    text_column: TextColumnOption = None,
    id_column: Annotated[str | None, typer.Option(help="The column that holds ids.")] = None,
    format: FormatOption = None,
    encoding: EncodingOption = UTF8,
    no_quoting: NoQuotingOption = False,
    compute: LibraryComputeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the phrases of each text that say what it is about.

    Phrases stand in the text as they are printed; Korean ones without a particle or ending. -o writes .csv, .tsv or .jsonl.
    """
    from munjang.analyze.keywords import KeywordOptions, extract_keywords
    from munjang.cli.collection import load_beside, read_collection
    from munjang.text.tagging import tagger
    from munjang.text.unicode import clean

    check_rows_output(output)
    if html is not None and html.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{html}: expected a name that ends in .html")
    options = KeywordOptions(
        top=top,
        words=(min_words, max_words),
        choice=choice,
        diversity=diversity,
        pool=pool,
        seed_words=tuple(seed_word or ()),
        min_frequency=min_frequency,
    )
    by = tagger(analyser, user_words=user_word or ())
    read = read_collection(file, Columns(text_column, id_column, format, encoding, no_quoting))
    rows, texts, encoder = read.rows, read.texts, load_beside(read, model, compute=compute)
    vectors = encoder.encode(texts)  # apart from the phrases, so that a note on long texts counts texts
    found = list(zip(rows, extract_keywords(texts, encoder, options=options, vectors=vectors, by=by), strict=True))
    _write(found, output, html, report_language(language))
    if as_json:  # places count in the text as it was read by the model
        emit([{**row.facts(), "text": clean(row.text), "keywords": [_facts(word) for word in words]} for row, words in found])
        return
    if highlight:
        _print_marked(found)
    elif output is None and html is None:
        lines = ([row.name(), ", ".join(f"{w.text} {w.score:.2f}" for w in words) or "no keywords"] for row, words in found)
        print_table(["row", "keywords"], lines, empty="no texts to find keywords in")
    different = {word.text for _, words in found for word in words}
    written = [("written to", str(path)) for path in (output, html) if path is not None]
    print_facts([("texts", f"{len(rows):,}"), ("keywords", f"{len(different):,}"), *written])


def _facts(word: Keyword) -> dict[str, object]:
    return {"text": word.text, "score": round(word.score, 6), "places": [list(place) for place in word.places]}


def _write(found: Found, output: Path | None, html: Path | None, language: Language) -> None:
    if output is not None:
        listed = [(row, rank, word) for row, words in found for rank, word in enumerate(words, start=1)]
        write_rows(output, [{"row": r.name(), "rank": rank, "keyword": w.text, "score": round(w.score, 6)} for r, rank, w in listed])
    if html is not None:
        from munjang.report.keywords_page import Marked, keywords_page
        from munjang.text.unicode import clean
        from munjang.whole_file import write_whole

        marked = [Marked(row.name(), clean(row.text), [(word.text, word.score) for word in words], _places(words)) for row, words in found]
        write_whole(html, keywords_page(marked, language=language))


def _places(words: Sequence[Keyword]) -> list[tuple[int, int, float]]:
    return [(start, end, word.score) for word in words for start, end in word.places]


def _print_marked(found: Found) -> None:
    from rich.text import Text

    from munjang.report.keywords_page import without_overlaps
    from munjang.text.unicode import clean

    screen = console()
    for row, words in found:
        line, at, text = Text(f"{one_line(row.name())}  ", style="dim"), 0, clean(row.text)
        for start, end, _ in without_overlaps(_places(words)):
            line.append(_inline(text[at:start]), style="not dim")
            line.append(_inline(text[start:end]), style="not dim bold reverse")
            at = end
        line.append(_inline(text[at:]), style="not dim")
        screen.print(line)
        screen.print(Text("   " + ", ".join(f"{one_line(word.text)} {word.score:.2f}" for word in words), style="italic"))


def _inline(part: str) -> str:
    """Return a part of a line with the spaces at its ends kept."""
    inner = one_line(part)
    if not inner:
        return " " if part else ""
    return (" " if part[0].isspace() else "") + inner + (" " if part[-1].isspace() else "")
