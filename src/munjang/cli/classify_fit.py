"""What `munjang classify fit` does: labelled rows in, a saved classifier out, and what it is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from munjang.cli.label_files import read_labelled_rows
from munjang.cli.options import Chosen, Columns, ModelChoice
from munjang.cli.row_files import TextRow, write_rows
from munjang.cli.show import emit, note, print_facts, print_table
from munjang.wording import count

if TYPE_CHECKING:
    from munjang.analyze.classify.classifier import TextClassifier
    from munjang.analyze.classify.tuning import TuneOutcome
    from munjang.types import Vectors
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
    from munjang.analyze.classify.saving import FOLDER, save_classifier
    from munjang.cli.classify_evaluate import write_fit_report
    from munjang.cli.row_files import check_rows_output

    FOLDER.check(output)
    check_rows_output(doubtful)
    rows, labels, column = read_labelled_rows(
        file, columns, label_column=label_column, multi=options["multi"], separator=separator, skip_unlabelled=skip_unlabelled
    )
    texts = [row.text for row in rows]
    made, vectors_ND, outcome = _fit(texts, labels, model, output, options, tune=tune)
    drawn = {"multi": options["multi"], "seed": options["seed"], "vectors": vectors_ND}
    points = list(draw_learning_curve(texts, labels, sizes=curve, **drawn)) if curve else []
    save_classifier(made, output)
    listed = _list_doubtful(made, rows)
    if doubtful is not None:
        write_rows(doubtful, listed)
    facts = {
        **made.facts(),
        "rows": len(rows),
        "label_column": column,
        **_describe_repeats(rows, labels, vectors_ND, multi=options["multi"]),
        "doubtful": listed[:DOUBTFUL_SHOWN] if doubtful is None else len(listed),
        **({"curve": [vars(point) for point in points]} if points else {}),
        **({"tune": outcome.facts()} if outcome is not None else {}),
        "saved": str(output),
    }
    if html is not None:
        write_fit_report(html, made, listed[:50], points, file=file, language=language)
    if as_json:
        emit(facts)
    else:
        _show_fit(facts, made, listed, points)


def _fit(
    texts: list[str], labels: list[Any], model: ModelChoice, output: Path, options: Chosen, *, tune: bool
) -> tuple[TextClassifier, Vectors, TuneOutcome | None]:
    """Fit a classifier on the model that was asked for, or with `tune` on a tuned one where it labels held-out examples better."""
    from munjang.analyze.classify.fitting import find_vectors, fit_classifier
    from munjang.analyze.classify.labels import label_rows
    from munjang.analyze.classify.tuning import fit_tuned_classifier
    from munjang.cli.load_model import load_encoder
    from munjang.train import name_missing_extra

    label_rows(labels, len(texts), multi=options["multi"])  # unusable labels are refused before anything is encoded
    loaded = load_encoder(model.model, compute=model.compute)
    name = model.model or loaded.name
    if not tune:
        vectors_ND = find_vectors(texts, loaded, None)
        return replace(fit_classifier(texts, labels, loaded, **options, vectors=vectors_ND), encoder_name=name), vectors_ND, None
    with name_missing_extra():
        from munjang.train.tune_labels import BodyTuner
    fitted = fit_tuned_classifier(texts, labels, loaded, BodyTuner(loaded.model.folder.path), output, **options)
    made = fitted.classifier if fitted.outcome.kept else replace(fitted.classifier, encoder_name=name)
    return made, fitted.vectors_ND, fitted.outcome


def _describe_repeats(rows: Sequence[TextRow], labels: list[Any], vectors_ND: Vectors, *, multi: bool) -> dict[str, Any]:
    from munjang.analyze.classify.fitting import find_repeats
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
    quality = f"{'micro-F1' if made.multi else 'accuracy'} {held.micro_f1:.3f}, macro-F1 {held.macro_f1:.3f}"
    print_facts(
        [
            ("examples", f"{facts['rows']:,}"),
            ("labels", f"{len(made.labels):,} ({', '.join(made.labels[:8])}{', …' if len(made.labels) > 8 else ''})"),
            ("held out", quality if len(held) else "unknown: no label has two different examples"),
            ("strength", f"{made.strength:.3g}"),
            ("near-duplicates", f"{facts['near_duplicates']:,} (kept in one fold)"),
            ("saved", facts["saved"]),
        ]
    )
    if "tune" in facts:
        done = facts["tune"]
        said = f"held-out accuracy {done['frozen_accuracy']:.3f} frozen, {done['tuned_accuracy']:.3f} tuned (p {done['p']:.3g})"
        print_facts([("tuning", f"{said}; {'kept' if done['kept'] else 'not kept: it labelled clearly fewer of them right, or the same'}")])
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
