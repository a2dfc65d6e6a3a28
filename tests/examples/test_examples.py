"""Every example runs, as a file and as a notebook, and what it shows makes sense.

Files and cells are run inside this process, so that the heavy packages are loaded once; cells in order in one namespace, as Jupyter does.
"""

from __future__ import annotations

import ast
import json
import os
import runpy
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from munjang.errors import MunjangError
from munjang.models.registry import resolve

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9][0-9]_*.py"))
NEEDS = {"13_dataframe": ("pandas",), "07_dask": ("dask", "pyarrow"), "08_train": ("torch", "transformers", "accelerate")}
BILINGUAL = "ko-en-small"

notebooks = runpy.run_path(str(ROOT / "examples/notebooks.py"))

pytestmark = pytest.mark.skipif(not EXAMPLES, reason="the examples are not part of this copy")


@pytest.fixture(scope="module", autouse=True)
def _default_model() -> None:
    try:
        resolve()
    except MunjangError:
        pytest.skip("no default model is installed")


@pytest.fixture(scope="module")
def run_example(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], dict[str, Any]]]:
    """Run an example once and return its names."""
    done: dict[str, dict[str, Any]] = {}

    def run(stem: str) -> dict[str, Any]:
        need(stem)
        if stem not in done:
            done[stem] = runpy.run_path(str(ROOT / "examples" / f"{stem}.py"), run_name="__main__")
        return done[stem]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("examples")))
        yield run


def need(stem: str) -> None:
    for package in NEEDS.get(stem, ()):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")


def need_bilingual_model() -> None:
    if resolve().name != BILINGUAL:
        pytest.skip(f"the default model is {resolve().name}, which knows no Korean")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path: Path, run_example: Callable[[str], dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    run_example(path.stem)
    assert len(capsys.readouterr().out.splitlines()) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need(path.stem)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(path.parent)  # where Jupyter starts it
    run_cells(path)
    assert len(capsys.readouterr().out.splitlines()) >= 3


def run_cells(path: Path) -> list[Any]:
    """Run a notebook's cells in one namespace, as Jupyter does, and return the values that it would show."""
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    for cell in json.loads(path.with_suffix(".ipynb").read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        where, tree = f"{path.stem}.ipynb {cell['id']}", ast.parse("".join(cell["source"]))
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, where, "exec"), names)
        if last is not None:
            shown.append(eval(compile(ast.Expression(last.value), where, "eval"), names))
    return [value for value in shown if value is not None]


def test_the_notebook_of_a_data_frame_draws_tables_and_a_map(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    need("13_dataframe")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(ROOT / "examples")
    shown = run_cells(ROOT / "examples/13_dataframe.py")
    assert [type(value).__name__ for value in shown] == ["DataFrame", "TopicModel", "DataFrame", "Slices", "TextMap", "Keywords", "Hits"]
    html = [value._repr_html_() for value in shown]
    page = "<!doctype html><meta charset=utf-8>" + "<hr>".join(html)
    (Path(os.environ.get("MUNJANG_SHOWN", tmp_path)) / "13_dataframe.html").write_text(page, encoding="utf-8")  # to be looked at
    assert html[4].count("<circle") == 72
    assert all("<table" in each for at, each in enumerate(html) if at != 4)
    need_bilingual_model()
    assert shown[2].max().sum() >= 65  # texts whose topic is mostly of their desk
    assert {row["language"] for row in shown[6].to_rows()} == {"en", "ko"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_notebook_is_what_its_file_says(path: Path) -> None:
    text = path.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert text == notebooks["notebook_text"](path.read_text(encoding="utf-8")), "stale: run python examples/notebooks.py"
    cells = json.loads(text)["cells"]
    assert cells[0]["source"][0].startswith("# ")
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells if cell["cell_type"] == "code")
    assert len({cell["id"] for cell in cells}) == len(cells)
    assert "__file__" not in text


def test_there_is_no_notebook_without_a_file() -> None:
    assert {path.stem for path in (ROOT / "examples").glob("*.ipynb")} == {path.stem for path in EXAMPLES}


def test_every_example_is_listed() -> None:
    listed = (ROOT / "examples/README.md").read_text(encoding="utf-8")
    assert all(f"[{path.stem}]({path.name})" in listed for path in EXAMPLES)


def test_our_own_mean_pooling_is_the_model_s(run_example: Callable[[str], dict[str, Any]]) -> None:
    names = run_example("02_pooling")
    assert abs(names["own"] - names["vectors"]).max() < 1e-5


def test_english_scores_agree_with_people(run_example: Callable[[str], dict[str, Any]]) -> None:
    genres = {genre.genre: genre.spearman_cosine for genre in run_example("03_similarity")["result"].genres}
    assert genres["en"] > 0.7
    need_bilingual_model()
    assert genres["ko"] > 0.7


def test_training_learns_its_pairs(run_example: Callable[[str], dict[str, Any]]) -> None:
    names = run_example("08_train")
    assert names["losses"][-1] < 0.2 * names["losses"][0]
    near, far = names["model"].similarity(names["vectors"][:1], names["vectors"][1:])[0]
    assert near > far + 0.3


def test_books_fit_what_was_asked_for(run_example: Callable[[str], dict[str, Any]]) -> None:
    names = run_example("10_books")
    assert names["report"].added == 48
    assert names["liked"][0].metadata["genre"] == "mystery"
    assert [hit.metadata["genre"] for hit in names["space"][:2]] == ["science fiction", "science fiction"]
    assert all(int(hit.metadata["year"]) >= 2019 for hit in names["space"])


def test_most_products_find_their_counterpart(run_example: Callable[[str], dict[str, Any]]) -> None:
    names = run_example("11_products")
    assert names["right"] >= 27
    assert names["good"] / len(names["sure"].matches) > 0.9


def test_topics_follow_the_desks_in_both_languages(run_example: Callable[[str], dict[str, Any]]) -> None:
    need_bilingual_model()
    names = run_example("05_topics")
    desks = [(int(label), record.metadata["desk"]) for record, label in zip(names["news"], names["topics"].labels, strict=True)]
    largest = [max(desks.count((topic.id, desk)) for _, desk in desks) for topic in names["topics"].topics]
    assert sum(largest) >= 0.85 * len(desks)
    assert run_example("06_contextual_topics")["right"] >= 18


def test_translations_are_found(run_example: Callable[[str], dict[str, Any]]) -> None:
    need_bilingual_model()
    assert run_example("12_multilingual")["right"] >= 18
