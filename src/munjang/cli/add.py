"""`munjang add`: files of texts, documents, folders of both, and folders that `munjang bulk` wrote → documents in a library.

A library asks its encoder for vectors. `KnownVectors` answers from a folder of `munjang bulk` where it can: a text that is one passage has
its vector there; a longer text is split by the library and its passages are encoded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from munjang.bulk.output import BulkOutput, is_output, open_output
from munjang.cli.document_files import DocumentIntake, FileCounts, list_folder, snapshot
from munjang.cli.library_files import LibraryArgument, open_with_model, own_model, read_all
from munjang.cli.options import Chosen, Columns, JsonOption, ModelChoice, Takes, examples, new_app
from munjang.cli.row_files import no_text
from munjang.cli.show import emit, note, print_facts
from munjang.cli.text_analysis import DictionaryOption
from munjang.documents.reader_process import DocumentReader
from munjang.errors import InputError, MissingExtra, UsageError, quote
from munjang.library.indexing import AddReport
from munjang.library.library import Library
from munjang.library.store import Settings
from munjang.models.prompted_encoder import PromptedEncoder
from munjang.models.registry import resolve
from munjang.text.dictionary import read_dictionary
from munjang.text.records import BadLines, Record
from munjang.types import SkippedTokens
from munjang.vectors.maxsim import DEFAULT_FORMAT

if TYPE_CHECKING:
    from munjang.types import Vectors

WATCH_SECONDS = 2.0
"""Between two looks at the files."""

app = new_app()


@app.command(
    epilog=examples(
        "munjang add news.db news.csv",
        "munjang add news.db 2024.jsonl 2025.jsonl --text-column body --id-column url",
        "munjang add notes.db notes/  (PDF, Word, HWP and more, mixed with texts and tables)",
        "munjang add notes.db notes/ --watch",
        "munjang add papers.db papers.jsonl --late",
        "munjang add news.db --from-bulk vectors/  (texts with their vectors: nothing is encoded again)",
        "cat lines.txt | munjang add lines.db -",
    )
)
def add(
    library: LibraryArgument,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE…",
            help='txt (one text per line), csv, tsv, jsonl, json, parquet; a document such as pdf or hwp; a folder; "-" is standard input.',
        ),
    ] = None,
    *,
    from_bulk: Annotated[
        list[str] | None,
        typer.Option(help="Add the texts and vectors of this folder, or fsspec address, that munjang bulk wrote; may be repeated."),
    ] = None,
    columns: Columns,
    options: Annotated[Chosen, Takes(Library.open)],
    late: Annotated[bool, typer.Option("--late", help="Short for --token-vectors 1bit.")] = False,
    dictionary: DictionaryOption = None,
    analyser: Annotated[
        Literal["kiwi", "bigrams", "mecab", "okt", "komoran"] | None,
        typer.Option("--analyser", help="What splits Korean words of a new library: kiwi, bigrams, or mecab, okt, komoran if installed."),
    ] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Count broken lines and go on.")] = False,
    prune: Annotated[bool, typer.Option("--prune", help="Remove documents whose files are no longer in the folders given.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Keep the library up to date with the folders given, until interrupted.")] = False,
    chosen_model: ModelChoice,
    as_json: JsonOption = False,
) -> None:
    """Add documents to a library or update it.

    Only new and changed texts are encoded, and unchanged files are not read again. PDF, Word, PowerPoint, Excel, OpenDocument, HTML,
    Markdown, EPUB, RTF, e-mail and HWP files (extra documents) become one document per section, with page, slide or sheet and headings.
    Each batch is on disk before the next begins; the same command continues an interrupted add.
    """
    files = [*(files or ()), *(open_output(folder).storage.place for folder in from_bulk or ())]
    if not files:
        raise UsageError("there is nothing to add, expected files, folders, or --from-bulk")
    if (prune or watch) and not any(Path(name).is_dir() for name in files):
        raise UsageError(f"{'--watch' if watch else '--prune'} needs a folder, found {', '.join(map(quote, files[:3]))}")
    own_words = None if dictionary is None else read_dictionary(dictionary)
    bulk_model, made = find_bulk_model(files)
    with (
        DocumentReader() as reader,
        open_with_model(
            library,
            chosen_model.model or bulk_model,
            compute=chosen_model.compute,
            create=True,
            new=made,
            analyser=analyser,
            **(options | ({"token_vectors": options["token_vectors"] or DEFAULT_FORMAT} if late else {})),
        ) as opened,
    ):
        if own_words is not None:
            opened.use_dictionary(own_words)
        while True:
            before = snapshot(files) if watch else {}
            try:
                _show(_add_once(opened, reader, files, columns, skip_bad=skip_bad, prune=prune or watch), as_json=as_json)
            except BaseException as error:
                if watch and isinstance(error, InputError):  # a file may be broken for a while
                    note(str(error))
                else:
                    opened.discard_new()  # a first add that stores nothing leaves no library behind
                    raise
            if not watch:
                break
            wait_for_change(files, before)


@dataclass(frozen=True)
class AddOutcome:
    """What one pass over the files did."""

    report: AddReport
    files: FileCounts
    bad: BadLines | None
    documents: int


def _add_once(
    opened: Library, reader: DocumentReader, files: Sequence[str], columns: Columns, *, skip_bad: bool, prune: bool
) -> AddOutcome:
    from munjang.models.progress import progress_bar

    bad = BadLines() if skip_bad else None
    intake = DocumentIntake(opened, reader)
    with progress_bar("add", None, shown=True) as advance:
        report = opened.add(read_with_vectors(opened, files, columns, bad=bad, intake=intake), progress=advance, bad=bad)
    intake.drop_stale()
    if prune:
        for folder in (Path(name) for name in files if Path(name).is_dir()):
            intake.prune(folder, {name for _, name in list_folder(folder)})
    if not report.records and not intake.counts.unchanged and not intake.counts.removed:
        raise InputError(intake.counts.first) if intake.counts.first else no_text(files, bad)
    info = opened.info()
    _prepare(opened, info.passages)
    return AddOutcome(report, intake.counts, bad, info.documents)


def wait_for_change(files: Sequence[str], before: Mapping[str, object], *, wait: Callable[[float], None] = time.sleep) -> None:
    """Return when the files named, or those below folders named, are not what they were, and have been still for one look."""
    while (now := snapshot(files)) == before:
        wait(WATCH_SECONDS)
    while True:  # whoever writes a large file is not done yet
        wait(WATCH_SECONDS)
        later = snapshot(files)
        if later == now:
            return
        now = later


def _show(outcome: AddOutcome, *, as_json: bool) -> None:
    report, files, bad = outcome.report, outcome.files, outcome.bad
    for message in bad.first if bad else ():
        note(f"skipped {message}")
    skipped = bad.count if bad else 0
    if as_json:
        counts = {name: getattr(files, name) for name in ("read", "unchanged", "broken", "scanned", "removed")}
        found = {"files": counts} if files.seen or files.removed else {}
        emit({**asdict(report), "seconds": round(report.seconds, 3), "documents": outcome.documents, "skipped": skipped, **found})
        return
    print_facts(
        [
            *([("files", _say_files(files))] if files.seen or files.removed else []),
            ("added", f"{report.added:,}"),
            ("changed", f"{report.changed:,}"),
            ("other metadata", f"{report.relabelled:,}"),
            ("unchanged", f"{report.unchanged:,}"),
            *([("same id twice", f"{report.replaced:,} (the last one counts)")] if report.replaced else []),
            ("skipped", f"{skipped:,}"),
            ("documents now", f"{outcome.documents:,}"),
            ("seconds", f"{report.seconds:.2f} ({report.records / max(report.seconds, 1e-9):,.0f} records/s)"),
        ]
    )


def _say_files(files: FileCounts) -> str:
    said = f"{files.read:,} read, {files.unchanged:,} unchanged, {files.broken:,} not read"
    scans = f" ({files.scanned:,} scans)" if files.scanned else ""
    return f"{said}{scans}" + (f", {files.removed:,} removed" if files.removed else "")


def _prepare(library: Library, passages: int) -> None:
    from munjang.models.progress import progress_bar

    try:
        with progress_bar("index", passages, shown=True) as advance:
            library.prepare(progress=advance)
    except MissingExtra as error:
        note(f"searching stays exact: {error}")


def find_bulk_model(files: Sequence[str]) -> tuple[str | None, Settings | None]:
    """Return the model that the first such folder's vectors were made with, and how a new library for them is made; else nothing."""
    folder = next((name for name in files if is_output(name)), None)
    if folder is None:
        return None, None
    job = open_output(folder).job
    model = job.model
    made = Settings(model.name, model.fingerprint, model.dimension, "", 0, 0, compute=job.settings.compute, pooling=job.settings.pooling)
    return (None if _is_found_by_name(folder, made, model.path) else model.path if Path(model.path).is_dir() else model.name), made


