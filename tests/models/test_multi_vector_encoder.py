"""Multi-vector models: equal to sentence-transformers' MultiVectorEncoder in every layout, saved by each side, and in a library."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import quiet

from munjang.errors import FolderError
from munjang.library.library import Library
from munjang.models.multi_vector_encoder import MultiVectorEncoder
from munjang.models.sentence_encoder import SentenceEncoder

QUERIES = ["the cat", "snow in winter, and rain.", "비가 온다"]
DOCUMENTS = ["the cat sat on the mat.", "rain in winter and snow!", "눈이 내린다. " + "the dog ran in the park " * 8]
EXPANSIONS: dict[str, dict[str, Any] | None] = {
    "none": None,
    "unseen": {"strategy": "fixed", "attend": False, "length": 12},
    "seen": {"strategy": "fixed", "attend": True, "length": 12},
    "at least": {"strategy": "min", "attend": False, "length": 9},
}


def theirs(folder: Path) -> Any:
    st = pytest.importorskip("sentence_transformers", minversion="6.0", reason="the authority, sentence-transformers 6, is not installed")
    with quiet():
        return st.MultiVectorEncoder(str(folder), device="cpu", local_files_only=True)


def make_folder(backbone: Path, target: Path, expansion: dict[str, Any] | None) -> Path:
    """Save a random model by sentence-transformers itself."""
    st = pytest.importorskip("sentence_transformers", minversion="6.0", reason="the authority, sentence-transformers 6, is not installed")
    import torch
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    with quiet():
        torch.manual_seed(3)
        body = Transformer(str(backbone), document_length=20, query_expansion=expansion)
        dense = Dense(32, 8, bias=True, activation_function=torch.nn.Tanh(), module_input_name="token_embeddings")
        mask = MultiVectorMask(skiplist_words=[".", ",", "the"], skiplist_tasks=["document"])
        modules = [body, dense, mask, Normalize(module_input_name="token_embeddings")]
        st.MultiVectorEncoder(modules=modules, prompts={"query": "cat ", "document": ""}).save_pretrained(str(target))
    return target


def assert_equal(folder: Path) -> MultiVectorEncoder:
    """Compare every vector and every score with the authority's."""
    mine, authority = MultiVectorEncoder.load(folder), theirs(folder)
    with quiet():
        expected = [authority.encode_query(QUERIES), authority.encode_document(DOCUMENTS)]
        scores = authority.similarity(*expected).numpy()
    encoded = [mine.encode_query(QUERIES), mine.encode_document(DOCUMENTS)]
    for own, other in zip((*encoded[0], *encoded[1]), (*expected[0], *expected[1]), strict=True):
        np.testing.assert_allclose(own, other.numpy(), atol=1e-5)
    np.testing.assert_allclose(mine.similarity(*encoded), scores, atol=1e-4)
    return mine


@pytest.mark.parametrize("kind", EXPANSIONS)
def test_vectors_and_scores_are_those_of_sentence_transformers(tiny_folder, tmp_path, kind):
    folder = make_folder(tiny_folder("bert"), tmp_path / "theirs", EXPANSIONS[kind])
    assert_equal(folder).save(tmp_path / "mine")
    assert_equal(tmp_path / "mine")
    assert MultiVectorEncoder.load(tmp_path / "mine").dimension == 8


def test_the_layout_of_pylate_is_read_and_saved_anew(tiny_folder, tmp_path):
    folder = make_folder(tiny_folder("bert"), tmp_path / "theirs", None)
    listed = json.loads((folder / "modules.json").read_text(encoding="utf-8"))[:2]
    listed[1]["type"] = "pylate.models.Dense.Dense"
    (folder / "modules.json").write_text(json.dumps(listed), encoding="utf-8")
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 20}), encoding="utf-8")
    settings = {"model_type": "ColBERT", "query_prefix": "[MASK]", "document_prefix": "[SEP]", "query_length": 10, "document_length": 16}
    settings |= {"attend_to_expansion_tokens": False, "skiplist_words": [".", ","], "prompts": {}, "similarity_fn_name": "MaxSim"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings), encoding="utf-8")
    assert_equal(folder).save(tmp_path / "mine")
    assert_equal(tmp_path / "mine")


def test_the_layout_of_colbert_is_read(tiny_folder, tmp_path):
    from safetensors.numpy import load_file, save_file

    folder = tmp_path / "colbert"
    shutil.copytree(tiny_folder("bert"), folder)
    (folder / "modules.json").unlink()
    (folder / "config_sentence_transformers.json").unlink(missing_ok=True)
    (folder / "sentence_bert_config.json").unlink(missing_ok=True)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["HF_ColBERT"]}), encoding="utf-8")
    weights = {f"bert.{name.removeprefix('bert.')}": value for name, value in load_file(folder / "model.safetensors").items()}
    weights["linear.weight"] = np.random.default_rng(5).normal(size=(8, 32)).astype(np.float32)
    save_file(weights, folder / "model.safetensors")
    about = {"query_token_id": "[MASK]", "doc_token_id": "[SEP]", "query_maxlen": 10, "doc_maxlen": 16, "attend_to_mask_tokens": False}
    (folder / "artifact.metadata").write_text(json.dumps(about), encoding="utf-8")
    assert_equal(folder)


def test_a_sentence_encoder_is_one_with_its_own_tokens(tiny_bert_folder):
    model, plain = MultiVectorEncoder.load(tiny_bert_folder), SentenceEncoder.load(tiny_bert_folder)
    expected = plain.encode_tokens(DOCUMENTS[:2], normalize=True)
    for own, other in zip(model.encode_document(DOCUMENTS[:2]), expected, strict=True):
        np.testing.assert_allclose(own, other.vectors, atol=1e-5)


def test_a_library_keeps_its_tokens(tiny_folder, tmp_path):
    folder = make_folder(tiny_folder("bert"), tmp_path / "theirs", EXPANSIONS["unseen"])
    model = MultiVectorEncoder.load(folder)
    with Library.open(tmp_path / "a.db", model, token_vectors="float32", analyser="bigrams") as library:
        library.add([{"id": str(number), "text": text} for number, text in enumerate(DOCUMENTS[:2])])
        hits = library.search("the cat", k=3, rerank="late", rerank_share=1)
        scores = model.similarity(model.encode_query(["the cat"]), model.encode_document(DOCUMENTS[:2]))[0] / 12
        np.testing.assert_allclose([hit.score for hit in hits], sorted(scores, reverse=True), atol=1e-5)
        assert library.check() == []


def test_what_is_no_multi_vector_model_is_refused(tiny_folder, tmp_path):
    folder = make_folder(tiny_folder("bert"), tmp_path / "theirs", None)
    with pytest.raises(FolderError, match="MultiVectorEncoder"):
        SentenceEncoder.load(folder)
    listed = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    for broken in (listed[:2], [*listed, {**listed[0], "type": "os.system"}]):
        (folder / "modules.json").write_text(json.dumps(broken), encoding="utf-8")
        with pytest.raises(FolderError):
            MultiVectorEncoder.load(folder)
