"""`munjang cluster`: a file → groups of texts about the same, each with the phrases that name it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from munjang.analyze.clusters import Clustering, require_sklearn
from munjang.analyze.clusters import cluster as cluster_vectors
from munjang.analyze.keywords import find_cluster_phrases
from munjang.cli.collection import encoder_for, read_collection, vectors_of
from munjang.cli.options import (
    Chosen,
    Columns,
    JsonOption,
    ModelChoice,
    OutputOption,
    Takes,
    TextsArgument,
    examples,
    new_app,
)
from munjang.cli.row_files import TextRow, beside, check_rows_output, write_rows
from munjang.cli.show import emit, note, print_facts, print_table
from munjang.cli.text_analysis import TextAnalysis
from munjang.options import options_for
from munjang.vectors.similarity import normalize
from munjang.wording import count

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
    *,
    options: Annotated[Chosen, Takes(cluster_vectors, find_cluster_phrases)],
    output: OutputOption = None,
    analysis: TextAnalysis,
    columns: Columns,
    chosen_model: ModelChoice,
    as_json: JsonOption = False,
) -> None:
    """Cluster texts and label the clusters with key phrases.

    A library's documents are compared by their stored vectors.
    -o writes every row with its cluster and the cluster's phrases as .csv, .tsv or .jsonl.
    """
    check_rows_output(output)
    if options["method"] != "communities":
        require_sklearn("clustering")
    read = [read_collection(file, columns)]
    by = analysis.tagger(read[0])
    rows, texts = read[0].rows, read[0].texts
    [vectors] = vectors_of(read, encoder_for(read, chosen_model.model, compute=chosen_model.compute))
    found = cluster_vectors(normalize(vectors), **options_for(cluster_vectors, options))
    names = find_cluster_phrases(texts, found.labels_N.tolist(), **options_for(find_cluster_phrases, options), by=by)
    if options["k"] is None and options["method"] == "kmeans":
        note(f"{count(len(found.sizes), 'cluster')}, chosen by the best silhouette; -k overrides it")
    if output is not None:
        write_rows(output, beside(rows, [_describe_cluster(int(label), names) for label in found.labels_N]))
    if as_json:
        emit({"method": options["method"], **_facts(found, names), "labels": found.labels_N.tolist()})
        return
    _print(found, names, rows)
    written = [] if output is None else [("written to", str(output))]
    apart = [] if found.silhouette is None else [("silhouette", f"{found.silhouette:.3f}")]
    print_facts([("texts", f"{len(rows):,}"), ("clusters", f"{len(found.sizes):,}"), ("in none", f"{found.outliers:,}"), *apart, *written])


def _facts(found: Clustering, names: dict[int, tuple[str, ...]]) -> dict[str, Any]:
    clusters = [{"cluster": label, "size": size, "phrases": list(names.get(label, ()))} for label, size in found.sizes.items()]
    return {"silhouette": found.silhouette, "outliers": found.outliers, "clusters": clusters}


def _describe_cluster(label: int, names: dict[int, tuple[str, ...]]) -> dict[str, Any]:
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
