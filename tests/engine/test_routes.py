"""Models with several ways through them, and with layers mixed: vectors equal those of sentence-transformers."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from tests.conftest import TEXTS, WIDTH, quiet, randomise
from tests.hostile.conftest import edit

from munjang import Library
from munjang.errors import FolderError
from munjang.models.sentence_encoder import SentenceEncoder

pytestmark = pytest.mark.filterwarnings("ignore::munjang.models.long_text.TruncationWarning")


@pytest.fixture(scope="module")
def st():
    return pytest.importorskip("sentence_transformers", reason="the authority")


@pytest.fixture(scope="module")
def routed(st, tiny_folder, tmp_path_factory):
    """Return folders that sentence-transformers itself wrote: two encoders, a static one for queries, and two Dense behind one encoder."""
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Router, StaticEmbedding, Transformer
    from tokenizers import Tokenizer

    one, other = tiny_folder("bert", dialect="plain"), tiny_folder("modernbert", dialect="plain")

    def encode(folder, pooling):
        return [Transformer(str(folder)), Pooling(WIDTH, pooling)]

    def dense():
        made = Dense(WIDTH, 24)
        randomise(made, seed=len(kept))
        kept.append(made)
        return made

    kept: list[Dense] = []
    with quiet():
        static = StaticEmbedding(Tokenizer.from_file(str(one / "tokenizer.json")), embedding_dim=WIDTH)
        chains = {
            "two": [Router.for_query_document(encode(one, "cls"), encode(other, "mean")), Normalize()],
            "static": [Router.for_query_document([static], encode(other, "mean"))],
            "dense": [*encode(one, "mean"), Router({"query": [dense()], "doc": [dense(), Normalize()]}, default_route="query")],
        }
        home = tmp_path_factory.mktemp("routed")
        for name, modules in chains.items():
            more = {"prompts": {"query": "rain: "}} if name == "two" else {}
            st.SentenceTransformer(modules=modules, device="cpu", **more).save_pretrained(str(home / name), create_model_card=False)
    return home


def theirs(st, folder, texts, **options):
    with quiet():
        return st.SentenceTransformer(str(folder), device="cpu", local_files_only=True).encode(texts, **options)


@pytest.mark.parametrize(("name", "document"), [("two", "document"), ("static", "document"), ("dense", "doc")])
def test_each_routes_vectors_equal_the_authoritys(name, document, routed, st):
    model = SentenceEncoder.load(routed / name)
    prompt = model.prompts["query"]
    queries = theirs(st, routed / name, TEXTS, task="query", prompt=prompt or None)
    documents = theirs(st, routed / name, TEXTS, task=document)
    np.testing.assert_allclose(model.encode_query(TEXTS), queries, atol=1e-5)
    np.testing.assert_allclose(model.encode_document(TEXTS), documents, atol=1e-5)
    np.testing.assert_allclose(model.encode(TEXTS, prompt_name=document), documents, atol=1e-5)
    np.testing.assert_allclose(model.encode(TEXTS), theirs(st, routed / name, TEXTS), atol=1e-5)
    assert np.abs(queries - documents).max() > 0.1
    assert model.for_queries().fingerprint != model.for_documents().fingerprint
    rounded = SentenceEncoder.load(routed / name, compute="int8").encode_document(TEXTS[:4])
    cosines = (rounded * documents[:4]).sum(axis=1) / np.linalg.norm(rounded, axis=1) / np.linalg.norm(documents[:4], axis=1)
    assert cosines.min() >= 0.99


def test_the_older_names_mean_the_same(routed, tmp_path):
    folder = shutil.copytree(routed / "dense", tmp_path / "asym")
    modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    modules[2]["type"] = "sentence_transformers.models.Asym"
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    place = folder / modules[2]["path"]
    (place / "router_config.json").rename(place / "config.json")
    expected = SentenceEncoder.load(routed / "dense").encode_document(TEXTS[:3])
    np.testing.assert_array_equal(SentenceEncoder.load(folder).encode_document(TEXTS[:3]), expected)


def test_a_folder_with_routes_is_saved_for_both_readers(routed, st, tmp_path):
    model = SentenceEncoder.load(routed / "two")
    model.save(tmp_path / "saved")
    again = SentenceEncoder.load(tmp_path / "saved")
    assert again.for_queries().fingerprint == model.for_queries().fingerprint
    there = theirs(st, tmp_path / "saved", TEXTS[:3], task="document")
    np.testing.assert_allclose(model.encode_document(TEXTS[:3]), there, atol=1e-5)


def test_a_library_searches_with_the_route_of_queries(routed, tmp_path):
    model = SentenceEncoder.load(routed / "two")
    with Library.open(tmp_path / "two.db", model) as library:
        library.add([{"id": str(number), "text": text} for number, text in enumerate(TEXTS[:4])])
        hit = library.search("cat", k=1, by="meaning")[0]
    scores = model.for_queries().encode("cat") @ model.for_documents().encode(TEXTS[:4]).T
    assert (hit.id, hit.score) == (str(int(scores.argmax())), pytest.approx(scores.max(), abs=1e-5))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"types": []}, "expected the tables 'types', 'structure' and 'parameters'"),
        ({"structure": {}}, "expected the tables"),
        ({"structure": {"query": ["nowhere"]}}, "'structure' must list modules that 'types' names"),
        ({"parameters": {"default_route": "nobody"}}, "default_route is 'nobody', expected one of"),
        ({"parameters": {"allow_empty_key": False}}, "default_route is 'None', expected one of"),
        ({"parameters": {"route_mappings": {"('query', 'text')": "query"}}}, "route_mappings do not run here"),
        ({"types": {"../x": "os.system"}, "structure": {"document": ["../x"]}}, "leaves the model folder, which is refused"),
        ({"types": {"x": "os.system"}, "structure": {"document": ["x"]}}, "is not one that Munjang knows; no code is loaded"),
        ({"types": {"x": "sentence_transformers.models.Router"}, "structure": {"query": ["x"]}}, "a route holds another Router"),
        ({"types": {"x": "sentence_transformers.models.LSTM"}, "structure": {"document": ["x"]}}, "module 'LSTM' is not supported"),
        ({"structure": {"query": [], "document": ["document_0_Transformer", "document_1_Pooling"]}}, "the first module must be"),
    ],
)
def test_routes_that_do_not_fit_are_refused(settings, words, routed, tmp_path):
    folder = shutil.copytree(routed / "two", tmp_path / "copy")
    edit(folder / "router_config.json", **settings)
    with pytest.raises(FolderError, match=words) as error:
        SentenceEncoder.load(folder)
    assert "\n" not in str(error.value)


@pytest.fixture(
    scope="module", params=[("bert", "mean"), ("bert", "cls"), ("modernbert", "mean"), ("qwen3", "lasttoken"), ("albert", "max")]
)
def mixed(request, st, tiny_folder, tmp_path_factory):
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer, WeightedLayerPooling

    family, pooling = request.param
    layers = 3 if family == "albert" else 2
    with quiet():
        more = {"config": '{"inner_group_num": 1}'} if family == "albert" else {}
        encoder = Transformer(str(tiny_folder(family, dialect="plain", **more)), config_kwargs={"output_hidden_states": True})
        mix = WeightedLayerPooling(WIDTH, num_hidden_layers=layers, layer_start=1)
        randomise(mix, seed=5)
        folder = tmp_path_factory.mktemp("mixed")
        st.SentenceTransformer(modules=[encoder, mix, Pooling(WIDTH, pooling)], device="cpu").save_pretrained(
            str(folder), create_model_card=False
        )
    return folder


def test_mixed_layers_equal_the_authoritys(mixed, st, tmp_path):
    model = SentenceEncoder.load(mixed)
    expected = theirs(st, mixed, TEXTS)
    bound = 2e-5 * max(1, np.abs(expected).max())
    assert np.abs(model.encode(TEXTS) - expected).max() <= bound
    model.save(tmp_path / "saved")
    assert np.abs(theirs(st, tmp_path / "saved", TEXTS[:3]) - expected[:3]).max() <= bound
    with pytest.raises(FolderError, match="has a WeightedLayerPooling, which the torch engine does not do"):
        SentenceEncoder.load(mixed, engine="torch")


def test_a_mix_behind_an_encoder_that_keeps_its_layers_does_nothing(mixed, st, tmp_path):
    folder = shutil.copytree(mixed, tmp_path / "copy")
    edit(folder / "config.json", output_hidden_states=False)
    ours, expected = SentenceEncoder.load(folder).encode(TEXTS[:3]), theirs(st, folder, TEXTS[:3])
    assert np.abs(ours - expected).max() <= 2e-5 * max(1, np.abs(expected).max())


def test_a_mix_of_layers_that_are_not_there_is_refused(mixed, tmp_path):
    folder = shutil.copytree(mixed, tmp_path / "copy")
    [place] = folder.glob("*WeightedLayerPooling")
    edit(place / "config.json", num_hidden_layers=9)
    with pytest.raises(FolderError, match="mixes the layers of an encoder with 9"):
        SentenceEncoder.load(folder)
    edit(place / "config.json", num_hidden_layers=2, layer_start=7)
    with pytest.raises(FolderError, match="layer_start is '7' of num_hidden_layers '2'"):
        SentenceEncoder.load(folder)
