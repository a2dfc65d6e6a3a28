"""From a recipe to a folder: train, throw the head away (a cross-encoder keeps its own), save the model, write card and report.

In: a recipe. Out: a `TrainResult`, and in the output folder a sentence-transformers model, README.md and report.html. The model files are
written beside their place and moved in when they are whole; what the training needed stays under `training/`.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from munjang.engine.modules import DenseModule, LayerNormModule, Module, NormalizeModule, PoolingModule, TransformerModule
from munjang.engine.write_folder import write_modules
from munjang.report.words import Message, Word
from munjang.train.card import CardFacts, DataFact, ScoreFact, model_card
from munjang.train.cross import TrainableCrossEncoder
from munjang.train.cross_finish import measure_score_spread, save_cross_encoder
from munjang.train.diagnoses import Diagnosis, diagnose
from munjang.train.durable import write_folder
from munjang.train.encoder import TrainableEncoder
from munjang.train.guessing import guessing_of
from munjang.train.interrupt import Interrupted
from munjang.train.load_folder import quiet_transformers
from munjang.train.log import FinalEntry, TrainingLog
from munjang.train.loop import TRAINING, Outcome, Trainer
from munjang.train.progress import Live, Progress, Silent
from munjang.train.recipe import Recipe, read_recipe
from munjang.train.report import Spread, measure_spread, training_report
from munjang.train.tail import Dense, Normalize, TailNorm
from munjang.whole_file import sync
from munjang.wording import Language, brief_repr


@brief_repr
@dataclass(frozen=True)
class TrainResult:
    """What a training made: the folder, the log, the last dev scores (of the weights that were kept), and what was said on the way."""

    output: Path
    log: TrainingLog
    scores: dict[str, float]
    metric: str | None
    said: tuple[str, ...]
    diagnoses: tuple[Diagnosis, ...] = ()
    """What is wrong with the training, with what to try."""
    is_first: bool = True
    """False in the other processes of a common training: they wrote nothing and have nothing to show."""

    @property
    def warning(self) -> str | None:
        """All that is wrong, in one text; None where nothing is."""
        return " ".join(map(str, self.diagnoses)) or None

    @property
    def tests(self) -> Sequence[FinalEntry]:
        """The score of each stage that has a test file, of the weights that the stage kept."""
        return self.log.finals

    def to_json(self) -> dict[str, Any]:
        """Return the result for machines."""
        steps = len(self.log.steps)
        last = self.log.steps[-1].loss if steps else None
        return {
            "output": str(self.output),
            "steps": steps,
            "loss": last,
            "metric": self.metric,
            "scores": self.scores,
            "tests": [asdict(entry) for entry in self.tests],
            "said": list(self.said),
            "warning": self.warning,
            "diagnoses": [found.to_json() for found in self.diagnoses],
        }


def run(recipe: Recipe | Path | str, *, resume: bool = False, progress: Progress | None = None, language: Language = "en") -> TrainResult:
    """Train a recipe and save what came of it; `language` is the report's."""
    made = recipe if isinstance(recipe, Recipe) else read_recipe(recipe)
    with contextlib.ExitStack() as stack:
        listener = progress or (stack.enter_context(Live()) if sys.stderr.isatty() else Silent())
        trainer = Trainer(made, progress=listener, resume=resume)
        try:
            outcome = trainer.run()
            result = _save(made, outcome, language) if trainer.processes.is_first else None
        except Interrupted:
            raise
        except KeyboardInterrupt:
            raise trainer.interrupted() or KeyboardInterrupt from None
        for found in result.diagnoses if result else ():
            if (found.stage, found.kind) not in outcome.told:
                listener.said(f"warning: {found}")
        return _shared(trainer, outcome, result)


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
        modules.append(_described(module, target, len(modules)))
    write_modules(
        target,
        modules,
        width=int(backbone.config.hidden_size),
        max_length=encoder.text.max_length,
        lowercase=encoder.text.lowercase,
        prompts=encoder.prompts,
    )


def _described(module: Any, target: Path, number: int) -> Module:
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


