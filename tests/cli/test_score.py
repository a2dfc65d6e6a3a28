"""`munjang score`: any model over a file of pairs; the file's order and columns, labels kept, nothing half written, memory bounded."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import write_cross_encoder
from tests.kept_head import LABELS, keep_head
from tests.static_model import write_static

from munjang import CrossEncoder, PairClassifier, SentenceEncoder
from munjang.cli import score as command
from munjang.cli.main import run
from munjang.engine.folder import PAIR_CLASSIFIER

PAIRS = [("the rain", "비가 많이 온다"), ('a "dog", on the train', "cat"), ("눈이 올까요?", "겨울 날씨"), ("cat", "cat")]
Munjang = Callable[..., Any]


@pytest.fixture
def pairs_file(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    with path.open("w", encoding="utf-8", newline="") as handle:
        table = csv.writer(handle)
        table.writerow(["id", "sentence1", "sentence2"])
        table.writerows((f"p{number}", *pair) for number, pair in enumerate(PAIRS))
    return path


@pytest.fixture(scope="module")
def nli(tiny_bert_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return keep_head(Path(shutil.copytree(tiny_bert_folder, tmp_path_factory.mktemp("kept") / "nli")))


@pytest.fixture(scope="module")
def cross(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cross")
    write_cross_encoder(folder, 3)
    return folder


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_static(tmp_path_factory.mktemp("static"))


def write_many(path: Path, rows: int) -> Path:
    """Write pairs that say their own number, so that order can be seen."""
    with path.open("w", encoding="utf-8") as handle:
        handle.write("id\tsentence1\tsentence2\n")
        handle.writelines(
            f"{number}\tthe cat {number % 97} was on the train {number}\t비가 많이 온다 {number % 89}\n" for number in range(rows)
        )
    return path


def test_a_sentence_encoder_gives_cosines(munjang: Munjang, pairs_file: Path, tiny_bert_folder: Path) -> None:
    done = munjang("score", pairs_file, "--model", tiny_bert_folder, "--json")
    model = SentenceEncoder.load(tiny_bert_folder)
    expected = [float(model.similarity_pairwise(*(model.encode([text]) for text in pair))[0]) for pair in PAIRS]
    assert [(row["row"], row["a"], row["b"]) for row in done.json] == [(number, *pair) for number, pair in enumerate(PAIRS, 1)]
    np.testing.assert_allclose([row["score"] for row in done.json], expected, atol=1e-5)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_labels_stand_beside_the_files_own_columns(munjang: Munjang, pairs_file: Path, cross: Path, tmp_path: Path, suffix: str) -> None:
    output = tmp_path / f"scored{suffix}"
    done = munjang("score", pairs_file, "--model", cross, "-o", output, "--json")
    assert (done.code, done.json["pairs"], sum(done.json["labels"].values())) == (0, 4, 4)
    lines = output.read_text(encoding="utf-8").splitlines()
    if suffix == ".csv":
        rows = list(csv.DictReader(lines))
    elif suffix == ".tsv":
        rows = [dict(zip(lines[0].split("\t"), line.split("\t"), strict=True)) for line in lines[1:]]
    else:
        rows = [json.loads(line) for line in lines]
    assert [(row["id"], row["sentence1"], row["sentence2"]) for row in rows] == [(f"p{n}", *pair) for n, pair in enumerate(PAIRS)]
    expected = CrossEncoder.load(cross).predict(PAIRS, score="softmax")
    scores = np.asarray([[float(row[f"score_LABEL_{number}"]) for number in range(3)] for row in rows])
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    assert [row["label"] for row in rows] == [f"LABEL_{place}" for place in expected.argmax(axis=1)]
    np.testing.assert_allclose([float(row["score"]) for row in rows], scores.max(axis=1))


def test_a_kept_classifier_labels_pairs_and_its_encoder_points_at_it(munjang: Munjang, pairs_file: Path, nli: Path) -> None:
    done = munjang("score", pairs_file, "--model", nli / PAIR_CLASSIFIER, "--json")
    assert [row["label"] for row in done.json] == PairClassifier.load(nli).predict_with_report(PAIRS).predicted
    assert [name for name in done.json[0] if name.startswith("score_")] == [f"score_{label}" for label in LABELS]
    cosines = munjang("score", pairs_file, "--model", nli, "--json")
    assert "label" not in cosines.json[0]
    assert str(nli / PAIR_CLASSIFIER) in cosines.err


def test_people_see_a_table_and_what_all_pairs_gave(munjang: Munjang, pairs_file: Path, cross: Path, static: Path, tmp_path: Path) -> None:
    done = munjang("score", pairs_file, "--model", cross)
    assert "겨울 날씨" in done.out
    assert "LABEL_2" in done.out
    many = munjang("score", write_many(tmp_path / "many.tsv", 30), "--model", static)
    assert "mean score" in many.out
    assert "the first 20 of 30 pairs are shown" in many.err


def test_a_column_of_the_same_name_is_not_overwritten(munjang: Munjang, static: Path, tmp_path: Path) -> None:
    path = tmp_path / "sts.jsonl"
    path.write_text('{"a": "cat", "b": "dog", "score": 4.5, "label": null}\n', encoding="utf-8")
    done = munjang("score", path, "--model", static, "-o", tmp_path / "o.jsonl")
    row = json.loads((tmp_path / "o.jsonl").read_text(encoding="utf-8"))
    assert (row["score"], list(row)) == (4.5, ["a", "b", "score", "label", "score_2"])
    assert "score as score_2" in done.err


def test_a_tsv_keeps_quotation_marks_and_one_line_a_row(munjang: Munjang, static: Path, tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_text(
        json.dumps({"a": 'say "hi"\tthere\nnow', "b": "dog", "more": ["x", {"y": 1}], "lone": "\ud800"}) + "\n", encoding="utf-8"
    )
    for suffix in (".tsv", ".csv", ".jsonl"):
        assert munjang("score", path, "--model", static, "-o", tmp_path / f"o{suffix}").code == 0
    head, line, *rest = (tmp_path / "o.tsv").read_text(encoding="utf-8").split("\n")
    assert (rest, line.split("\t")[0], len(line.split("\t"))) == ([""], 'say "hi" there now', len(head.split("\t")))
    assert json.loads((tmp_path / "o.jsonl").read_text(encoding="utf-8"))["lone"] == "\ud800"


def test_standard_input_and_named_columns(munjang: Munjang, static: Path) -> None:
    done = munjang("score", "-", "--model", static, "--column", "a=left", "--column", "b=right", "--json", stdin="left,right\ncat,dog\n")
    assert (done.code, len(done.json)) == (0, 1)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["-o", "scored.xlsx"], 2, "expected a name that ends in .csv, .tsv, .jsonl"),
        (["-o", "no/such/folder.csv"], 2, "does not exist"),
        (["--score", "softmax"], 2, "a sentence encoder gives cosines"),
        (["--score", "loud"], 2, "loud"),
        (["--column", "a=nobody", "--column", "b=sentence2"], 3, "no column 'nobody'"),
        (["--layout", "korstz"], 2, "did you mean korsts"),
        (["--model", "no-such-model"], 3, "neither a model's name nor a folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_calls_are_refused_and_write_nothing(
    munjang: Munjang,
    pairs_file: Path,
    static: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    model = [] if "--model" in arguments else ["--model", str(static)]
    done = munjang("score", pairs_file, *model, *arguments)
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.csv"]


def test_a_bad_row_at_the_end_is_found_before_anything_is_written(munjang: Munjang, static: Path, tmp_path: Path) -> None:
    path, output = tmp_path / "x.csv", tmp_path / "o.csv"
    path.write_text("a,b\ncat,dog\nsun,\n", encoding="utf-8")
    output.write_text("what was here before", encoding="utf-8")
    done = munjang("score", path, "--model", static, "-o", output)
    assert (done.code, output.read_text(encoding="utf-8")) == (3, "what was here before")
    assert "x.csv line 3: b is empty" in done.err
    done = munjang("score", path, "--model", static, "-o", output, "--skip-bad", "--json")
    assert (done.code, done.json["pairs"], done.json["skipped"]) == (0, 1, 1)
    assert "x.csv line 3" in done.err


def test_an_error_on_the_way_leaves_the_old_file(
    munjang: Munjang, pairs_file: Path, static: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "o.csv"
    output.write_text("what was here before", encoding="utf-8")
    monkeypatch.setattr(PairClassifierLike, "scores", float("nan"))
    monkeypatch.setattr("munjang.models.score_pairs.score_block", PairClassifierLike.score)
    done = munjang("score", pairs_file, "--model", static, "-o", output)
    assert (done.code, output.read_text(encoding="utf-8")) == (3, "what was here before")
    assert "pairs.csv line 2: the model gives a score that is not a finite number" in done.err
    assert not list(tmp_path.glob(".*.part"))


class PairClassifierLike:
    """Stands for a model whose weights overflow."""

    scores = 0.0

    @classmethod
    def score(cls, pairs: list[tuple[str, str]], _model: object, **_options: object) -> Any:
        from munjang import PairScores

        return PairScores(np.full(len(pairs), cls.scores, np.float32), [])


def test_cut_pairs_are_counted_once(munjang: Munjang, tiny_bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "BLOCK", 2)
    path = tmp_path / "long.csv"
    path.write_text("a,b\n" + f"cat,{'sleep ' * 60}\n" * 5, encoding="utf-8")
    done = munjang("score", path, "--model", tiny_bert_folder, "-o", tmp_path / "o.csv", "--json")
    assert done.json["truncated"] == 5
    assert done.err.count("longer than the model's limit of 24 tokens") == 1


def test_memory_does_not_grow_with_the_file(static: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "BLOCK", 128)

    def peak(rows: int) -> int:
        path = write_many(tmp_path / f"{rows}.tsv", rows)
        tracemalloc.start()
        try:
            assert run(["score", str(path), "--model", str(static), "-o", str(tmp_path / f"{rows}.jsonl")]) == 0
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(100)  # what is loaded at the first call does not count
    small, large = peak(500), peak(4_000)
    assert large < small + 500_000, "3,500 more rows take more than a megabyte if they are held"
    rows = [json.loads(line) for line in (tmp_path / "4000.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in rows] == [str(number) for number in range(4_000)]


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads memory as Linux counts it")
def test_a_hundred_thousand_pairs_stream_in_bounded_memory(tiny_bert_folder: Path, tmp_path: Path) -> None:
    code = "import resource, sys; from munjang.cli.main import run; code = run(sys.argv[1:])\n"
    code += "print(code, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"

    def megabytes(rows: int) -> float:
        path, output = write_many(tmp_path / f"{rows}.tsv", rows), tmp_path / f"{rows}.csv"
        call = [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            code,
            "score",
            str(path),
            "--model",
            str(tiny_bert_folder),
            "-o",
            str(output),
            "--json",
        ]
        done = subprocess.run(call, capture_output=True, text=True, check=True, timeout=900)
        assert done.stdout.splitlines()[-1].split()[0] == "0", done.stderr
        with output.open(encoding="utf-8", newline="") as handle:
            assert all(int(row["id"]) == number for number, row in enumerate(csv.DictReader(handle)))
        return int(done.stdout.splitlines()[-1].split()[1]) / 1024

    few, many = megabytes(5_000), megabytes(100_000)
    assert many < few + 60, f"{few:.0f} MB with 5,000 pairs, {many:.0f} MB with 100,000"


@pytest.mark.skipif(os.name == "nt", reason="kills as POSIX does")
def test_a_kill_while_writing_leaves_no_half_file(static: Path, tmp_path: Path) -> None:
    path, output = write_many(tmp_path / "many.tsv", 60_000), tmp_path / "scored.csv"
    call = [sys.executable, "-m", "munjang.cli.main", "score", str(path), "--model", str(static), "-o", str(output)]
    process = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not any(part.stat().st_size for part in tmp_path.glob(".scored.csv.*.part")):
        assert process.poll() is None, "it ended before it was killed"
        assert time.monotonic() < until
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not output.exists()
    small = write_many(tmp_path / "few.tsv", 10)
    assert run(["score", str(small), "--model", str(static), "-o", str(output)]) == 0
    assert len(output.read_text(encoding="utf-8").splitlines()) == 11
