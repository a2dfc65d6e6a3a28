"""Which commands there are: a table, so that `munjang --help` names them all without importing any, not even the parser.

A new command is a function in the typer `app` of its file, and one line here.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

COMPLETION_REQUEST = "_MUNJANG_COMPLETE"
"""Set in the environment by a shell that asks for completions."""


class CommandEntry(NamedTuple):
    """A command: its name, the module it lives in, and its help in one line of at most 66 characters."""

    name: str
    module: str
    help: str


GROUPS = {
    "Prepare": (
        CommandEntry("encode", "munjang.cli.encode", "Encode a file of texts as vectors."),
        CommandEntry("add", "munjang.cli.add", "Add documents to a library or update it."),
        CommandEntry("text", "munjang.cli.text", "Print the text of documents, as munjang add reads it."),
        CommandEntry("remove", "munjang.cli.maintain", "Remove documents from a library by id."),
        CommandEntry("reencode", "munjang.cli.maintain", "Re-encode every document of a library."),
        CommandEntry("index", "munjang.cli.index", "Build what searches of a library use."),
        CommandEntry("tune", "munjang.cli.tune", "Choose how much words and token vectors weigh in searches."),
        CommandEntry("copy", "munjang.cli.maintain", "Copy documents and vectors from one library to another."),
        CommandEntry("lint", "munjang.cli.lint", "Find problems in a data file, or leaks between two."),
    ),
    "Search": (
        CommandEntry("search", "munjang.cli.search", "Search a library by meaning and words."),
        CommandEntry("rerank", "munjang.cli.rerank", "Rank texts by how well they answer a query."),
        CommandEntry("similar", "munjang.cli.similar", "Score how similar two sentences, or two files of them, are."),
    ),
    "Analyse": (
        CommandEntry("pairs", "munjang.cli.pairs", "Find texts that mean nearly the same."),
        CommandEntry("match", "munjang.cli.match", "Match each text of one file to its counterpart in another."),
        CommandEntry("score", "munjang.cli.score", "Score or label the pairs of a file, with any model."),
        CommandEntry("keywords", "munjang.cli.keywords", "Extract the key phrases of each text."),
        CommandEntry("morphs", "munjang.cli.morphs", "Split Korean into sentences and morphemes, with tags and lemmas."),
        CommandEntry("cluster", "munjang.cli.cluster", "Cluster texts and label the clusters with key phrases."),
        CommandEntry("topics", "munjang.cli.topics", "Find the topics of a collection, and query a saved topic model."),
        CommandEntry("classify", "munjang.cli.classify", "Label texts by the names of labels, or by examples."),
        CommandEntry("map", "munjang.cli.map", "Draw texts as an interactive map, similar ones close together."),
    ),
    "Train": (
        CommandEntry("train", "munjang.cli.train", "Train a model from a recipe."),
        CommandEntry("adapt", "munjang.cli.adapt", "Adapt a model to a domain, from plain text alone."),
        CommandEntry("distill", "munjang.cli.distill", "Train a student to reproduce a teacher's vectors."),
        CommandEntry("compress", "munjang.cli.compress", "Make a model smaller, and measure what each step costs."),
        CommandEntry("mine", "munjang.cli.mine", "Mine hard negatives for pairs of texts."),
        CommandEntry("augment", "munjang.cli.augment", "Label pairs with a cross-encoder (Augmented SBERT)."),
        CommandEntry("ablate", "munjang.cli.ablate", "Compare poolings and objectives, as in the paper's Table 6."),
    ),
    "Evaluate": (
        CommandEntry("evaluate", "munjang.cli.evaluate", "Score a model on a labelled data set."),
        CommandEntry("compare", "munjang.cli.compare", "Compare two models on a data set, with a significance test."),
        CommandEntry("calibrate", "munjang.cli.calibrate", "Find out what a score means on your own labelled pairs."),
        CommandEntry("bench", "munjang.cli.bench", "Measure speed on this machine."),
    ),
    "Run": (
        CommandEntry("serve", "munjang.cli.serve", "Serve models, libraries and analyses over HTTP."),
        CommandEntry("mcp", "munjang.cli.mcp", "Serve libraries to language models (Model Context Protocol)."),
        CommandEntry("bulk", "munjang.cli.bulk", "Encode files larger than memory into a folder of vectors."),
        CommandEntry("export", "munjang.cli.export", "Export a model as one verified ONNX graph."),
        CommandEntry("demo", "munjang.cli.demo", "Search a small sample collection in Korean and English."),
    ),
    "Look": (
        CommandEntry("info", "munjang.cli.maintain", "Show what a library contains and how it was made."),
        CommandEntry("check", "munjang.cli.maintain", "Verify a library against its checksums."),
        CommandEntry("inspect", "munjang.cli.inspect", "Show a sentence's tokens, or why two sentences are similar."),
        CommandEntry("models", "munjang.cli.models", "List, show, check and download models."),
        CommandEntry("doctor", "munjang.cli.doctor", "Check the installation and say what to fix."),
        CommandEntry("completion", "munjang.cli.completion", "Print the completion script for bash, zsh or fish."),
    ),
}
"""The commands by what they are for, in the order in which help lists them."""

COMMANDS = tuple(entry for entries in GROUPS.values() for entry in entries)


def find(name: str) -> CommandEntry | None:
    """Return the command of that name, or None."""
    return next((entry for entry in COMMANDS if entry.name == name), None)


def help_page() -> str:
    """Return what `munjang --help` prints."""
    listed = (f"{title}:\n" + "\n".join(f"  {name:<10}  {text}" for name, _, text in entries) for title, entries in GROUPS.items())
    return "\n\n".join((_INTRODUCTION, *listed))


_INTRODUCTION = """\
Usage: munjang [OPTIONS] COMMAND [ARGS]...

  Encode sentences as vectors; search and analyse them; train models (문장).

  Every command has --help with examples and --json for scripts.
  "-" stands for standard input.

Options:
  --version  Print the version.
  --help     Show this message and exit."""


def load_command(entry: CommandEntry) -> Any:
    """Import a command, for the parser; a file may have several."""
    from typer.main import get_command

    found = get_command(import_module(entry.module).app)
    return getattr(found, "commands", {}).get(entry.name, found)
