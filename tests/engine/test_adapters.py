"""Task adapters of Jina v3: each task's vectors equal those of a model into whose weights the adapter was merged."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import save_file
from tests.conftest import TEXTS
from tests.engine.test_families import long_texts
from tests.hostile.conftest import edit, rewrite, tensors_of

from munjang.errors import FolderError, UsageError
from munjang.models.sentence_encoder import SentenceEncoder

TASKS = {
    "retrieval.query": "the rain: ",
    "retrieval.passage": "눈이 ",
    "separation": "",
    "classification": "",
    "text-matching": "",
}
RANK, ALPHA = 4, 6
ADAPTED = ("word_embeddings", "token_type_embeddings", "Wqkv", "out_proj", "fc1", "fc2")
CODE = "jinaai/xlm-roberta-flash-implementation--"


@pytest.fixture(scope="module")
def jina(tiny_folder, tmp_path_factory):
    """Return a folder in the layout that was first published, and one folder per task with the merged weights."""
    plain = tiny_folder("jina_embeddings_v3", positions=2_008, max_length=2_000)
    tensors, random = tensors_of(plain), np.random.default_rng(3)
    stored, merged = {}, {task: dict(tensors) for task in TASKS}
    for name, weight in tensors.items():
        if not name.endswith(".weight") or not any(part in name for part in ADAPTED):
            stored[name] = weight
            continue
        outer, inner = weight.shape
        shapes = ((outer, RANK), (RANK, inner)) if "embeddings" in name else ((RANK, inner), (outer, RANK))
        a, b = (random.normal(0, 0.2, (len(TASKS), *shape)).astype(np.float32) for shape in shapes)
        stem = name.removesuffix("weight") + "parametrizations.weight."
        stored |= {stem + "original": weight, stem + "0.lora_A": a, stem + "0.lora_B": b}
        for number, task in enumerate(TASKS):
            product = a[number] @ b[number] if "embeddings" in name else b[number] @ a[number]
            merged[task][name] = weight + product * np.float32(ALPHA / RANK)
    home = tmp_path_factory.mktemp("jina")
    folder = shutil.copytree(plain, home / "first")
    save_file({"roberta." + name: array for name, array in stored.items()}, folder / "model.safetensors")
    codes = {"AutoConfig": CODE + "configuration_xlm_roberta.XLMRobertaFlashConfig", "AutoModel": CODE + "modeling_lora.XLMRobertaLoRA"}
    adapters = {"lora_adaptations": list(TASKS), "lora_rank": RANK, "lora_alpha": ALPHA, "task_instructions": TASKS}
    rotary = {"position_embedding_type": "rotary", "rotary_emb_base": 20_000.0, "rope_parameters": None}
    edit(folder / "config.json", model_type="xlm-roberta", auto_map=codes, **adapters, **rotary)
    edit(folder / "config_sentence_transformers.json", prompts=TASKS)
    modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    modules[0] |= {"type": "custom_st.Transformer", "kwargs": ["task"]}
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    for task, arrays in merged.items():
        rewrite(shutil.copytree(plain, home / task), arrays)
    return folder, {task: home / task for task in TASKS} | {"": plain}


@pytest.mark.parametrize("task", ["", "retrieval.query", "retrieval.passage", "text-matching"])
def test_each_tasks_vectors_equal_the_merged_models(task, jina, authority):
    folder, alone = jina
    texts = TEXTS + long_texts()[3:-1]
    prompted = [TASKS.get(task, "") + text for text in texts]
    model = SentenceEncoder.load(folder)
    ours = model.encode(texts, prompt_name=task or None)
    theirs = authority(alone[task], prompted, batch_size=1)
    assert np.abs(ours - theirs).max() <= 1e-5
    rounded = SentenceEncoder.load(folder, compute="int8").encode(texts, prompt_name=task or None)
    assert (ours * rounded).sum(axis=1).min() >= 0.99
    tokens = authority(alone[task], prompted[:2], output_value="token_embeddings", as_list=True)
    for seen, rows in zip(model.way(task).encode_tokens(TEXTS[:2], prompt=TASKS.get(task, "")), tokens, strict=True):
        assert np.abs(seen.vectors - rows).max() <= 4e-5


def test_roles_choose_the_adapters_of_retrieval(jina):
    model = SentenceEncoder.load(jina[0])
    queries, documents = model.for_queries(), model.for_documents()
    np.testing.assert_array_equal(queries.encode(TEXTS[:3]), model.encode(TEXTS[:3], prompt_name="retrieval.query"))
    np.testing.assert_array_equal(documents.encode(TEXTS[:3]), model.encode(TEXTS[:3], prompt_name="retrieval.passage"))
    assert len({queries.fingerprint, documents.fingerprint, model.fingerprint}) == 3
    assert queries.for_documents().fingerprint == documents.fingerprint
    assert list(model.ways) == list(TASKS) == list(model.prompts)
    with pytest.raises(UsageError, match="no prompt named 'sorting'; it has: retrieval.query, "):
        model.encode("rain", prompt_name="sorting")


def test_a_saved_model_keeps_its_tasks(jina, tmp_path):
    model = SentenceEncoder.load(jina[0])
    model.save(tmp_path / "saved")
    again = SentenceEncoder.load(tmp_path / "saved")
    np.testing.assert_array_equal(again.encode(TEXTS[:3], prompt_name="separation"), model.encode(TEXTS[:3], prompt_name="separation"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"lora_adaptations": ["a"] * 5}, "expected 1 to 64 names of tasks"),
        ({"lora_adaptations": "query"}, "lora_adaptations is 'query'"),
        ({"lora_adaptations": ["a", "b"]}, r"the adapters of .* have shapes .*, expected \[\(2, "),
        ({"lora_rank": 8}, "the adapters of .* have shapes"),
        ({"lora_rank": 0}, "lora_rank is '0', expected a number"),
        ({"lora_alpha": float("nan")}, "lora_alpha is 'nan'"),
        ({"auto_map": {"AutoModel": "modeling.Other"}}, "'auto_map' asks to run code"),
        ({"position_embedding_type": "absolute"}, "module type 'custom_st.Transformer' is not one that Munjang knows"),
    ],
)
def test_adapters_that_do_not_fit_are_refused(settings, words, jina, tmp_path):
    folder = shutil.copytree(jina[0], tmp_path / "copy")
    edit(folder / "config.json", **settings)
    with pytest.raises(FolderError, match=words):
        SentenceEncoder.load(folder)


def test_tasks_without_their_tensors_are_refused(jina, tmp_path):
    folder = shutil.copytree(jina[0], tmp_path / "copy")
    rewrite(folder, {name: array for name, array in tensors_of(folder).items() if ".0.lora_" not in name})
    with pytest.raises(FolderError, match="the weights hold no adapters"):
        SentenceEncoder.load(folder)


def test_the_torch_engine_refuses_adapters(jina):
    with pytest.raises(FolderError, match="has task adapters, which the torch engine does not do"):
        SentenceEncoder.load(jina[0], engine="torch")