def _is_found_by_name(folder: str, made: Settings, path: str) -> bool:
    """Say whether the model's name still leads to the folder that it had."""
    try:
        return resolve(own_model(folder, made)).path.resolve() == Path(path)
    except UsageError:
        return False


class KnownVectors:
    """An Encoder that knows the vectors of some texts and lets a model encode the others."""

    def __init__(self, model: PromptedEncoder) -> None:
        self.model = model
        self.name, self.dimension, self.fingerprint, self.max_length = model.name, model.dimension, model.fingerprint, model.max_length
        self._known: list[dict[str, Vectors]] = []

    def learn(self, texts: list[str], vectors_ND: Vectors) -> None:
        """Know the vectors of one shard, and of the one before it: a library's batch may reach over both."""
        self._known = [*self._known[-1:], dict(zip(texts, np.asarray(vectors_ND, dtype=np.float32), strict=True))]

    def count_tokens(self, texts: Iterable[str], /) -> list[int]:
        """Return how many tokens each text has."""
        return self.model.count_tokens(texts)

    def encode(self, texts: Iterable[str], /) -> Vectors:
        """Return one row per text."""
        wanted = list(texts)
        found = [next((known[text] for known in reversed(self._known) if text in known), None) for text in wanted]
        unknown = [text for text, vector_D in zip(wanted, found, strict=True) if vector_D is None]
        fresh = iter(self.model.encode(unknown)) if unknown else iter(())
        rows = [next(fresh) if vector_D is None else vector_D for vector_D in found]
        return np.stack(rows) if rows else np.zeros((0, self.dimension), np.float32)

    def encode_with_tokens(
        self, texts: Iterable[str], /, *, keep: Callable[[Vectors], Any], skip: Collection[SkippedTokens] = ()
    ) -> tuple[Vectors, list[Any]]:
        """Return vectors and token rows of the model, which has to read the texts for these."""
        return self.model.encode_with_tokens(texts, keep=keep, skip=skip)

    def token_places(self, text: str, /, *, skip: Collection[SkippedTokens] = ()) -> list[tuple[int, int]]:
        """Return which characters of a text stand behind each token row."""
        return self.model.token_places(text, skip=skip)


