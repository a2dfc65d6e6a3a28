"""The sentence encoder's `Task`: a stage with its objectives and teacher, dev sets of vectors, the saved folder, how the vectors lie.

Everything that is prepared follows from recipe, data and seed, so a resumed run makes the same stage again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from munjang.engine.folder import PAIR_CLASSIFIER, fingerprint_encoder, read_folder
from munjang.engine.modules import DenseModule, LayerNormModule, Module, NormalizeModule, PoolingModule, TransformerModule
from munjang.engine.pair_head import write_pair_head
from munjang.engine.write_folder import write_modules
from munjang.errors import InputError, UsageError
from munjang.models.registry import resolve
from munjang.report.training_words import TrainingWord
from munjang.report.words import Message, WordTable
from munjang.train.adapt.mlm import Mlm
from munjang.train.adapt.text_objective import SimCse
from munjang.train.adapt.tsdae import Tsdae
from munjang.train.build import build_encoder
from munjang.train.dev import Evaluation, Role, find_kept_classifier, list_classifiers, read_dev
from munjang.train.distill.teacher_targets import TeacherLabels, TeacherTargets, prepare_targets
from munjang.train.encoder import Dense, Normalize, TailNorm, TrainableEncoder
from munjang.train.examples import VECTOR_FILES, DataShape, DataSource, Example, ExampleSet, TeacherRecipe, read_examples
from munjang.train.load_folder import load_encoder, quiet_transformers
from munjang.train.objectives.base import Objective
from munjang.train.objectives.registry import OBJECTIVES, ObjectiveChoice, choose_objective, make_objective
from munjang.train.recipe import Recipe, StageRecipe
from munjang.train.report import PAIRS, Spread, find_middle
from munjang.train.sampling import Sampled
from munjang.train.stage import PADDED_WINDOW, Stage, StageData, TokenTable, describe_notes, describe_rows
from munjang.types import Encoder
from munjang.vectors.similarity import similarity_pairwise

TEXT_OBJECTIVES: dict[str, type[Objective]] = {kind.name: kind for kind in (Mlm, Tsdae, SimCse)}
"""These learn from rows of one text without a label."""
AskTeacher: TypeAlias = Callable[[TeacherRecipe, Sequence[str]], TeacherTargets]
"""Asks a teacher for its vectors of texts."""


@dataclass
class SentenceTask:
    """Trains an encoder of sentences; a teacher's vectors are kept in `folder`."""

    model: TrainableEncoder
    folder: Path
    marker_file = "modules.json"
    labels = ()

    @classmethod
    def build(cls, recipe: Recipe, *, keep: Path) -> SentenceTask:
        """Make the encoder that a recipe starts from."""
        return cls(build_encoder(recipe, keep=keep), keep)

    @property
    def max_length(self) -> int:
        """At how many tokens a text is cut."""
        return self.model.text.max_length

    @property
    def pooling(self) -> str:
        """The poolings' names."""
        return " + ".join(self.model.modes)

    def prepare(self, recipe: StageRecipe, *, number: int, seed: int, show: Callable[[str], None]) -> Stage:
        """Read, tokenise and plan one stage; `show` gets how far a teacher is."""
        ask = partial(prepare_targets, student=self.model, folder=self.folder / "teacher", show=show)
        stage = prepare_stage(recipe, self.model, number=number, seed=seed, ask_teacher=ask)
        if find_kept_classifier(stage) is not None:
            stage.messages.append(Message(TrainingWord.CLASSIFIER_KEPT, folder=PAIR_CLASSIFIER))
        return stage

    def read_dev(self, source: DataSource, role: Role, stage: Stage) -> Callable[[], Evaluation]:
        """Read a dev or test file, measured by the cosine or by the stage's classifier."""
        return partial(read_dev(source, seed=stage.seed, classifiers=list_classifiers(stage), role=role).score, self.model)

    def measure_spread(self, data: ExampleSet, *, seed: int) -> Spread:
        """Return the cosines of a sample of rows."""
        return measure_spread(self.model, data.examples, seed=seed)

    def list_facts(self) -> list[tuple[WordTable, object]]:
        """Return dimension and pooling."""
        return [(TrainingWord.DIMENSION, f"{self.model.dimension:,}"), (TrainingWord.POOLING, self.pooling)]

    def save(self, target: Path, last: Stage) -> None:
        """Write a sentence-transformers folder, and in it the classifier that the last stage keeps."""
        save_encoder(self.model, target)
        kept = find_kept_classifier(last)
        if kept is not None:
            write_pair_head(kept.to_head(fingerprint_encoder(read_folder(target))), target / PAIR_CLASSIFIER)


