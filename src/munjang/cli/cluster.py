"""`munjang cluster`: a file → groups of texts about the same, each with the phrases that name it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from munjang.cli.options import (
    UTF8,
    EncodingOption,
    FormatOption,
    JsonOption,
    LibraryComputeOption,
    ModelOption,
    NoQuotingOption,
    OutputOption,
    TextColumnOption,
    TextsArgument,
    examples,
    new_app,
)
from munjang.cli.row_files import Columns, TextRow, beside, check_rows_output, write_rows
from munjang.cli.show import emit, note, print_facts, print_table
from munjang.cli.text_options import AnalyserOption, UserWordOption
from munjang.wording import count

if TYPE_CHECKING:
    from munjang.analyze.clusters import Clustering

app = new_app()

NO_CLUSTER = "–"
SHOWN_TEXT = 60  # characters of an example


@app.command(
    epilog=examples(
        "munjang cluster news.csv -k 8 -o clusters.csv",
        "munjang cluster questions.csv --method communities --threshold 0.8 --min-size 5",
        "munjang cluster news.jsonl --method hdbscan --json",
    )
)
def cluster(
    file: TextsArgument,
    method: Annotated[
        Literal["kmeans", "agglomerative", "communities", "hdbscan"], typer.Option(help="How texts are put together.")
    ] = "kmeans",
    k: Annotated[
        int | None,
        typer.Option("--clusters", "-k", min=1, help="For kmeans and agglomerative: how many clusters; kmeans can choose itself."),
    ] = None,
    threshold: Annotated[
        float, typer.Option(help="For communities, and agglomerative without -k: the least cosine within a cluster.")
    ] = 0.75,
    min_size: Annotated[int, typer.Option(min=1, help="For communities and hdbscan: the fewest texts of a cluster.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Where chance starts; the same seed gives the same clusters.")] = 0,
    phrases: Annotated[int, typer.Option(min=0, help="Key phrases that name a cluster.")] = 5,
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
    """Put the texts of a file into clusters and name them by their key phrases.

    A library's documents are compared by the vectors it holds.
    -o writes every row with its cluster and the cluster's phrases as .csv, .tsv or .jsonl.
    """
    from munjang.analyze.cluster_names import cluster_phrases
    from munjang.analyze.clusters import ClusterOptions, need_sklearn
    from munjang.analyze.clusters import cluster as put_together
    from munjang.cli.collection import encoder_for, read_collection, vectors_of
    from munjang.text.tagging import tagger
    from munjang.vectors.similarity import normalize

    check_rows_output(output)
    options = ClusterOptions(method=method, k=k, threshold=threshold, min_size=min_size, seed=seed)
    if method != "communities":
        need_sklearn("clustering")
    by = tagger(analyser, user_words=user_word or ())
    read = [read_collection(file, Columns(text_column, id_column, format, encoding, no_quoting))]
    rows, texts = read[0].rows, read[0].texts
    [vectors] = vectors_of(read, encoder_for(read, model, compute=compute))
    found = put_together(normalize(vectors), options)
    names = cluster_phrases(texts, found.labels_N.tolist(), top=phrases, by=by) if phrases else {}
    if k is None and method == "kmeans":
        note(f"{count(len(found.sizes), 'cluster')}, chosen by the best silhouette; -k says another number")
    if output is not None:
        write_rows(output, beside(rows, [_said(int(label), names) for label in found.labels_N]))
    if as_json:
        emit({"method": method, **_facts(found, names), "labels": found.labels_N.tolist()})
        return
    _print(found, names, rows)
    written = [] if output is None else [("written to", str(output))]
    apart = [] if found.silhouette is None else [("silhouette", f"{found.silhouette:.3f}")]
    print_facts([("texts", f"{len(rows):,}"), ("clusters", f"{len(found.sizes):,}"), ("in none", f"{found.outliers:,}"), *apart, *written])


def _facts(found: Clustering, names: dict[int, tuple[str, ...]]) -> dict[str, Any]:
    clusters = [{"cluster": label, "size": size, "phrases": list(names.get(label, ()))} for label, size in found.sizes.items()]
    return {"silhouette": found.silhouette, "outliers": found.outliers, "clusters": clusters}


def _said(label: int, names: dict[int, tuple[str, ...]]) -> dict[str, Any]:
    return {"cluster": label, "phrases": ", ".join(names.get(label, ()))}


def _print(found: Clustering, names: dict[int, tuple[str, ...]], rows: Sequence[TextRow]) -> None:
    first = {int(label): rows[at].text for at, label in reversed(list(enumerate(found.labels_N)))}
    lines = (
        [str(label), f"{size:,}", ", ".join(names.get(label, ())) or NO_CLUSTER, first[label][:SHOWN_TEXT]]
        for label, size in found.sizes.items()
    )
    print_table(
        ["cluster", "texts", "phrases", "for example"], lines, right=["cluster", "texts"], empty="no clusters: every text stands alone"
    )
