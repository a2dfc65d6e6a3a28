"""The newer families: vectors and scores equal the authority's for 1 to 2,000 tokens, in float32 and nearly in int8, in any batch."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import TEXTS, WORDS, Tiny, make_config, quiet, randomise, write_tokenizer
from tests.hostile.conftest import edit, rewrite, tensors_of

from munjang import CrossEncoder
from munjang.errors import FolderError
from munjang.models.sentence_encoder import SentenceEncoder

IDENTITY = "torch.nn.modules.linear.Identity"


@dataclass(frozen=True)
class Case:
    """A family with the pooling that its models have, and the largest difference from the authority."""

    family: str
    pooling: tuple[str, ...] = ("mean",)
    modules: tuple = ("normalize",)
    dialect: str = "legacy"
    bound: float = 1e-5
    config: str = "{}"

    def __str__(self):
        return "-".join([self.family, *self.pooling, *json.loads(self.config)])


CASES = [
    Case("modernbert"),
    Case("modernbert", ("cls",), (), "new"),
    Case("modernbert", ("max",), config='{"attention_bias": true, "mlp_bias": true, "norm_bias": true}'),
]
CROSS = [("modernbert", {}), ("modernbert", {"classifier_pooling": "mean", "classifier_bias": True, "norm_bias": True})]
LENGTHS = (1, 2, 5, 9, 10, 33, 130, 600, 1998)
LONGEST = 2_000


def long_texts(seed=0):
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS[:20], length)) for length in LENGTHS]


@pytest.fixture(scope="module")
def folder_of(tiny_folder):
    def make(case: Case) -> Path:
        return tiny_folder(
            case.family, pooling=case.pooling, modules=case.modules, dialect=case.dialect, positions=LONGEST + 8, max_length=LONGEST,
            config=case.config,
        )  # fmt: skip

    return make


@pytest.mark.parametrize("case", CASES, ids=str)
def test_vectors_of_short_and_long_texts_equal_the_authoritys(case, folder_of, authority):
    folder, texts = folder_of(case), TEXTS + long_texts()
    ours, theirs = SentenceEncoder.load(folder).encode(texts), authority(folder, texts, batch_size=8)
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() <= case.bound


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_vector_does_not_depend_on_its_batch(case, folder_of):
    model = SentenceEncoder.load(folder_of(case))
    ids = model.tokenizer.encode(long_texts())
    alone = np.concatenate([model.engine.vectors([one]) for one in ids])
    bound = 2e-6 * max(1, np.abs(alone).max())
    assert np.abs(model.engine.vectors(ids) - alone).max() <= bound
    assert np.abs(model.engine.vectors([ids[-2]] * 3) - alone[-2]).max() <= bound


@pytest.mark.parametrize("case", CASES, ids=str)
def test_int8_stays_near_float32(case, folder_of):
    texts = TEXTS[:4] + long_texts()[3:7]
    exact, rounded = (SentenceEncoder.load(folder_of(case), compute=compute).encode(texts) for compute in ("float32", "int8"))
    lengths = np.linalg.norm(exact, axis=1) * np.linalg.norm(rounded, axis=1)
    assert ((exact * rounded).sum(axis=1) / lengths).min() >= 0.99


@pytest.mark.parametrize("case", [case for case in CASES if case.dialect == "legacy"], ids=str)
def test_a_folder_saved_here_loads_there(case, folder_of, authority, tmp_path):
    model = SentenceEncoder.load(folder_of(case))
    model.save(tmp_path / "saved")
    assert np.abs(authority(tmp_path / "saved", TEXTS[:4]) - model.encode(TEXTS[:4])).max() <= case.bound


@pytest.mark.parametrize("case", [case for case in CASES if case.dialect == "legacy"], ids=str)
def test_token_vectors_equal_the_authoritys(case, folder_of, authority):
    folder = folder_of(case)
    theirs = authority(folder, TEXTS[:4], output_value="token_embeddings", as_list=True)
    for ours, rows in zip(SentenceEncoder.load(folder).encode_tokens(TEXTS[:4]), theirs, strict=True):
        assert np.abs(ours.vectors - rows).max() <= 4 * case.bound  # rows are not normalised, their numbers are larger


@pytest.fixture(scope="module")
def cross_folder(tmp_path_factory):
    transformers = pytest.importorskip("transformers", reason="it makes the tiny cross-encoders")

    def make(family: str, settings: dict) -> Path:
        folder = tmp_path_factory.mktemp(f"cross-{family}")
        size = write_tokenizer(folder, family, 400)
        with quiet():
            config = make_config(Tiny(family=family, positions=420, config=json.dumps(settings)), size)
            config.num_labels = 1
            model = transformers.AutoModelForSequenceClassification.from_config(config).eval()
            randomise(model)
            model.save_pretrained(folder)
        return folder

    return make


@pytest.mark.parametrize(("family", "settings"), CROSS, ids=lambda value: value if isinstance(value, str) else "-".join(value))
def test_scores_equal_the_authoritys(family, settings, cross_folder, tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="the authority")
    folder = cross_folder(family, settings)
    pairs = [("the rain", "비가 많이 온다"), ("cat", "a dog was on the train " * 50), ("", "the sun"), ("눈이 올까요?", "겨울 날씨")]
    ours = CrossEncoder.load(folder)
    ours.save(tmp_path / "saved")
    with quiet():
        theirs, there = (
            sentence_transformers.CrossEncoder(str(place), device="cpu").predict(pairs) for place in (folder, tmp_path / "saved")
        )
    scores = ours.predict(pairs)
    np.testing.assert_allclose(scores, theirs, atol=2e-5)
    np.testing.assert_allclose(there, theirs, atol=1e-6)
    assert np.abs(CrossEncoder.load(folder, compute="int8").predict(pairs) - scores).max() < 0.1


@pytest.fixture
def copied(folder_of, tmp_path):
    def copy(family: str) -> Path:
        case = next(case for case in CASES if case.family == family)
        return Path(shutil.copytree(folder_of(case), tmp_path / family))

    return copy


def refused(folder: Path, words: str) -> None:
    with pytest.raises(FolderError, match=words) as error:
        SentenceEncoder.load(folder)
    assert "\n" not in str(error.value)


HOSTILE = [
    ("modernbert", {"num_attention_heads": 5}, "5 heads do not divide a width of 32"),
    ("modernbert", {"num_attention_heads": 0}, "0 heads do not divide"),
    ("modernbert", {"num_attention_heads": 32}, "heads of an even size, found 1"),
    ("modernbert", {"layer_types": ["full_attention", "round"]}, "layer_types is .* expected 2 times"),
    ("modernbert", {"layer_types": ["full_attention"]}, "expected 2 times"),
    ("modernbert", {"local_attention": "many"}, "local_attention is 'many', expected a positive whole number"),
    ("modernbert", {"max_position_embeddings": -1}, "max_position_embeddings is '-1'"),
    ("modernbert", {"rope_parameters": [1]}, "expected a table"),
    ("modernbert", {"rope_parameters": {"full_attention": {"rope_theta": 0}}}, "rope_theta is '0', expected a number from 1"),
    ("modernbert", {"rope_parameters": {"full_attention": {"rope_type": "yarn", "factor": 2}}}, "rope_type 'yarn' does not run"),
    ("modernbert", {"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": float("nan")}}}, "rope factor is 'nan'"),
    ("modernbert", {"attention_bias": True}, "no tensor 'layers.0.attn.Wqkv.bias'"),
    ("modernbert", {"norm_bias": "yes"}, "norm_bias is 'yes', expected true or false"),
    ("modernbert", {"hidden_activation": "mish"}, "activation 'mish' is unknown"),
]


@pytest.mark.parametrize(("family", "settings", "words"), HOSTILE, ids=lambda value: None if isinstance(value, dict) else value)
def test_settings_that_do_not_fit_are_refused(family, settings, words, copied):
    folder = copied(family)
    edit(folder / "config.json", **settings)
    refused(folder, words)


FAMILIES = sorted({case.family for case in CASES})


@pytest.mark.parametrize("family", FAMILIES)
def test_every_tensor_is_needed_and_has_its_shape(family, copied):
    folder = copied(family)
    tensors = tensors_of(folder)
    layer_0 = [name for name in tensors if "0." in name] + [name for name in tensors if "norm" in name.lower() and ".1." not in name]
    for name in dict.fromkeys(layer_0):
        if ".pooler." in name or name.startswith("pooler."):
            continue
        rewrite(folder, {other: array for other, array in tensors.items() if other != name})
        refused(folder, "no tensor|hold no word embeddings|holds? .*, but")
        rewrite(folder, {**tensors, name: np.ones((3, *tensors[name].shape), np.float32)})
        refused(folder, "has shapes?|rows, which do not make")
    rewrite(folder, {**tensors, layer_0[0]: np.full_like(tensors[layer_0[0]], np.nan)})
    refused(folder, "NaN or infinite")