def prepare_stage(
    recipe: StageRecipe,
    encoder: TrainableEncoder,
    *,
    number: int,
    seed: int,
    ask_teacher: AskTeacher | None = None,
    choose: Callable[[DataShape], ObjectiveChoice] = choose_objective,
) -> Stage:
    """Read, tokenise and plan one stage; heads are initialised from the seed.

    `ask_teacher` asks the recipe's teacher for its vectors, `choose` says the objective of data for which the recipe names none.
    """
    torch.manual_seed(seed * 1000 + number)
    sets = [read_examples(source, seed=seed) for source in recipe.data]
    table = TokenTable((text for found in sets for example in found.examples for text in example.texts), encoder.tokens)
    objectives: list[Objective] = []
    messages: list[str] = list(encoder.messages) if number == 0 else []
    chosen: list[int] = []
    known: dict[object, int] = {}
    for source, found in zip(recipe.data, sets, strict=True):
        key = (source.objective, source.teacher, repr(source.settings), found.classes, found.label_kind, found.columns)
        if key not in known:
            _refuse_misfit(_name_objective(recipe, source), found)
            made, why = _make_objective(recipe, source, found, encoder.dimension, choose)
            made.attach(encoder, table.find_used_pieces().tolist())
            if made.needs_teacher_model:
                made.attach_teacher(_load_teacher_model(source.teacher or recipe.teacher, found), encoder)
            known[key] = len(objectives)
            objectives.append(made)
            messages.append(describe_rows(found, made, why))
        else:
            messages.append(Message(TrainingWord.ROWS_AS_ABOVE, file=found.source, count=len(found)))
        messages += describe_notes(found)
        chosen.append(known[key])
    _refuse_idle_teachers(recipe, sets, [objectives[at].label_kind == "vectors" or objectives[at].needs_teacher_model for at in chosen])
    sources = [_list_sources(found, objectives[at]) for found, at in zip(sets, chosen, strict=True)]
    taught = _ask_teachers(recipe, sets, sources, ask_teacher)
    messages += [line for targets in {id(targets): targets for targets in taught if targets}.values() for line in targets.messages]
    data = [
        StageData(found, _make_labels(found, objectives[at], texts, targets), at, _make_sampled(found, objectives[at], table))
        for found, at, texts, targets in zip(sets, chosen, sources, taught, strict=True)
    ]
    window = recipe.length_window if recipe.length_window is not None else (0 if encoder.is_packed else PADDED_WINDOW)
    return Stage(recipe, number, seed, data, objectives, table, messages, window)


def _list_sources(found: ExampleSet, objective: Objective) -> list[tuple[str, ...]]:
    """Return the texts of each row that a teacher is asked for; none where the objective learns no vectors."""
    if objective.label_kind != "vectors":
        return []
    return [example.texts if objective.learns_all_columns else example.texts[:1] for example in found.examples]


def _load_teacher_model(teacher: TeacherRecipe | None, found: ExampleSet) -> TrainableEncoder:
    """Load a teacher that runs beside the student."""
    if teacher is None:
        raise InputError(f'{found.source}: the objective learns a teacher\'s tokens, and the stage has none\n  add teacher = "…" to it')
    if teacher.model.endswith(VECTOR_FILES) or teacher.prompt is not None:
        raise UsageError(
            f"{found.source}: the objective learns a teacher's tokens, for which it runs beside the student\n"
            "  name the teacher's folder alone: no file of vectors, no prompt"
        )
    return load_encoder(resolve(teacher.model).path)


