"""Which commands there are: a table, so that `munjang --help` names them all without importing any.

A new command is one file with a typer `app` in it and one line here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A command: its name, the file it lives in, and its help in one line."""

    name: str
    module: str
    help: str


COMMANDS = (
    Entry("encode", "munjang.cli.encode", "Turn a file of texts into vectors."),
    Entry("similar", "munjang.cli.similar", "Say how alike two sentences are, or every line of a file with every line of another."),
    Entry("add", "munjang.cli.add", "Add documents to a library, or bring it up to date."),
    Entry("search", "munjang.cli.search", "Find the documents of a library that answer a question."),
    Entry("remove", "munjang.cli.remove", "Remove documents from a library by their ids."),
    Entry("info", "munjang.cli.info", "Show what a library is and holds."),
    Entry("check", "munjang.cli.check", "Read everything in a library and compare it with its checksums."),
    Entry("reencode", "munjang.cli.reencode", "Encode every document of a library anew."),
    Entry("copy", "munjang.cli.copy", "Copy a library's documents with their vectors to another library."),
    Entry("rerank", "munjang.cli.rerank", "Order texts by how well they answer a query, with a cross-encoder."),
    Entry("pairs", "munjang.cli.pairs", "Find texts of nearly the same meaning in one file or library."),
    Entry("match", "munjang.cli.match", "Find the best counterpart of each text of one file in another."),
    Entry("keywords", "munjang.cli.keywords", "Find the phrases of each text that say what it is about."),
    Entry("cluster", "munjang.cli.cluster", "Put the texts of a file into clusters and name them by their key phrases."),
    Entry("topics", "munjang.cli.topics", "Find what a file of texts is about, and ask saved topics."),
    Entry("map", "munjang.cli.map", "Draw the texts of a file as points on a page, near ones near each other."),
    Entry("inspect", "munjang.cli.inspect", "Show what a model sees in a sentence, or what makes two sentences alike."),
    Entry("train", "munjang.cli.train", "Train a model by a recipe."),
    Entry("adapt", "munjang.cli.adapt", "Make a model at home in a domain, from plain text alone."),
    Entry("distill", "munjang.cli.distill", "Teach a student a teacher's vectors."),
    Entry("mine", "munjang.cli.mine", "Find hard negatives for pairs of texts."),
    Entry("augment", "munjang.cli.augment", "Let a cross-encoder label pairs for a sentence encoder to learn from."),
    Entry("ablate", "munjang.cli.ablate", "Compare poolings, objectives and concatenations, as the paper's Table 6 does."),
    Entry("evaluate", "munjang.cli.evaluate", "Score a model on a labelled data set."),
    Entry("compare", "munjang.cli.compare", "Say which of two models is better on a data set, and whether that could be chance."),
    Entry("calibrate", "munjang.cli.calibrate", "Say what a score means on your own labelled pairs."),
    Entry("lint", "munjang.cli.lint", "Find what is wrong in a data file, or between a training and a test file."),
    Entry("bulk", "munjang.cli.bulk", "Encode files larger than memory into a folder of vectors."),
    Entry("serve", "munjang.cli.serve", "Serve vectors, scores, libraries and analyses over HTTP."),
    Entry("compress", "munjang.cli.compress", "Make a model smaller, step by step, and say what each step costs."),
    Entry("export", "munjang.cli.export", "Write a model as one ONNX graph and check that it gives the same vectors."),
    Entry("models", "munjang.cli.models", "List, show, check and fetch models."),
    Entry("bench", "munjang.cli.bench", "Measure speed on this machine."),
    Entry("demo", "munjang.cli.demo", "Search a small collection in Korean and English."),
    Entry("doctor", "munjang.cli.doctor", "Check the installation, and say what to do."),
    Entry("completion", "munjang.cli.completion", "Print the script that lets a shell complete commands and options."),
)


def find(name: str) -> Entry | None:
    """Return the command of that name, or None."""
    return next((entry for entry in COMMANDS if entry.name == name), None)