def read_with_vectors(
    library: Library, files: Sequence[str], columns: Columns, *, bad: BadLines | None, intake: DocumentIntake
) -> Iterator[Record]:
    """Return the records of files and folders; the library's encoder gets to know the vectors of folders that `munjang bulk` wrote."""
    folders = [name for name in files if is_output(name)]
    if not folders:
        return read_all(files, columns, bad=bad, intake=intake)
    assert isinstance(library.encoder, PromptedEncoder)  # what open_with_model gives it
    known = KnownVectors(library.encoder)
    for folder in folders:
        _refuse_other(known, open_output(folder), folder)
    library.encoder = known
    return _records(known, files, columns, bad, intake)


def _records(known: KnownVectors, files: Sequence[str], columns: Columns, bad: BadLines | None, intake: DocumentIntake) -> Iterator[Record]:
    for name in files:
        if not is_output(name):
            yield from read_all([name], columns, bad=bad, intake=intake)
            continue
        for block in open_output(name).blocks():
            if block.texts:
                known.learn(block.texts, block.vectors_ND)
                yield from (Record(id, text, {}, f"{name} {quote(id)}") for id, text in zip(block.ids, block.texts, strict=True))


def _refuse_other(known: KnownVectors, output: BulkOutput, folder: str) -> None:
    """Refuse vectors that are not those the library's model would give."""
    settings, model = output.job.settings, output.job.model
    if not settings.keep_text:
        raise UsageError(f"{folder}: holds vectors without texts, which a library needs\n  make it again with munjang bulk --keep-text")
    prompt = f"{model.fingerprint} {settings.prompt_name}" if settings.prompt_name else model.fingerprint
    for what, found, wanted in (
        ("model", prompt, known.fingerprint),
        ("precision", settings.precision, "float32"),
        ("dimension", model.dimension, known.dimension),
    ):
        if found != wanted:
            raise UsageError(
                f"{folder}: its {what} is {found}, the library's is {wanted}\n  choose what the library has, or add the texts themselves"
            )
