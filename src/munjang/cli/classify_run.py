"""What `munjang classify label` and `apply` do: files and libraries in, labels out.

Labels of a library's documents go into its metadata, a batch at a time; texts and vectors stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from munjang.cli.collection import is_library
from munjang.cli.label_files import LabelledFile, hold_output, identify_input, label_file, list_said, stream_rows
from munjang.cli.options import Chosen, Columns, ModelChoice
from munjang.cli.row_files import TextRow, no_text
from munjang.cli.show import emit, note, print_facts, print_table
from munjang.errors import InputError, UsageError
from munjang.wording import count

if TYPE_CHECKING:
    from munjang.analyze.classify.apply import TextLabel, TextLabels
    from munjang.analyze.classify.classifier import TextClassifier
    from munjang.analyze.classify.labels import Label
    from munjang.analyze.classify.probability import Abstention
    from munjang.library.library import Library
    from munjang.library.store import Document
    from munjang.types import Encoder, Vectors


BATCH = 1_000
"""Documents whose metadata is written in one commit."""


def read_document_blocks(library: Library) -> Iterator[tuple[list[Document], list[Vectors]]]:
    """Yield documents with the vector of each: of several passages, their mean."""
    from munjang.library.matrix import document_vector

    for block in library.store.entries():
        yield [entry.document for entry in block], [document_vector(entry.vectors_PD, entry.lengths_P) for entry in block]


def write_metadata(library: Library, key: str, labels: Sequence[tuple[str, Any]]) -> int:
    """Write each document's label under a key of its metadata, and remove the key where there is none; return how many changed.

    A run that was killed is repeated: what is there already is left alone.
    """
    changed = 0
    for start in range(0, len(labels), BATCH):
        wanted = dict(labels[start : start + BATCH])
        documents = []
        for id, document in library.store.get(list(wanted)).items():
            kept = {name: value for name, value in document.metadata.items() if name != key}
            metadata = kept | ({key: wanted[id]} if wanted[id] not in (None, []) else {})
            if metadata != document.metadata:
                documents.append({"id": id, "text": document.text, "metadata": metadata})
        if documents:
            changed += library.update(documents).relabelled
    return changed


SHOWN = 100
"""Rows of a table on the terminal."""
Say: TypeAlias = Callable[[list[TextRow]], list[dict[str, Any]]]


def label_with_names(
    file: str,
    labels: Sequence[Label],
    columns: Columns,
    model: ModelChoice,
    options: Chosen,
    *,
    output: Path | None,
    write: str | None,
    as_json: bool,
) -> None:
    """Label a file or a library by the names of labels."""
    from munjang.analyze.classify.labels import make_labels
    from munjang.analyze.classify.zero_shot import SAMPLE, make_classifier

    make_labels(labels)
    if is_library(file):
        encoder, vectors_ND = _open_library(file, model)
        made = make_classifier(labels, encoder, **options, vectors=vectors_ND)
        _label_library(file, made, {}, output=output, write=write, as_json=as_json, model=model)
        return
    _refuse_write(write, file)
    import numpy as np

    from munjang.cli.load_model import load_encoder

    loaded = load_encoder(model.model, compute=model.compute)
    rows = stream_rows(file, columns)
    sample = list(islice(rows, SAMPLE))
    if not sample:
        raise no_text([file])
    sample_ND: Vectors = np.asarray(loaded.encode([row.text for row in sample]), dtype=np.float32)
    made = make_classifier(labels, loaded, **options, vectors=sample_ND)
    _label_rows(file, chain(sample, rows), made, loaded, {}, columns, output=output, as_json=as_json, known_ND=sample_ND)


def label_with_classifier(
    file: str,
    made: TextClassifier,
    columns: Columns,
    model: ModelChoice,
    options: Chosen,
    *,
    output: Path | None,
    write: str | None,
    as_json: bool,
) -> None:
    """Label a file or a library with a saved classifier."""
    from munjang.cli.classify import own_encoder

    if is_library(file):
        _label_library(file, made, options, output=output, write=write, as_json=as_json, model=model)
        return
    _refuse_write(write, file)
    encoder = own_encoder(made, model.model, model.compute)
    _label_rows(file, stream_rows(file, columns), made, encoder, options, columns, output=output, as_json=as_json)


def label_with_scorer(
    file: str,
    labels: Sequence[Label],
    scorer: str,
    columns: Columns,
    options: Chosen,
    *,
    output: Path | None,
    write: str | None,
    as_json: bool,
) -> None:
    """Label a file with a cross-encoder that judges every label; block by block, each calibrated by itself."""
    from munjang.analyze.classify.zero_shot import classify_by_entailment
    from munjang.models.cross_encoder import CrossEncoder

    if is_library(file):
        raise UsageError(f"{file}: is a library, expected a file of texts where --scorer is given")
    _refuse_write(write, file)
    judge = CrossEncoder.load(scorer)

    def say(rows: list[TextRow]) -> list[dict[str, Any]]:
        return describe_labels(classify_by_entailment([row.text for row in rows], labels, judge, **options))

    made_of = identify_input(file, columns, judge.fingerprint, labels, sorted(options.items()))
    _run(file, stream_rows(file, columns), say, made_of, output=output, as_json=as_json)


def describe_labels(labels: TextLabels) -> list[dict[str, Any]]:
    """Return what outputs say of each text."""
    return [describe_label(each, multi=labels.multi, abstains=labels.abstention is not None) for each in labels]


def describe_label(each: TextLabel, *, multi: bool, abstains: bool) -> dict[str, Any]:
    """Return what outputs say of a text: its label, empty where the classifier abstains, then the likeliest one as a guess."""
    return {
        **({"labels": list(each.labels)} if multi else {"label": each.label or ""}),
        "probability": round(each.probability, 6),
        "runner_up": each.runner_up,
        "runner_up_probability": round(each.runner_up_probability, 6),
        **({"guess": each.guess} if abstains else {}),
    }


def _label_rows(
    file: str,
    rows: Iterator[TextRow],
    made: TextClassifier,
    encoder: Encoder,
    options: Chosen,
    columns: Columns,
    *,
    output: Path | None,
    as_json: bool,
    known_ND: Vectors | None = None,
) -> None:
    from munjang.analyze.classify.apply import apply_classifier

    abstention = made.abstain_at(options["precision"]) if options.get("precision") is not None else None
    at = 0
    ready = 0 if known_ND is None else len(known_ND)

    def say(block: list[TextRow]) -> list[dict[str, Any]]:
        nonlocal at
        texts, start = [row.text for row in block], block[0].number - 1
        at = start + len(block)
        vectors = known_ND[start:at] if known_ND is not None and at <= ready else None
        return describe_labels(apply_classifier(made, texts, encoder, **options, vectors=vectors))

    made_of = identify_input(file, columns, _identify(made), sorted(options.items()))
    _run(file, rows, say, made_of, output=output, as_json=as_json, abstention=abstention)


def _identify(made: TextClassifier) -> str:
    import hashlib

    content = made.head.weights_CD.tobytes() + made.head.bias_C.tobytes()
    return hashlib.sha256(content + repr((made.labels, made.temperature, made.multi, made.encoder)).encode()).hexdigest()


def _run(
    file: str,
    rows: Iterator[TextRow],
    say: Say,
    made_of: str | None,
    *,
    output: Path | None,
    as_json: bool,
    abstention: Abstention | None = None,
) -> None:
    """Label rows into a file, as lines of JSON, or as a table of the first ones; then say how many there are of each label."""
    counts: dict[str, int] = {}
    shown: list[list[str]] = []
    blank = 0

    def say_of_texts(block: list[TextRow]) -> list[dict[str, Any]]:
        nonlocal blank
        blank += sum(not row.text.strip() for row in block)
        return [each if row.text.strip() else _say_nothing(each) for row, each in zip(block, say(block), strict=True)]

    def show(block: Sequence[TextRow], said: Sequence[Mapping[str, Any]]) -> None:
        for row, each in zip(block, said, strict=True):
            names = list_said(each)
            for name in names:
                counts[name] = counts.get(name, 0) + 1
            if as_json and output is None:
                emit({**row.facts(), **each})
            elif len(shown) < SHOWN:
                shown.append([row.name(), ", ".join(names), f"{each['probability']:.3f}", each["runner_up"], row.text[:80]])

    with hold_output(output):
        target = None if output is None else LabelledFile(output, made_of)
        if target is not None and target.rows:
            note(f"{output}: goes on after {count(target.rows, 'row')} of an earlier run")
            counts.update(target.counts)
        done = label_file(rows, target, say_of_texts, source=file, show=show)
    if blank:
        note(f"{count(blank, 'text')} without a word, and so without a label")
    if as_json:
        if output is not None:
            facts = {"rows": done, "labels": counts, "output": str(output)}
            emit(facts | ({"abstention": abstention.facts()} if abstention else {}))
        return
    if output is None:
        print_table(["row", "label", "probability", "runner-up", "text"], shown, right=["probability"])
        if done > len(shown):
            note(f"{done - len(shown):,} more; -o FILE writes all")
    _show_counts(counts, done, output, abstention)


def _say_nothing(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said of a text that holds nothing."""
    none = {str: "", float: 0.0, list: []}
    return {name: none[type(value)] for name, value in said.items()}