def _ask_teachers(
    recipe: StageRecipe, sets: Sequence[ExampleSet], sources: Sequence[Sequence[tuple[str, ...]]], ask_teacher: AskTeacher | None
) -> list[TeacherTargets | None]:
    """Return for each set that learns vectors those of its teacher; each teacher is asked once, for the texts of all its rows."""
    teachers = [source.teacher or recipe.teacher for source in recipe.data]
    by_teacher: dict[TeacherRecipe, list[str]] = {}
    for teacher, found, rows in zip(teachers, sets, sources, strict=True):
        if rows and (teacher is None or ask_teacher is None):
            raise InputError(
                f'{found.source}: the objective learns a teacher\'s vectors, and the stage has none\n  add teacher = "…" to it'
            )
        if rows and teacher is not None:
            by_teacher.setdefault(teacher, []).extend(text for row in rows for text in row)
    targets = {teacher: ask_teacher(teacher, texts) for teacher, texts in by_teacher.items() if ask_teacher is not None}
    return [targets[teacher] if rows and teacher else None for teacher, rows in zip(teachers, sources, strict=True)]


def _refuse_idle_teachers(recipe: StageRecipe, sets: Sequence[ExampleSet], learns: Sequence[bool]) -> None:
    for source, found, does_learn in zip(recipe.data, sets, learns, strict=True):
        if source.teacher is not None and not does_learn:
            raise UsageError(
                f"{found.source}: has a teacher, and its objective does not learn from one\n  leave the teacher out, or the objective"
            )
    needs_stage = any(does_learn and source.teacher is None for source, does_learn in zip(recipe.data, learns, strict=True))
    if recipe.teacher is not None and not needs_stage:
        raise UsageError("the stage has a teacher, and no objective of its data learns from one\n  leave the teacher out, or the objective")


def _name_objective(recipe: StageRecipe, source: DataSource) -> str | None:
    """Return the objective that the recipe names for a set; a teacher names distillation."""
    by_teacher = ("distillation" if source.teacher else None, "distillation" if recipe.teacher else None)
    return source.objective or by_teacher[0] or recipe.objective or by_teacher[1]


def _make_objective(
    recipe: StageRecipe, source: DataSource, found: ExampleSet, dimension: int, choose: Callable[[DataShape], ObjectiveChoice]
) -> tuple[Objective, str | None]:
    name = _name_objective(recipe, source)
    settings = source.settings if source.settings is not None else recipe.settings
    why = None
    if name in TEXT_OBJECTIVES:
        return TEXT_OBJECTIVES[name].build(settings, dimension=0, num_labels=None), why
    if name is None:
        choice = choose(found.shape())
        name, settings, why = choice.name, {**choice.settings, **settings}, choice.reason
    classes = len(found.classes) or None
    return make_objective(name, settings, dimension=dimension, num_labels=classes), why


def _refuse_misfit(name: str | None, found: ExampleSet) -> None:
    needed = OBJECTIVES[name].label_kind if name in OBJECTIVES else None
    fits = {"class": ("class", "binary"), "binary": ("binary",), "score": ("score", "binary"), "margins": ("margins",)}.get(str(needed), ())
    if needed not in (None, "vectors") and found.label_kind is not None and found.label_kind not in fits:
        raise InputError(
            f"{found.source}: labels are of kind {found.label_kind!r}, objective {name!r} needs {needed!r}\n"
            "  name another objective, or say label_range if the labels are scores"
        )


def _make_labels(
    found: ExampleSet, objective: Objective, sources: Sequence[tuple[str, ...]], taught: TeacherTargets | None
) -> Tensor | TeacherLabels | None:
    if objective.label_kind is None:
        return None
    if objective.label_kind == "vectors":
        assert taught is not None  # asked for just above
        return taught.get_labels(sources, all_columns=objective.learns_all_columns)
    if found.label_kind is None:
        raise InputError(f"{found.source}: has no labels, objective {objective.name!r} needs one of kind {objective.label_kind!r}")
    if objective.label_kind == "margins":
        return torch.tensor([example.scores for example in found.examples], dtype=torch.float32)
    kind = torch.long if objective.label_kind == "class" else torch.float32
    return torch.tensor([example.label for example in found.examples], dtype=torch.float32).to(kind)


