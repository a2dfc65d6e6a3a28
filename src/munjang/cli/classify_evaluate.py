"""What `munjang classify evaluate` does, and the reports of a classifier."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from munjang.cli.label_files import read_labelled_rows
from munjang.cli.options import Chosen, Columns, ModelChoice
from munjang.cli.show import emit, print_facts, print_table
from munjang.errors import UsageError

if TYPE_CHECKING:
    from munjang.analyze.classify.apply import TextLabels
    from munjang.analyze.classify.classifier import TextClassifier
    from munjang.analyze.classify.doubtful import CurvePoint
    from munjang.evaluate.bootstrap import Interval, PairedDifference
    from munjang.evaluate.text_labels import LabelReport
    from munjang.wording import Language


def evaluate_folder(
    folder: Path,
    file: str,
    columns: Columns,
    model: ModelChoice,
    options: Chosen,
    *,
    label_column: str | None,
    compare: Path | None,
    separator: str,
    skip_unlabelled: bool,
    html: Path | None,
    language: Language,
    as_json: bool,
) -> None:
    """Measure a saved classifier on a labelled file, maybe against another one, and show it."""
    from munjang.analyze.classify.fitting import HALF
    from munjang.analyze.classify.labels import name_label
    from munjang.analyze.classify.saving import load_classifier
    from munjang.evaluate.text_labels import compare_label_sets, compare_labels, evaluate_label_sets, evaluate_labels

    made = load_classifier(folder)
    against = None if compare is None else load_classifier(compare)
    if against is not None and against.multi != made.multi:
        several, one = (folder, compare) if made.multi else (compare, folder)
        raise UsageError(f"{several} gives a text several labels, {one} gives one; expected two classifiers of a kind")
    rows, values, _ = read_labelled_rows(
        file, columns, label_column=label_column, multi=made.multi, separator=separator, skip_unlabelled=skip_unlabelled
    )
    texts = [row.text for row in rows]
    gold = [
        tuple(name_label(each, f"{file} row {row.number}") for each in (value if made.multi else [value]))
        for row, value in zip(rows, values, strict=True)
    ]
    found = _apply(made, texts, model, options)
    measured = (found.probability_NC, found.names)
    only = [names[0] for names in gold if names]
    report = evaluate_label_sets(*measured, gold, threshold=HALF) if made.multi else evaluate_labels(*measured, only)
    answered = _describe_answered(found, gold) if found.abstention is not None else None
    differences = None
    if against is not None:
        other = _apply(against, texts, model, {"precision": None})
        both = (*measured, other.probability_NC, other.names)
        differences = compare_label_sets(*both, gold, threshold=HALF) if made.multi else compare_labels(*both, only)
    if html is not None:
        _write_report(html, report, differences, folder=folder, compare=compare, file=file, language=language)
    if as_json:
        facts = {"file": file, "classifier": str(folder), **report.to_json()}
        facts |= {"answered": answered} if answered else {}
        facts |= {"compare": {"with": str(compare), **_compare_facts(differences)}} if differences else {}
        emit(facts)
        return
    _show(report, answered, differences, compare)


def write_fit_report(
    html: Path, made: TextClassifier, doubtful: Sequence[Mapping[str, Any]], points: Sequence[CurvePoint], *, file: str, language: Language
) -> None:
    """Write what is known of a classifier that was just fitted."""
    import numpy as np

    from munjang.analyze.classify.classifier import NO_LABEL
    from munjang.atomic import atomic_write
    from munjang.evaluate.text_labels import make_calibration_bins
    from munjang.report.analysis_pages import ClassifierPage, DoubtfulRow, Figure, classifier_page
    from munjang.report.words import Word, say

    held = made.held_out
    first = Word.MICRO_F1 if made.multi else Word.ACCURACY
    figures = [Figure(first, held.micro_f1), Figure(Word.MACRO_F1, held.macro_f1)] if len(held) else []
    answered = held.best_N != NO_LABEL
    bins = make_calibration_bins(held.confidence_N[answered], held.correct_N[answered]) if answered.any() else ()
    size = len(made.labels)
    given, best, right = (
        np.bincount(each[each != NO_LABEL], minlength=size) for each in (held.given_N, held.best_N, held.best_N[held.correct_N])
    )
    with np.errstate(invalid="ignore"):
        rates = zip(made.labels, right / best, right / given, 2 * right / (given + best), given.tolist(), strict=True)
        labels = [(name, float(precision), float(recall), float(f1), int(texts)) for name, precision, recall, f1, texts in rates]
    shown = ClassifierPage(
        say(Word.CLASSIFIER_OF, language, file=Path(file).name),
        say(Word.EXAMPLES, language, count=int(made.examples_C.sum())) + ". " + say(Word.HELD_OUT_QUALITY, language),
        figures,
        labels,
        calibration=[(each.confidence, each.accuracy) for each in bins],
        curve=[(point.examples, point.macro_f1) for point in points],
        doubtful=[
            DoubtfulRow(each["row"], each["given"] or "–", each["suggested"] or "–", each["doubt"], each["text"][:300]) for each in doubtful
        ],
    )
    atomic_write(html, classifier_page(shown, language=language))


def _apply(made: TextClassifier, texts: Sequence[str], model: ModelChoice, options: Chosen) -> TextLabels:
    from munjang.analyze.classify.apply import apply_classifier
    from munjang.cli.classify import own_encoder

    return apply_classifier(made, texts, own_encoder(made, model.model, model.compute), **options)


def _describe_answered(found: TextLabels, gold: Sequence[Collection[str]]) -> dict[str, Any]:
    """Return which share of the texts is answered at the precision asked for, and which precision the answers really reach."""
    from munjang.evaluate.bootstrap import bootstrap_means

    right = [float(label in names) for each, names in zip(found, gold, strict=True) for label in each.labels]
    interval = bootstrap_means({"precision": right}, resamples=2_000)["precision"] if right else None
    asked = found.abstention.facts() if found.abstention is not None else {}
    return {
        **asked,
        "share": round(found.answered, 4),
        "reached": round(sum(right) / len(right), 4) if right else None,
        "reached_ci95": None if interval is None else [round(interval.low, 4), round(interval.high, 4)],
    }


def _compare_facts(differences: Mapping[str, PairedDifference]) -> dict[str, Any]:
    from munjang.evaluate.bootstrap import to_jsonable

    return {name: to_jsonable(each) for name, each in differences.items()}


def _show(
    report: LabelReport, answered: Mapping[str, Any] | None, differences: Mapping[str, PairedDifference] | None, compare: Path | None
) -> None:
    def dash(value: float) -> str:
        return f"{value:.3f}" if value == value else "–"

    lines = [[each.label, dash(each.precision), dash(each.recall), dash(each.f1), f"{each.texts:,}"] for each in report.labels]
    print_table(["label", "precision", "recall", "F1", "texts"], lines, right=["precision", "recall", "F1", "texts"])
    facts = [("texts", f"{report.n:,}"), ("accuracy", f"{report.accuracy:.4f} {_interval(report.accuracy_ci95)}")]
    if not report.confusion:
        facts.append(("micro-F1", f"{report.micro_f1:.4f} {_interval(report.micro_f1_ci95)}"))
    facts += [("macro-F1", f"{report.macro_f1:.4f} {_interval(report.macro_f1_ci95)}"), ("calibration error", f"{report.ece:.4f}")]
    if answered is not None:
        facts.append(("answered", f"{answered['share']:.1%}, precision {answered['reached']} {answered['reached_ci95']}"))
    for name, each in (differences or {}).items():
        facts.append((f"{name} − {compare}", f"{each.difference:+.4f} {_interval(each.ci95)}, p {each.p:.3g}"))
    print_facts(facts)


def _interval(interval: Interval) -> str:
    return f"[{interval.low:.4f}, {interval.high:.4f}]"


def _write_report(
    html: Path,
    report: LabelReport,
    differences: Mapping[str, PairedDifference] | None,
    *,
    folder: Path,
    compare: Path | None,
    file: str,
    language: Language,
) -> None:
    from munjang.atomic import atomic_write
    from munjang.report.analysis_pages import ClassifierPage, Figure, classifier_page
    from munjang.report.words import Word, say

    words = {"accuracy": Word.ACCURACY, "micro_f1": Word.MICRO_F1, "macro_f1": Word.MACRO_F1}
    several = [Figure(Word.MICRO_F1, report.micro_f1, (report.micro_f1_ci95.low, report.micro_f1_ci95.high))]
    compared = [(words[name], each.a, each.b, each.p) for name, each in (differences or {}).items()]
    shown = ClassifierPage(
        say(Word.CLASSIFIER_ON, language, file=Path(file).name),
        f"{folder} · {say(Word.TEXTS, language, count=report.n)}",
        [
            Figure(Word.ACCURACY, report.accuracy, (report.accuracy_ci95.low, report.accuracy_ci95.high)),
            *(several if not report.confusion else []),
            Figure(Word.MACRO_F1, report.macro_f1, (report.macro_f1_ci95.low, report.macro_f1_ci95.high)),
            Figure(Word.CALIBRATION_ERROR, report.ece),
        ],
        [(each.label, each.precision, each.recall, each.f1, each.texts) for each in report.labels],
        report.confusion,
        [(each.confidence, each.accuracy) for each in report.calibration],
        comparison=None if compare is None else (compare.name, compared),
    )
    atomic_write(html, classifier_page(shown, language=language))
