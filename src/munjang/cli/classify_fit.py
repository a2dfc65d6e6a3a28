"""What `munjang classify fit` does: labelled rows in, a saved classifier out, and what it is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from munjang.cli.label_files import read_labelled_rows
from munjang.cli.options import Chosen, Columns, ModelChoice
from munjang.cli.row_files import TextRow, write_rows
from munjang.cli.show import emit, note, print_facts, print_table
from munjang.errors import UsageError
from munjang.wording import count

if TYPE_CHECKING:
    from munjang.analyze.classify.classifier import TextClassifier
    from munjang.cli.classify_tune import TuneOutcome
    from munjang.types import Encoder, Vectors
    from munjang.wording import Language

DOUBTFUL_SHOWN = 10


def fit_and_save(
    file: str,
    output: Path,
    columns: Columns,
    model: ModelChoice,
    options: Chosen,
    *,
    label_column: str | None,
    tune: bool,
    separator: str,
    skip_unlabelled: bool,
    curve: Sequence[int],
    doubtful: Path | None,
    html: Path | None,
    language: Language,
    as_json: bool,
) -> None:
    """Fit a classifier, save it, and say what it is worth."""
    from munjang.analyze.classify.doubtful import draw_learning_curve
    from munjang.analyze.classify.fitting import fit_classifier
    from munjang.analyze.classify.saving import check_classifier_folder, save_classifier
    from munjang.cli.classify_evaluate import write_fit_report
    from munjang.cli.row_files import check_rows_output

    check_classifier_folder(output)
    check_rows_output(doubtful)
    if (curve or tune) and options["multi"]:
        raise UsageError(f"--{'curve' if curve else 'tune'} is for texts with one label each, found --multi")
    rows, labels, column = read_labelled_rows(
        file, columns, label_column=label_column, multi=options["multi"], separator=separator, skip_unlabelled=skip_unlabelled
    )
    texts = [row.text for row in rows]
    body = _choose_body(texts, labels, model, output, tune=tune, multi=options["multi"], seed=options["seed"])
    made = fit_classifier(texts, labels, body.encoder, **options, vectors=body.vectors_ND)
    made = replace(made, encoder_name=body.name)
    points = list(draw_learning_curve(texts, labels, sizes=curve, seed=options["seed"], vectors=body.vectors_ND)) if curve else []
    save_classifier(made, output)
    listed = _list_doubtful(made, rows)
    if doubtful is not None:
        write_rows(doubtful, listed)
    facts = {
        **made.facts(),
        "rows": len(rows),
        "label_column": column,
        **_describe_repeats(rows, labels, body.vectors_ND, multi=options["multi"]),
        "doubtful": listed[:DOUBTFUL_SHOWN] if doubtful is None else len(listed),
        **({"curve": [vars(point) for point in points]} if points else {}),
        **({"tune": body.outcome.facts()} if body.outcome is not None else {}),
        "saved": str(output),
    }
    if html is not None:
        write_fit_report(html, made, listed[:50], points, file=file, language=language)
    if as_json:
        emit(facts)
    else:
        _show_fit(facts, made, listed, points)


@dataclass(frozen=True, eq=False)
class _Body:
    """The model that a classifier reads, and what it makes of the examples."""

    encoder: Encoder
    name: str
    vectors_ND: Vectors
    outcome: TuneOutcome | None


def _choose_body(texts: list[str], labels: list[Any], model: ModelChoice, output: Path, *, tune: bool, multi: bool, seed: int) -> _Body:
    """Return the model that was asked for, or with `tune` a tuned one where it labels held-out examples better."""
    from munjang.analyze.classify.fitting import find_vectors
    from munjang.analyze.classify.labels import label_rows
    from munjang.cli.classify_tune import compare_tuned, save_tuned
    from munjang.cli.load_model import load_encoder

    label_rows(labels, len(texts), multi=multi)  # unusable labels are refused before anything is encoded
    loaded = load_encoder(model.model, compute=model.compute)
    vectors_ND = find_vectors(texts, loaded, None)
    frozen = _Body(loaded, model.model or loaded.name, vectors_ND, None)
    if not tune:
        return frozen
    folder = loaded.model.folder.path
    outcome = compare_tuned(texts, labels, folder, vectors_ND, seed=seed)
    if not outcome.kept:
        return replace(frozen, outcome=outcome)
    encoder, name = save_tuned(texts, labels, folder, output, seed=seed)
    return _Body(encoder, name, find_vectors(texts, encoder, None), outcome)


def _describe_repeats(rows: Sequence[TextRow], labels: list[Any], vectors_ND: Vectors, *, multi: bool) -> dict[str, Any]:
    from munjang.analyze.classify.folds import find_repeats
    from munjang.analyze.classify.labels import label_rows

    repeats = find_repeats([row.text for row in rows], vectors_ND, label_rows(labels, len(rows), multi=multi).target_NC)
    return {
        "near_duplicates": repeats.repeats,
        "conflicts": [[rows[row].number for row in group] for group in repeats.conflicts],
    }


def _list_doubtful(made: TextClassifier, rows: Sequence[TextRow]) -> list[dict[str, Any]]:
    from munjang.analyze.classify.doubtful import find_doubtful

    return [
        {"row": rows[each.row].number, "given": each.given, "suggested": each.suggested, "doubt": each.doubt, "text": rows[each.row].text}
        for each in find_doubtful(made)
    ]


def _show_fit(facts: Mapping[str, Any], made: TextClassifier, listed: Sequence[Mapping[str, Any]], points: Sequence[Any]) -> None:
    held = made.held_out
    quality = f"accuracy {held.accuracy:.3f}, macro-F1 {held.macro_f1:.3f}" if len(held) else "unknown: no label has two different examples"
    print_facts(
        [
            ("examples", f"{facts['rows']:,}"),
            ("labels", f"{len(made.labels):,} ({', '.join(made.labels[:8])}{', …' if len(made.labels) > 8 else ''})"),
            ("held out", quality),
            ("strength", f"{made.strength:g}"),
            ("near-duplicates", f"{facts['near_duplicates']:,} (kept in one fold)"),
            ("saved", facts["saved"]),
        ]
    )
    if "tune" in facts:
        done = facts["tune"]
        said = f"held-out accuracy {done['frozen_accuracy']:.3f} frozen, {done['tuned_accuracy']:.3f} tuned (p {done['p']:.3g})"
        print_facts([("tuning", f"{said}; {'kept' if done['kept'] else 'not kept: it labelled no more of them right'}")])
    if facts["conflicts"]:
        shown = "; ".join(", ".join(map(str, group)) for group in facts["conflicts"][:5])
        note(f"{count(len(facts['conflicts']), 'text')} with different labels in equal rows: {shown}")
    if points:
        rows = [[str(point.examples), f"{point.macro_f1:.3f}", f"{point.deviation:.3f}", f"{point.accuracy:.3f}"] for point in points]
        print_table(["examples a label", "macro-F1", "±", "accuracy"], rows, right=["examples a label", "macro-F1", "±", "accuracy"])
    if listed:
        lines = [
            [str(each["row"]), str(each["given"] or "–"), str(each["suggested"] or "–"), f"{each['doubt']:.2f}", each["text"][:60]]
            for each in listed
        ]
        print_table(["row", "label", "suggested", "doubt", "text"], lines[:DOUBTFUL_SHOWN], right=["row", "doubt"], title="doubtful labels")