def _make_sampled(found: ExampleSet, objective: Objective, table: TokenTable) -> Sampled:
    lengths = [sum(table.length(text) for text in example.texts) for example in found.examples]
    keys = None
    if objective.needs_no_duplicates:
        keys = [
            frozenset((*example.texts, ("group", example.group))) if example.group else frozenset(example.texts)
            for example in found.examples
        ]
    return Sampled(lengths, keys, least_rows=objective.least_rows)


def measure_spread(encoder: Encoder, examples: Sequence[Example], *, seed: int) -> Spread:
    """Return the cosines of a sample of rows, and of first texts with texts of other rows."""
    random = np.random.default_rng(seed)
    chosen = [examples[index] for index in sorted(random.permutation(len(examples))[:PAIRS].tolist())]
    firsts, seconds = [example.texts[0] for example in chosen], [example.texts[-1] for example in chosen]
    vectors = encoder.encode([*firsts, *seconds])
    left, right = vectors[: len(chosen)], vectors[len(chosen) :]
    cosines = similarity_pairwise(left, right, metric="cosine")
    # every row's second text with the first text of the row before: a partner by chance
    by_chance = similarity_pairwise(np.roll(left, 1, axis=0), right, metric="cosine") if len(chosen) > 1 else cosines[:0]
    middle = find_middle(chosen)
    if len(chosen[0].texts) == 1:  # a text alone has no partner
        return Spread((), (), tuple(float(value) for value in by_chance))
    high = [example.label is None or example.label >= middle for example in chosen]
    alike = tuple(float(value) for value, is_high in zip(cosines, high, strict=True) if is_high)
    unlike = tuple(float(value) for value, is_high in zip(cosines, high, strict=True) if not is_high)
    return Spread(alike, unlike, tuple(float(value) for value in by_chance))


def save_encoder(encoder: TrainableEncoder, target: Path) -> None:
    """Write the encoder as a sentence-transformers folder into an empty or new `target`; heads are not part of it."""
    target.mkdir(parents=True, exist_ok=True)
    encoder.train_all_rows()
    backbone: Any = encoder.backbone
    tokenizer = encoder.tokenizer
    tokenizer.model_max_length = encoder.text.max_length
    with quiet_transformers():
        backbone.save_pretrained(target, safe_serialization=True)
        tokenizer.save_pretrained(target)
    config = json.loads((target / "config.json").read_text(encoding="utf-8"))
    modules: list[Module] = [
        TransformerModule(target, config, encoder.text.max_length, encoder.text.lowercase),
        PoolingModule(encoder.modes),
    ]
    for module in encoder.tail:
        modules.append(_save_tail_module(module, target, len(modules)))
    write_modules(
        target,
        modules,
        width=int(backbone.config.hidden_size),
        max_length=encoder.text.max_length,
        lowercase=encoder.text.lowercase,
        prompts=encoder.prompts,
    )


def _save_tail_module(module: Any, target: Path, number: int) -> Module:
    from safetensors.torch import save_file

    if isinstance(module, Normalize):
        return NormalizeModule()
    folder = target / f"{number}_{'Dense' if isinstance(module, Dense) else 'LayerNorm'}"
    folder.mkdir(exist_ok=True)
    prefix = "norm." if isinstance(module, TailNorm) else ""
    save_file(
        {prefix + name: tensor.detach().cpu().contiguous() for name, tensor in module.state_dict().items()}, folder / "model.safetensors"
    )
    if isinstance(module, Dense):
        bias = module.linear.bias is not None
        return DenseModule(folder, module.in_features, module.out_features, bias, module.activation, module.residual_used)
    return LayerNormModule(folder, int(module.normalized_shape[0]))