def _show_counts(counts: Mapping[str, int], done: int, output: Path | None, abstention: Abstention | None) -> None:
    print_table(
        ["label", "texts", "share"],
        [[name or "(none)", f"{n:,}", f"{n / done:.1%}"] for name, n in sorted(counts.items(), key=lambda each: -each[1])],
        right=["texts", "share"],
    )
    facts = [("texts", f"{done:,}")]
    if abstention is not None:
        said = f"{abstention.reached:.3f} for {abstention.share:.1%} of {count(abstention.rows, 'held-out answer')}"
        facts += [("precision", f"{abstention.precision:g} asked; {said}"), ("answered from", f"{abstention.threshold:.3f}")]
    print_facts(facts + ([("written", str(output))] if output else []))


def _refuse_write(write: str | None, file: str) -> None:
    if write is not None:
        raise UsageError(f"--write is for a library, found the file {file}\n  -o FILE writes the labels of a file")


def _open_library(file: str, model: ModelChoice) -> tuple[Encoder, Vectors]:
    """Return the encoder of a library and the vectors of a sample of its documents."""
    import numpy as np

    from munjang.analyze.classify.zero_shot import SAMPLE
    from munjang.cli.library_files import open_with_model
    from munjang.library.matrix import document_vector

    with open_with_model(file, model.model, compute=model.compute) as library:
        entries = (entry for block in library.store.entries() for entry in block)
        sample = [document_vector(entry.vectors_PD, entry.lengths_P) for entry in islice(entries, SAMPLE)]
        if not sample or library.encoder is None:
            raise InputError(f"{library.store.name}: holds no document, expected at least one\n  add some with munjang add")
        return library.encoder, np.stack(sample)


