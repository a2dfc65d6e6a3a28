"""What is killed, and what must be true afterwards: five jobs for `kill_rig.py`.

A job works in a child until it is killed, saying one JSON line for each thing that was begun and ended. Afterwards the parent checks.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

Say = Callable[..., None]


class Job(Protocol):
    """Something that is killed while it works."""

    def work(self, turn: int, say: Say) -> None:
        """Work until killed; return when all is done."""

    def check(self, lines: list[dict[str, Any]]) -> str | None:
        """Return what is wrong after a kill, None if nothing is."""


class LibraryJob:
    """Adds, updates, removes and compacts; nothing that was acknowledged may be lost."""

    pause = 0.2
    """Seconds after its first word within which it is killed."""

    def __init__(self, folder: Path, _model: Path) -> None:
        from tests.faults import library_worker
        from tests.faults.test_kill import Expected

        self.worker, self.path, self.expected = library_worker, str(folder / "a.db"), Expected()

    def work(self, turn: int, say: Say) -> None:
        self.worker.say = say
        self.worker.write(self.path, turn + 1)

    def check(self, lines: list[dict[str, Any]]) -> str | None:
        begun = self.expected.follow(lines)
        with self.worker.opened(self.path) as library:
            if wrong := library.check():
                return wrong[0]
            documents = library.get(map(str, range(60)))
            if any(f"document {each.id} version {each.metadata['version']} " not in each.text for each in documents):
                return "half a document"
            try:
                self.expected.compare({each.id: each.metadata["version"] for each in documents}, begun)
            except AssertionError as error:
                return str(error)
            hits = library.search("document", k=60)
        return None if {hit.id for hit in hits} == set(self.expected.documents) else "search finds other documents"


class SaveJob:
    """Saves a model under ever new names; each is there whole or not at all."""

    pause = 0.5

    def __init__(self, folder: Path, model: Path) -> None:
        from tests.trust import looks

        import munjang.models.sentence_encoder  # noqa: F401 - before forking, so that no child has to

        self.folder, self.model, self.looks = folder, model, looks
        shutil.copytree(model, folder / "good/model")
        self.good: str | None = None

    def work(self, turn: int, say: Say) -> None:
        from munjang.models.sentence_encoder import SentenceEncoder

        model = SentenceEncoder.load(self.model, threads=1)
        for number in itertools.count():
            place = self.folder / f"turn-{turn}-{number}"
            place.mkdir()
            say(begin=place.name)
            model.save(place / "model")
            say(end=place.name)

    def check(self, lines: list[dict[str, Any]]) -> str | None:
        self.good = self.good or self.looks.look_model(self.folder / "good")
        for name in {line.get("begin") or line["end"] for line in lines}:
            is_there = (self.folder / name / "model").exists()
            if not is_there and {"end": name} in lines:
                return f"{name} was acknowledged and is not there"
            if is_there and self.looks.look_model(self.folder / name) != self.good:
                return f"{name} is not the model that was saved"
            shutil.rmtree(self.folder / name)
        return None


class GraphJob:
    """Writes one entry of the graph cache again and again; a reader finds one of them or none."""

    pause = 0.2

    def __init__(self, folder: Path, _model: Path) -> None:
        from tests.trust import looks, writers

        self.folder, self.looks, self.writer = folder, looks, writers.graph_writer()
        self.right = {looks.ABSENT}
        for write in (self.writer.old, self.writer.write):
            write(folder)
            self.right.add(looks.look_graph(folder))

    def work(self, turn: int, say: Say) -> None:
        for number in itertools.count():
            say(begin=number)
            (self.writer.old if number % 2 else self.writer.write)(self.folder)
            say(end=number)

    def check(self, lines: list[dict[str, Any]]) -> str | None:
        return None if self.looks.look_graph(self.folder) in self.right else "an entry that nobody wrote"


class BulkJob:
    """Encodes a file in shards, killed and resumed; the output is that of an undisturbed run."""

    rows = 400

    def __init__(self, folder: Path, model: Path) -> None:
        import pyarrow.parquet  # noqa: F401 - before forking, so that no child has to
        from tests.bulk.conftest import write_jsonl

        import munjang.bulk.run
        import munjang.models.sentence_encoder  # noqa: F401

        self.folder, self.model, self.round = folder, model, 0
        self.source = write_jsonl(folder / "news.jsonl", self.rows)
        self.clean: dict[str, str] | None = None

    def work(self, turn: int, say: Say) -> None:
        from tests.trust.bulk_writers import described, do_job

        from munjang.models.sentence_encoder import SentenceEncoder

        model = SentenceEncoder.load(self.model, threads=1)
        do_job(described(self.source, model), self.folder / f"out-{self.round}", model)
        say(end="job")

    def check(self, lines: list[dict[str, Any]]) -> str | None:
        from tests.bulk.conftest import digest

        from munjang.bulk.output import open_output

        if not lines:
            return None
        place = self.folder / f"out-{self.round}"
        self.round += 1  # done: the next kills are of another run
        if wrong := open_output(place).check():
            return wrong[0]
        self.clean = self.clean or digest(place)
        return None if digest(place) == self.clean else "the output differs from an undisturbed run"


class TrainingJob:
    """Trains a tiny model, killed and resumed; weights and log are those of an undisturbed run, byte for byte."""

    def __init__(self, folder: Path, _model: Path) -> None:
        import accelerate  # noqa: F401 - before forking, so that no child has to
        import torch
        from tests.train.conftest import sentence_pairs
        from transformers import AutoModel, BertModel, PreTrainedTokenizerFast  # noqa: F401

        import munjang.train.save_and_report  # noqa: F401

        torch.set_num_threads(1)
        lines = ["sentence1\tsentence2\tscore", *(f"{a}\t{b}\t{score}" for a, b, score in sentence_pairs(96))]
        (folder / "pairs.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.folder, self.round = folder, 0
        self.clean: list[str] | None = None

    def work(self, turn: int, say: Say) -> None:
        from munjang.train import train
        from munjang.train.recipe import make_recipe

        data = {"path": "pairs.tsv", "label_range": [0, 5]}
        stage = {
            "objective": "regression",
            "steps": 60,
            "batch_size": 16,
            "learning_rate": 1e-3,
            "data": [data],
            "dev": data,
            "evaluate_every": 9,
        }
        scratch = {"vocabulary": 200, "layers": 2, "width": 32, "heads": 2, "inner": 64, "positions": 64}
        output = f"out-{self.round}"
        values = {"output": output, "seed": 7, "checkpoint_every": 2, "model": {"scratch": scratch}, "stage": [stage]}
        resume = (self.folder / output / "training/recipe.json").is_file()
        train(make_recipe(values, folder=self.folder), resume=resume)
        say(end="training")

    def check(self, lines: list[dict[str, Any]]) -> str | None:
        from munjang.train.durable import hash_file

        if not lines:
            return None
        place = self.folder / f"out-{self.round}"
        self.round += 1
        found = [hash_file(place / name) for name in ("model.safetensors", "training/log.jsonl", "tokenizer.json")]
        self.clean = self.clean or found
        return None if found == self.clean else "weights or log differ from an undisturbed run"


JOBS: dict[str, Callable[[Path, Path], Any]] = {
    "library": LibraryJob,
    "model save": SaveJob,
    "graph cache": GraphJob,
    "bulk job": BulkJob,
    "training": TrainingJob,
}
