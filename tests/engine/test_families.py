"""The newer families: vectors and scores equal the authority's for 1 to 2,000 tokens, in float32 and nearly in int8, in any batch."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import TEXTS, WORDS, Dense, Tiny, make_config, quiet, randomise, write_tokenizer
from tests.hostile.conftest import edit, rewrite, tensors_of

from munjang import CrossEncoder
from munjang.errors import FolderError, UsageError
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


CONVOLUTION = {"conv_kernel_size": 3, "conv_groups": 2, "position_biased_input": True, "type_vocab_size": 2}
PLAIN_DEBERTA = {"share_att_key": False, "pos_att_type": "c2p", "position_buckets": -1, "max_relative_positions": 40, "embedding_size": 20}
BIASES = {"attention_bias": True, "mlp_bias": True, "norm_bias": True}
YARN = {"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 5000.0, "original_max_position_embeddings": 500}}
DYNAMIC = {"rope_parameters": {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 5000.0}}
LLAMA3 = {
    "rope_parameters": {
        "rope_type": "llama3", "factor": 8.0, "rope_theta": 5000.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 200,
    },
}  # fmt: skip
LINEAR_ROPE = {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 5000.0}, "attention_bias": True}

CASES = [
    Case("modernbert"),
    Case("modernbert", ("cls",), (), "new", config=json.dumps(BIASES)),
    Case("albert", ("mean",)),
    Case("deberta-v2", ("cls",), bound=2e-5),
    Case("deberta-v2", ("mean",), bound=2e-5, config=json.dumps(CONVOLUTION)),
    Case("deberta-v2", ("cls",), bound=2e-5, dialect="new", config=json.dumps(PLAIN_DEBERTA)),
    Case("qwen3", ("lasttoken",), bound=2e-5),
    Case("qwen3", ("mean",), (), bound=2e-5, config='{"use_sliding_window": true, "sliding_window": 10, "max_window_layers": 1}'),
    Case("qwen3", ("lasttoken",), bound=2e-5, config=json.dumps(YARN)),
    Case("gemma3_text", ("mean",), (Dense(24, IDENTITY, bias=False), Dense(16, IDENTITY, bias=False), "normalize"), bound=2e-5),
    Case("gemma3_text", ("lasttoken",), bound=2e-5, config='{"use_bidirectional_attention": false}'),
    Case("gte", ("cls",)),
    Case("gte", ("cls",), config=json.dumps(DYNAMIC)),
    Case("nomic_bert", ("mean",)),
    Case("eurobert", ("mean",), config=json.dumps(LINEAR_ROPE)),
    Case("eurobert", ("mean",), config=json.dumps(LLAMA3)),
    Case("jina_embeddings_v3", ("mean",)),
]
CROSS = [
    ("modernbert", {}),
    ("modernbert", {"classifier_pooling": "mean", "classifier_bias": True, "norm_bias": True}),
    ("albert", {}),
    ("deberta-v2", {}),
    ("deberta-v2", CONVOLUTION),
    ("gte", {}),
    ("nomic_bert", {}),
    ("jina_embeddings_v3", {}),
    ("eurobert", {}),
    ("eurobert", {"classifier_pooling": "bos"}),
    ("eurobert", {"classifier_pooling": "mean"}),
    ("qwen3", {}),
    ("gemma3_text", {"use_bidirectional_attention": False}),
]
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
    folder = folder_of(case)
    ours = SentenceEncoder.load(folder).encode(TEXTS + long_texts())
    theirs = np.concatenate([authority(folder, TEXTS, batch_size=len(TEXTS)), authority(folder, long_texts(), batch_size=1)])
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


ROTARY = ["modernbert", "deberta-v2", "qwen3", "gemma3_text", "gte", "nomic_bert", "eurobert", "jina_embeddings_v3"]
"""Families that see only how far places lie apart, so that an authority may pad in front."""


@pytest.mark.parametrize("family", ["albert", *ROTARY])
def test_every_pooling_equals_the_authoritys_with_padding_on_either_side(family, folder_of):
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="the authority")
    case = next(case for case in CASES if case.family == family)
    folder, texts = folder_of(case), TEXTS[:4] + long_texts()[3:7]
    with quiet():
        theirs = sentence_transformers.SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    from sentence_transformers.sentence_transformer.modules import Pooling

    for pooling in ("mean", "max", "cls", "lasttoken", "mean_sqrt_len", "weightedmean"):
        ours = SentenceEncoder.load(folder, pooling=pooling).encode(texts)
        theirs[1] = Pooling(32, pooling_mode="mean_sqrt_len_tokens" if pooling == "mean_sqrt_len" else pooling)
        for side in ("right", "left") if family in ROTARY and pooling != "weightedmean" else ("right",):  # that one counts padding in front
            theirs.tokenizer.padding_side = side
            assert np.abs(ours - theirs.encode(texts, batch_size=len(texts), show_progress_bar=False)).max() <= case.bound, (pooling, side)


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
    ("modernbert", {"rope_parameters": {"full_attention": {"rope_type": "longrope"}}}, "rope_type 'longrope' does not run"),
    ("modernbert", {"rope_parameters": {"full_attention": {"rope_type": "yarn", "factor": -2}}}, "rope factor is '-2'"),
    ("qwen3", {"rope_parameters": {"rope_type": "yarn", "factor": 2, "beta_fast": "many"}}, "rope beta_fast is 'many'"),
    ("eurobert", {"rope_parameters": {"rope_type": "llama3", "factor": 2, "low_freq_factor": 4, "high_freq_factor": 1}}, "is not below"),
    ("modernbert", {"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": float("nan")}}}, "rope factor is 'nan'"),
    ("modernbert", {"attention_bias": True}, "no tensor 'layers.0.attn.Wqkv.bias'"),
    ("modernbert", {"norm_bias": "yes"}, "norm_bias is 'yes', expected true or false"),
    ("modernbert", {"hidden_activation": "mish"}, "activation 'mish' is unknown"),
    ("albert", {"num_hidden_groups": 9}, "9 groups of layers for 3 layers"),
    ("albert", {"inner_group_num": 0}, "inner_group_num is '0'"),
    ("deberta-v2", {"position_buckets": 10**9}, "position_buckets is '1000000000'"),
    ("deberta-v2", {"position_buckets": 2}, "2 position_buckets do not fit"),
    ("deberta-v2", {"position_buckets": 64}, "rel_embeddings.weight has 32 rows, expected 128"),
    ("deberta-v2", {"pos_att_type": ["p2p"]}, "pos_att_type is .*, expected c2p and p2c"),
    ("deberta-v2", {"conv_kernel_size": 3}, "no tensor 'encoder.conv.conv.weight'"),
    ("qwen3", {"num_key_value_heads": 3}, "3 heads of keys do not divide 4 heads"),
    ("qwen3", {"head_dim": 7}, "heads of an even size, found 7"),
    ("qwen3", {"head_dim": 10**6}, "q_norm has shapes .*, expected"),
    ("gemma3_text", {"attn_logit_softcapping": 50.0}, "attn_logit_softcapping does not run"),
    ("gemma3_text", {"query_pre_attn_scalar": 0}, "query_pre_attn_scalar is '0'"),
    ("gte", {"rope_parameters": {"rope_type": "dynamic", "factor": "all"}}, "rope factor is 'all'"),
    ("nomic_bert", {"rotary_emb_fraction": 0.5}, "rotary_emb_fraction is '0.5', which does not run"),
    ("nomic_bert", {"type_vocab_size": 10**9}, "type_vocab_size is"),
    ("eurobert", {"rms_norm_eps": -1}, "rms_norm_eps is '-1'"),
    ("jina_embeddings_v3", {"num_hidden_layers": 10**6}, "num_hidden_layers is"),
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


SPLIT = {
    "gte": (
        {"attention.qkv_proj": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
         "mlp.up_gate_proj": ("mlp.up_proj", "mlp.gate_proj")},
        {"encoder.layer.": "layers.", "attention.o_proj": "self_attn.o_proj", "attn_ln": "post_attention_layernorm",
         "mlp_ln": "post_mlp_layernorm"},
    ),
    "nomic_bert": (
        {"attn.Wqkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")},
        {"encoder.layers.": "layers.", "emb_ln": "embeddings.LayerNorm", "attn.out_proj": "self_attn.o_proj", "fc11": "up_proj",
         "fc12": "gate_proj", "fc2": "down_proj", "norm1": "post_attention_layernorm", "norm2": "post_mlp_layernorm"},
    ),
    "jina_embeddings_v3": (
        {"mixer.Wqkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")},
        {"encoder.layers.": "layers.", "emb_ln": "embeddings.LayerNorm", "mixer.out_proj": "self_attn.o_proj",
         "norm1": "post_attention_layernorm", "norm2": "post_mlp_layernorm"},
    ),
}  # fmt: skip
"""transformers saves these families under their first names; in memory, and where others save them, they have these."""
FIRST_KEYS = {
    "num_hidden_layers": "n_layer", "num_attention_heads": "n_head", "max_position_embeddings": "n_positions",
    "layer_norm_eps": "layer_norm_epsilon",
}  # fmt: skip


@pytest.mark.parametrize("family", SPLIT)
def test_both_sets_of_names_give_the_same_vectors(family, copied):
    folder, (parts_of, names) = copied(family), SPLIT[family]
    expected = SentenceEncoder.load(folder).encode(TEXTS[:4])
    apart = {}
    for name, array in tensors_of(folder).items():
        whole = next((whole for whole in parts_of if whole in name), None)
        pieces = zip(parts_of[whole], np.split(array, len(parts_of[whole])), strict=True) if whole else [("", array)]
        for part, piece in pieces:
            new = name.replace(whole, part) if whole else name
            for old, other in names.items():
                new = new.replace(old, other)
            apart[new] = np.ascontiguousarray(piece)
    rewrite(folder, apart)
    assert np.abs(SentenceEncoder.load(folder).encode(TEXTS[:4]) - expected).max() <= 1e-6


def test_a_gte_folder_that_names_its_own_code_runs_without_it(copied):
    folder = copied("gte")
    expected = SentenceEncoder.load(folder).encode(TEXTS[:4])
    first = {"model_type": "new", "rope_theta": 160_000, "rope_parameters": None}
    edit(folder / "config.json", **first, auto_map={"AutoModel": "x/new-impl--modeling.NewModel"})
    np.testing.assert_array_equal(SentenceEncoder.load(folder).encode(TEXTS[:4]), expected)
    edit(folder / "config.json", rope_scaling={"type": "ntk", "factor": 8.0})
    assert np.abs(SentenceEncoder.load(folder).encode(TEXTS[:4]) - expected).max() > 1e-3
    edit(folder / "config.json", auto_map={"AutoModel": "modeling.OldModel"})
    refused(folder, "'auto_map' asks to run code")


def test_a_nomic_folder_under_its_first_settings_has_the_same_vectors(copied):
    folder = copied("nomic_bert")
    expected = SentenceEncoder.load(folder).encode(TEXTS[:4])
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config = {FIRST_KEYS.get(key, key): value for key, value in config.items() if key not in ("rope_parameters", "hidden_act")}
    first = {"rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "activation_function": "swiglu", "qkv_proj_bias": False}
    (folder / "config.json").write_text(json.dumps(config | first), encoding="utf-8")
    np.testing.assert_array_equal(SentenceEncoder.load(folder).encode(TEXTS[:4]), expected)


def test_ntk_scaling_follows_its_formula():
    from munjang.engine.rotary import read_rotary

    config = {"rope_theta": 20_000, "rope_scaling": {"type": "ntk", "factor": 8.0}}
    found = read_rotary(Path("config.json"), config, size=64, theta=1.0, theta_keys=("rope_theta",)).frequencies_H
    np.testing.assert_allclose(found, 1 / (20_000 * 8) ** (np.arange(0, 64, 2) / 64) / 8 ** (2 / 64), rtol=1e-6)


def test_an_albert_is_exported_and_a_family_without_a_portable_graph_is_refused(folder_of, tmp_path):
    from munjang.models.export import export_onnx

    cases = {case.family: case for case in CASES}
    assert export_onnx(SentenceEncoder.load(folder_of(cases["albert"])), tmp_path / "albert").max_difference <= 1e-5
    with pytest.raises(UsageError, match="a gte encoder needs operators that only onnxruntime has"):
        export_onnx(SentenceEncoder.load(folder_of(cases["gte"])), tmp_path / "gte")
    assert not (tmp_path / "gte").exists()