def _label_library(
    file: str, made: TextClassifier, options: Chosen, *, output: Path | None, write: str | None, as_json: bool, model: ModelChoice
) -> None:
    """Label the documents of a library by the vectors that it holds, and write the labels into its metadata where asked."""
    from munjang.analyze.classify.apply import apply_classifier
    from munjang.cli.classify import own_encoder
    from munjang.cli.library_files import open_with_model

    if write is not None and not write.strip():
        raise UsageError("--write is empty, expected the name of a metadata key")
    with open_with_model(file, model.model, compute=model.compute) as library:
        encoder = library.encoder
        assert encoder is not None  # as it was opened with one
        fits = not made.encoder or encoder.fingerprint == made.encoder
        if not fits:
            encoder = own_encoder(made, None, None)
            note(f"{library.store.name}: its vectors are not of the classifier's model, {made.encoder_name}; texts are encoded again")
        abstention = made.abstain_at(options["precision"]) if options.get("precision") is not None else None
        found: list[tuple[str, Any]] = []
        vectors: list[Vectors] = []

        def rows() -> Iterator[TextRow]:
            number = 0
            for documents, block_ND in read_document_blocks(library):
                vectors.extend(block_ND if fits else [])
                for document in documents:
                    number += 1
                    yield TextRow(number, document.id, document.text, {"id": document.id, "text": document.text, **document.metadata})

        def say(block: list[TextRow]) -> list[dict[str, Any]]:
            import numpy as np

            taken = np.stack([vectors.pop(0) for _ in block]) if fits else None
            labels = apply_classifier(made, [row.text for row in block], encoder, **options, vectors=taken)
            found.extend((str(row.id), list(each.labels) if made.multi else each.label) for row, each in zip(block, labels, strict=True))
            return describe_labels(labels)

        _run(file, rows(), say, None, output=output, as_json=as_json, abstention=abstention)
        if write is not None:
            changed = write_metadata(library, write, found)
            note(f"{library.store.name}: wrote {write} into {count(changed, 'document')}")
