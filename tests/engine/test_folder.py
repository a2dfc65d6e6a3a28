"""What a model folder says, read from its small files alone: no weights, no tokenizer, no torch."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from munjang.engine.folder import AssumptionWarning, read_folder, require_sentence_encoder
from munjang.engine.modules import DenseModule, LayerNormModule, NormalizeModule, PoolingModule, StaticModule, TransformerModule
from munjang.errors import FolderError, UsageError
from munjang.other_names import explain_other_names

BERT = {"model_type": "bert"}
MEAN = {"pooling_mode_mean_tokens": True}
DENSE = {"in_features": 4, "out_features": 2}


def write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def made(path: Path, *kinds: str, settings: dict | None = None, transformer: dict | None = None, **configs: dict) -> Path:
    """Write a folder of these modules; `Pooling={…}` is the config of the module of that name."""
    configs = {"Transformer": BERT, "Pooling": MEAN, "Dense": DENSE, "LayerNorm": {"dimension": 4}} | configs
    listed = []
    for number, kind in enumerate(kinds):
        name = f"{number}_{kind}" if number else ""
        listed.append({"idx": number, "name": str(number), "path": name, "type": f"sentence_transformers.models.{kind}"})
        if kind in configs:
            write(path / name / "config.json", configs[kind])
    write(path / "modules.json", listed)
    if settings is not None:
        write(path / "config_sentence_transformers.json", settings)
    if transformer is not None:
        write(path / "sentence_bert_config.json", transformer)
    return path


def refused(path: Path, words: str) -> None:
    with pytest.raises(FolderError, match=words):
        read_folder(path)


def test_a_folder_is_described_module_by_module(tmp_path):
    settings = {"prompts": {"query": "q: "}, "default_prompt_name": "query", "similarity_fn_name": "dot", "truncate_dim": 1}
    kinds = ("Transformer", "Pooling", "Dropout", "Dense", "LayerNorm", "Normalize")
    folder = read_folder(made(tmp_path, *kinds, settings=settings, transformer={"max_seq_length": 1, "do_lower_case": True}))
    assert folder.kind == "sentence"
    assert folder.path == tmp_path
    assert folder.base is folder.modules[0]
    assert folder.modules == (
        TransformerModule(tmp_path, BERT, max_length=1, lowercase=True),
        PoolingModule(("mean",), include_prompt=True),
        DenseModule(tmp_path / "3_Dense", in_features=4, out_features=2, bias=True, activation="tanh", residual=False),
        LayerNormModule(tmp_path / "4_LayerNorm", dimension=4),
        NormalizeModule(),
    )
    assert (folder.max_length, folder.prompts, folder.default_prompt) == (1, {"query": "q: "}, "query")
    assert (folder.similarity, folder.truncate_dimension) == ("dot", 1)
    require_sentence_encoder(folder)


@pytest.mark.parametrize("settings", [None, {}, {"prompts": None, "similarity_fn_name": None}], ids=str)
def test_what_a_folder_does_not_say_is_the_default(settings, tmp_path):
    folder = read_folder(made(tmp_path, "Transformer", "Pooling", settings=settings))
    assert folder.modules[0] == TransformerModule(tmp_path, BERT, max_length=None, lowercase=False)
    assert (folder.max_length, folder.prompts, folder.default_prompt) == (None, {}, None)
    assert (folder.similarity, folder.truncate_dimension) == ("cosine", None)


def test_a_description_cannot_be_changed(tmp_path):
    folder = read_folder(made(tmp_path, "Transformer", "Pooling"))
    with pytest.raises(AttributeError, match="kind"):
        folder.kind = "cross"  # type: ignore[misc]


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean", "manhattan"])
def test_every_similarity_is_read(metric, tmp_path):
    assert read_folder(made(tmp_path, "Transformer", "Pooling", settings={"similarity_fn_name": metric})).similarity == metric


POOLINGS = [
    ({}, ("mean",)),
    ({"pooling_mode_cls_token": True}, ("cls",)),
    ({"pooling_mode_mean_tokens": False, "pooling_mode_max_tokens": True}, ("max",)),
    ({"pooling_mode_lasttoken": True, "pooling_mode_mean_sqrt_len_tokens": True}, ("mean_sqrt_len", "lasttoken")),
    ({"pooling_mode": "weightedmean", "pooling_mode_cls_token": True}, ("weightedmean",)),
    ({"pooling_mode": "mean_sqrt_len_tokens"}, ("mean_sqrt_len",)),
    ({"pooling_mode": ["max", "cls"]}, ("max", "cls")),
]


@pytest.mark.parametrize(("config", "modes"), POOLINGS, ids=str)
def test_both_dialects_name_their_poolings(config, modes, tmp_path):
    assert read_folder(made(tmp_path, "Transformer", "Pooling", Pooling=config)).modules[1] == PoolingModule(modes)


def test_a_prompt_may_be_left_out_of_pooling(tmp_path):
    folder = read_folder(made(tmp_path, "Transformer", "Pooling", Pooling=MEAN | {"include_prompt": False}))
    assert folder.modules[1] == PoolingModule(("mean",), include_prompt=False)


def test_a_dense_layer_may_have_no_bias_another_activation_and_a_shortcut(tmp_path):
    config = DENSE | {"bias": False, "activation_function": "torch.nn.modules.linear.Identity", "use_residual": True}
    folder = read_folder(made(tmp_path, "Transformer", "Pooling", "Dense", Dense=config))
    assert folder.modules[2] == DenseModule(tmp_path / "2_Dense", 4, 2, bias=False, activation="identity", residual=True)


@pytest.mark.parametrize(("config", "normalize"), [(None, False), ({}, False), ({"normalize": True}, True)], ids=str)
def test_a_static_embedding_needs_no_pooling(config, normalize, tmp_path):
    more = {} if config is None else {"StaticEmbedding": config}
    folder = read_folder(made(tmp_path, "StaticEmbedding", "Normalize", **more))
    assert folder.modules == (StaticModule(tmp_path, normalize=normalize), NormalizeModule())
    assert (folder.kind, folder.max_length) == ("sentence", None)


@pytest.mark.parametrize("name", ["bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"])
def test_the_transformers_settings_are_found_under_every_name_they_had(name, tmp_path):
    write(tmp_path / f"sentence_{name}_config.json", {"max_seq_length": 77})
    assert read_folder(made(tmp_path, "Transformer", "Pooling")).max_length == 77


def test_a_cross_encoder_is_known_by_its_type_or_its_task(tmp_path):
    by_type = read_folder(made(tmp_path / "a", "Transformer", settings={"model_type": "CrossEncoder"}))
    by_task = read_folder(made(tmp_path / "b", "Transformer", transformer={"transformer_task": "sequence-classification"}))
    assert (by_type.kind, by_task.kind) == ("cross", "cross")
    with pytest.raises(FolderError, match="munjang rerank"):
        require_sentence_encoder(by_type)


def test_a_plain_folder_is_a_transformer_with_the_pooling_one_asks_for(tmp_path):
    write(tmp_path / "config.json", BERT | {"architectures": ["BertModel"]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        folder = read_folder(tmp_path, pooling="cls")
    assert folder.modules == (
        TransformerModule(tmp_path, BERT | {"architectures": ["BertModel"]}, max_length=None),
        PoolingModule(("cls",)),
    )
    assert (folder.kind, folder.max_length) == ("sentence", None)


@pytest.mark.parametrize("config", [BERT, BERT | {"architectures": None}, BERT | {"architectures": []}], ids=str)
def test_a_plain_folder_without_a_pooling_is_assumed_to_take_the_mean(config, tmp_path):
    write(tmp_path / "config.json", config)
    with pytest.warns(AssumptionWarning, match="mean pooling is assumed"):
        assert read_folder(tmp_path).modules[1] == PoolingModule(("mean",))


def test_the_warning_points_at_the_caller_of_whoever_reads_the_folder(tmp_path):
    write(tmp_path / "config.json", BERT)

    @explain_other_names({})
    def load() -> None:
        read_folder(tmp_path)

    with pytest.warns(AssumptionWarning) as caught:
        load()
    assert caught[0].filename == __file__
    assert "load()" in Path(__file__).read_text(encoding="utf-8").splitlines()[caught[0].lineno - 1]


def test_a_plain_cross_encoder_is_known_by_its_architecture(tmp_path):
    write(tmp_path / "config.json", BERT | {"architectures": ["BertForMaskedLM", "BertForSequenceClassification"]})
    folder = read_folder(tmp_path)
    assert (folder.kind, len(folder.modules), folder.max_length) == ("cross", 1, None)


def test_a_pooling_that_is_asked_for_replaces_the_folders(tmp_path):
    path = made(tmp_path, "Transformer", "Pooling", "Normalize", Pooling=MEAN | {"include_prompt": False})
    modules = read_folder(path, pooling="max").modules
    assert modules[1:] == (PoolingModule(("max",), include_prompt=False), NormalizeModule())


def test_a_static_embedding_has_no_pooling_to_replace_and_a_cross_encoder_ignores_it(tmp_path):
    with pytest.raises(UsageError, match="no pooling to replace by 'max'"):
        read_folder(made(tmp_path / "a", "StaticEmbedding"), pooling="max")
    cross = made(tmp_path / "b", "Transformer", settings={"model_type": "CrossEncoder"})
    assert read_folder(cross, pooling="max").kind == "cross"


def test_a_place_without_a_model_is_refused(tmp_path):
    (tmp_path / "file").write_text("text")
    refused(tmp_path / "none", "no such folder")
    refused(tmp_path / "file", "is a file")
    refused(tmp_path, "neither modules.json nor config.json")


ORDERS = [
    ((), "expected a list of modules"),
    (("Dropout",), "first module must be"),
    (("Pooling", "Transformer"), "first module must be"),
    (("Transformer",), "without a Pooling"),
    (("Transformer", "Normalize"), "without a Pooling"),
    (("Transformer", "Normalize", "Pooling"), "right behind a Transformer"),
    (("Transformer", "Pooling", "Pooling"), "must stand once"),
    (("Transformer", "Pooling", "Transformer"), "second module that reads token ids"),
    (("Transformer", "Pooling", "StaticEmbedding"), "second module that reads token ids"),
    (("StaticEmbedding", "Transformer"), "second module that reads token ids"),
    (("StaticEmbedding", "Pooling"), "never behind another module"),
]


@pytest.mark.parametrize(("kinds", "words"), ORDERS, ids=lambda value: "-".join(value) if isinstance(value, tuple) else "")
def test_an_order_in_which_a_module_reads_what_is_not_there_is_refused(kinds, words, tmp_path):
    refused(made(tmp_path, *kinds), words)


@pytest.mark.parametrize("listed", [{}, {"type": "x"}, [[]], ["x"], [None], [{}, 5]], ids=str)
def test_a_list_of_modules_that_is_none_is_refused(listed, tmp_path):
    write(tmp_path / "modules.json", listed)
    refused(tmp_path, "modules.json: (expected a list of modules|module type)")


SETTINGS = [
    ({"prompts": ["x"]}, "table of strings"),
    ({"prompts": {"a": 5, "b": "x"}}, "table of strings"),
    ({"default_prompt_name": 5}, "must be a string"),
    ({"similarity_fn_name": "cos"}, "'cos' is not cosine"),
    *(({"truncate_dim": value}, "positive whole number") for value in (0, -1, True, 1.5, "8")),
]


@pytest.mark.parametrize(("settings", "words"), SETTINGS, ids=str)
def test_settings_that_make_no_sense_are_refused(settings, words, tmp_path):
    refused(made(tmp_path, "Transformer", "Pooling", settings=settings), f"config_sentence_transformers.json: .*{words}")


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "many", [64]], ids=str)
def test_a_size_is_a_positive_whole_number(value, tmp_path):
    refused(made(tmp_path / "a", "Transformer", "Pooling", transformer={"max_seq_length": value}), "max_seq_length is")
    refused(made(tmp_path / "b", "Transformer", "Pooling", "LayerNorm", LayerNorm={"dimension": value}), "'dimension' must be")
    for name in DENSE:
        refused(made(tmp_path / name, "Transformer", "Pooling", "Dense", Dense=DENSE | {name: value}), "in_features and out_features")


@pytest.mark.parametrize("mode", ["average", [], ["mean", "average"], "", {"mean": 1}], ids=str)
def test_a_pooling_that_nobody_knows_is_refused(mode, tmp_path):
    refused(made(tmp_path, "Transformer", "Pooling", Pooling={"pooling_mode": mode}), "is not among cls, max, mean")


def test_an_activation_that_nobody_knows_is_refused(tmp_path):
    refused(made(tmp_path, "Transformer", "Pooling", "Dense", Dense=DENSE | {"activation_function": "os.system"}), "no code is loaded")


@pytest.mark.parametrize("kind", ["Dense", "Normalize"])
@pytest.mark.parametrize("key", ["module_input_name", "module_output_name"])
def test_a_module_that_reads_or_writes_something_else_is_refused(kind, key, tmp_path):
    config = DENSE | {key: "sentence_embedding"}
    assert read_folder(made(tmp_path / "good", "Transformer", "Pooling", kind, **{kind: config})).kind == "sentence"
    refused(made(tmp_path / "bad", "Transformer", "Pooling", kind, **{kind: config | {key: "token_embeddings"}}), f"{key} is 'token_emb")


def test_code_that_comes_with_a_model_is_refused(tmp_path):
    refused(made(tmp_path / "a", "Transformer", "Pooling", Transformer=BERT | {"auto_map": {}}), "auto_map")
    write(tmp_path / "b/config.json", BERT | {"auto_map": {}})
    refused(tmp_path / "b", "auto_map")


@pytest.mark.parametrize("kind", ["models.Transformer", "os.system", "Xsentence_transformers.models.Pooling", None])
def test_a_module_type_of_another_library_is_refused(kind, tmp_path):
    write(tmp_path / "modules.json", [{"type": kind, "path": ""}])
    refused(tmp_path, "no code is loaded")


def test_a_module_of_the_right_library_that_is_not_supported_is_refused(tmp_path):
    write(tmp_path / "modules.json", [{"type": "sentence_transformers.models.CLIPModel", "path": ""}])
    refused(tmp_path, "'CLIPModel' is not supported; known are Asym, BoW, Dense, LayerNorm")


def test_the_new_dialects_longer_type_names_are_read(tmp_path):
    made(tmp_path, "Transformer", "Pooling")
    listed = json.loads((tmp_path / "modules.json").read_text())
    for entry, place in zip(listed, ("base.modules.transformer.Transformer", "sentence_transformer.modules.pooling.Pooling"), strict=True):
        entry["type"] = f"sentence_transformers.{place}"
    write(tmp_path / "modules.json", listed)
    assert [type(module) for module in read_folder(tmp_path).modules] == [TransformerModule, PoolingModule]


def test_architectures_that_are_no_list_are_refused(tmp_path):
    write(tmp_path / "config.json", BERT | {"architectures": "BertModel"})
    refused(tmp_path, "must be a list of names")


def test_the_first_module_says_whether_pairs_are_scored(tmp_path: Path) -> None:
    folder = made(tmp_path / "m", "Transformer", "Pooling", "Dense", transformer={"transformer_task": "sequence-classification"})
    assert read_folder(folder).kind == "cross"


def test_pooling_is_given_by_name(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="positional"):
        read_folder(made(tmp_path / "m", "Transformer", "Pooling"), "mean")