def _save(recipe: Recipe, outcome: Outcome, language: Language) -> TrainResult:
    output = Path(recipe.output)
    encoder = outcome.encoder
    data = outcome.stages[-1].data[0].examples
    is_cross = isinstance(encoder, TrainableCrossEncoder)
    if isinstance(encoder, TrainableCrossEncoder):
        spread = measure_score_spread(encoder, data, seed=recipe.seed)
    else:
        spread = measure_spread(encoder, data.examples, seed=recipe.seed)
    result = _result(output, outcome, spread)
    facts = _facts(recipe, outcome, result)
    title = Message(Word.TRAINING_OF, name=output.name)
    sizes: list[tuple[Word, object]] = [(Word.DIMENSION, f"{facts.dimension:,}"), (Word.POOLING, facts.pooling)]
    shape = [(Word.LABELS, ", ".join(facts.labels))] if is_cross else sizes
    listed = [(Word.BASE, facts.base), *shape, *((Word.SETTING, line) for line in facts.settings)]
    named = [(Message(word), value) for word, value in listed]
    report = training_report(
        outcome.log, spread, title=title, said=outcome.said, facts=named, diagnoses=result.diagnoses, language=language
    )

    def fill(draft: Path) -> None:
        if isinstance(encoder, TrainableCrossEncoder):
            save_cross_encoder(encoder, draft)
        else:
            save_encoder(encoder, draft)
        (draft / "README.md").write_text(model_card(facts), encoding="utf-8")
        (draft / "report.html").write_text(report, encoding="utf-8")

    staged = output / TRAINING / "model"
    write_folder(staged, fill)
    # what makes the folder a model comes last
    last = "config.json" if is_cross else "modules.json"
    for path in sorted(staged.iterdir()):
        place = output / path.name
        if place.is_dir():
            shutil.rmtree(place)
        if path.name != last:
            path.replace(place)
    sync(output)
    (staged / last).replace(output / last)
    sync(output)
    staged.rmdir()
    return result


def _result(output: Path, outcome: Outcome, spread: Spread) -> TrainResult:
    """Return the result, with the scores of the weights that were kept: the last stage's best evaluation."""
    trained = [entry for entry in outcome.log.evaluations if entry.stage == len(outcome.stages) - 1 and entry.step > 0]
    keeps_best = bool(outcome.stages) and outcome.stages[-1].recipe.keep_best
    chosen = (max(trained, key=lambda entry: entry.score) if keeps_best else trained[-1]) if trained else None
    scores = dict(chosen.scores) if chosen else {}
    return TrainResult(output, outcome.log, scores, chosen.metric if chosen else None, outcome.said, _diagnoses(outcome, spread))


def _diagnoses(outcome: Outcome, spread: Spread) -> tuple[Diagnosis, ...]:
    """Return what is wrong with each stage, and with the model that came of them."""
    stages = outcome.stages
    found = [each for stage in stages for each in diagnose(outcome.log, stage.number, guessing=guessing_of(stage))]
    last = spread.diagnosis(len(stages) - 1)
    is_said = last is not None and any(each.kind == last.kind and each.stage == last.stage for each in found)
    return tuple([*found, last] if last is not None and not is_said else found)


def _facts(recipe: Recipe, outcome: Outcome, result: TrainResult) -> CardFacts:
    encoder = outcome.encoder
    data = [
        DataFact(
            found.examples.source, len(found.examples), stage.objectives[found.objective].name, stage.objectives[found.objective].describe()
        )
        for stage in outcome.stages
        for found in stage.data
    ]
    dev = recipe.stages[-1].dev
    return CardFacts(
        name=Path(recipe.output).name,
        base=Path(recipe.model.base).name if recipe.model.base else Message(Word.RANDOM_WEIGHTS),
        dimension=encoder.dimension,
        max_length=encoder.max_length if isinstance(encoder, TrainableCrossEncoder) else encoder.text.max_length,
        pooling=" + ".join(encoder.modes) if isinstance(encoder, TrainableEncoder) else "",
        labels=encoder.labels if isinstance(encoder, TrainableCrossEncoder) else (),
        data=data,
        dev=Path(dev.path).name if dev else None,
        scores=result.scores,
        metric=result.metric,
        tests=[ScoreFact(entry.test, entry.scores) for entry in result.tests if entry.stage == len(outcome.stages) - 1],
        language=recipe.language,
        license=recipe.license,
        settings=_settings(recipe),
        warnings=tuple(map(str, result.diagnoses)),
    )


def _settings(recipe: Recipe) -> Sequence[str]:
    lines = [Message(Word.SEED_AND_PRECISION, seed=recipe.seed, precision=recipe.precision)]
    for number, stage in enumerate(recipe.stages, 1):
        lines.append(
            Message(
                Word.STAGE_SETTINGS,
                number=number,
                length=Message(Word.STEPS, count=stage.steps) if stage.steps else Message(Word.EPOCHS, count=stage.epochs),
                batch=stage.batch_size,
                rate=stage.learning_rate,
                warmup=stage.warmup,
                decay=stage.weight_decay,
            )
        )
    return lines


def _shared(trainer: Trainer, outcome: Outcome, result: TrainResult | None) -> TrainResult:
    """Let the other processes return when the first has written everything."""
    trainer.processes.wait()
    if result is not None:
        return result
    return TrainResult(Path(trainer.recipe.output), outcome.log, {}, None, outcome.said, is_first=False)
