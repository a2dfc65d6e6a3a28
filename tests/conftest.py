"""For all tests: tiny models of every family, made here with random but non-trivial numbers, and sentence-transformers as the authority.

Nothing is downloaded. A folder is made once per session and must not be changed; copy it to change it.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says how busy the machine is, not whether the law holds.
settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")

MEMORY = Path("/dev/shm")
"""A disk in memory: a sync costs microseconds there, and milliseconds on a real disk."""
ROOM = 4 * 2**30
"""Bytes that have to be free in it."""


ONE_CORE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""For workers beside one another: threads that wait for a core of the other worker's cost more time than they save."""


def pytest_configure(config: pytest.Config) -> None:
    """Prepare this process, and the workers that it starts."""
    if config.getoption("numprocesses", None) or "PYTEST_XDIST_WORKER" in os.environ:
        os.environ.update(ONE_CORE | {name: os.environ[name] for name in ONE_CORE if name in os.environ})
    keep_files_in_memory()


def keep_files_in_memory() -> None:
    """Keep temporary files in memory where there is room, unless TMPDIR says where.

    The longest tests (MUNJANG_TRUST=full) use the real disk.
    """
    if "TMPDIR" in os.environ or os.environ.get("MUNJANG_TRUST") == "full" or not os.access(MEMORY, os.W_OK):
        return
    if shutil.disk_usage(MEMORY).free < ROOM:
        return
    place = MEMORY / f"munjang-tests-{os.getuid()}"
    place.mkdir(mode=0o700, exist_ok=True)
    os.environ["TMPDIR"], tempfile.tempdir = str(place), None


WIDTH = 32
POSITIONS = 64
MAX_LENGTH = 24
FLAGS = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
    "mean_sqrt_len": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
WORDS = "the rain sun cat dog sleep train book coffee river winter snow is was and in on to of ing ed er 비가 눈이 온다 겨울 날씨".split()  # noqa: SIM905
PIECES = [chr(code) for code in range(33, 127)] + list(
    "오늘은비가많이온다내일눈올까요고양창에서졸있서울부산까지기차로세시간쯤걸린커피한잔과책권면충분하학교앞식집떡볶맵달"
)

TEXTS = [
    "the rain is in the river",
    "비가 많이 온다",
    "cat",
    "a dog was on the train and the book of winter was coffee",
    "",
    "고양이가 창가에서 졸고 있다, the cat sleeping.",
    "눈이 올까요?",
    "☃ unknown ☂ signs",
    "sleep " * 60,
    "오늘은 서울에서 부산까지 기차로 세 시간쯤 걸린다! (3 hours, 25%)",
]
"""Mixed lengths, Korean and English, an empty one, one with unknown signs, one over MAX_LENGTH."""


@dataclass(frozen=True)
class Dense:
    """A Dense module to put behind the pooling."""

    out: int
    activation: str = "torch.nn.modules.activation.Tanh"
    bias: bool = True
    residual: bool = False


@dataclass(frozen=True)
class Tiny:
    """What a tiny model folder should hold; modules are "normalize", "layernorm" or a Dense."""

    family: str = "bert"
    pooling: tuple[str, ...] = ("mean",)
    modules: tuple[Any, ...] = ("normalize",)
    dialect: str = "legacy"
    include_prompt: bool = True
    positions: int = POSITIONS
    max_length: int | None = MAX_LENGTH
    activation: str = "gelu"
    settings: str = "{}"
    """More keys of config_sentence_transformers.json, as JSON."""
    config: str = "{}"
    """More keys of config.json, as JSON."""


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the authorities' warnings and progress bars out of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import transformers

        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        yield


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def write_tokenizer(folder: Path, family: str, max_length: int | None) -> int:
    """Write a WordPiece tokenizer dressed as the family does; return the size of its vocabulary."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    like_roberta = family in ("roberta", "xlm-roberta", "mpnet")
    special = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"] if like_roberta else ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]
    cls, sep, pad, mask = ("<s>", "</s>", "<pad>", "<mask>") if like_roberta else ("[CLS]", "[SEP]", "[PAD]", "[MASK]")
    pieces = dict.fromkeys([*special, *WORDS, *PIECES, *("##" + piece for piece in [*PIECES, "ing", "ed", "er"])])
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    between = f"{sep}:0 {sep}:0 $B:0 {sep}:0" if like_roberta else f"{sep}:0 $B:1 {sep}:1"
    around = [(token, vocabulary[token]) for token in (cls, sep)]
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{cls} $A {sep}", pair=f"{cls} $A {between}", special_tokens=around)
    tokenizer.add_special_tokens(special)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    types = ["token_type_ids"] if family in ("bert", "electra", "albert", "deberta-v2", "nomic_bert") else []
    roles = {"cls_token": cls, "sep_token": sep, "pad_token": pad, "unk_token": "[UNK]", "mask_token": mask}
    settings = {**roles, "tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": ["input_ids", *types, "attention_mask"]}
    write_json(folder / "tokenizer_config.json", settings | ({"model_max_length": max_length} if max_length else {}))
    return len(vocabulary)


def _make_modernbert(t: Any, sizes: dict[str, Any]) -> Any:
    activation = sizes.pop("hidden_act")
    tokens = {"cls_token_id": 1, "sep_token_id": 2, "hidden_activation": activation}
    return t.ModernBertConfig(**{"local_attention": 8, "global_attn_every_n_layers": 2} | tokens | sizes)


def _make_albert(t: Any, sizes: dict[str, Any]) -> Any:
    return t.AlbertConfig(**{"embedding_size": 20, "num_hidden_groups": 2, "inner_group_num": 2} | sizes | {"num_hidden_layers": 3})


def _make_deberta(t: Any, sizes: dict[str, Any]) -> Any:
    relative = {"relative_attention": True, "position_buckets": 16, "norm_rel_ebd": "layer_norm", "share_att_key": True}
    return t.DebertaV2Config(**{**relative, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False} | sizes)


def _make_gemma(t: Any, sizes: dict[str, Any]) -> Any:
    heads = {"num_key_value_heads": 1, "head_dim": 16, "query_pre_attn_scalar": 10, "sliding_window": 8}
    layers = {"layer_types": ["sliding_attention", "full_attention"], "use_bidirectional_attention": True}
    sizes.pop("hidden_act")
    return t.Gemma3TextConfig(**heads | layers | sizes)


NEWER: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "modernbert": _make_modernbert,
    "albert": _make_albert,
    "deberta-v2": _make_deberta,
    "qwen3": lambda t, sizes: t.Qwen3Config(**{"num_key_value_heads": 2, "head_dim": 12} | sizes),
    "gemma3_text": _make_gemma,
    "gte": lambda t, sizes: t.GteConfig(**sizes),
    "nomic_bert": lambda t, sizes: t.NomicBertConfig(**sizes | {"hidden_act": "silu"}),
    "eurobert": lambda t, sizes: t.EuroBertConfig(**{"num_key_value_heads": 2} | sizes | {"hidden_act": "silu"}),
    "jina_embeddings_v3": lambda t, sizes: t.JinaEmbeddingsV3Config(**sizes),
}
"""How a tiny config of each newer family is made, with settings that reach its special parts."""


def make_config(tiny: Tiny, vocabulary: int) -> Any:
    import transformers as t

    shared = {"vocab_size": vocabulary, "hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    shared |= {"initializer_range": 0.3, "hidden_act": tiny.activation, "max_position_embeddings": tiny.positions}
    shifted = {**shared, "max_position_embeddings": tiny.positions + 2, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    if tiny.family == "distilbert":
        sizes = {"vocab_size": vocabulary, "dim": WIDTH, "hidden_dim": 48, "n_layers": 2, "n_heads": 4, "initializer_range": 0.3}
        return t.DistilBertConfig(**sizes, max_position_embeddings=tiny.positions, activation=tiny.activation)
    if tiny.family in NEWER:
        return NEWER[tiny.family](t, shared | {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2} | json.loads(tiny.config))
    return {
        "bert": lambda: t.BertConfig(**shared),
        "electra": lambda: t.ElectraConfig(**shared, embedding_size=20),
        "roberta": lambda: t.RobertaConfig(**shifted, type_vocab_size=1, layer_norm_eps=1e-5),
        "xlm-roberta": lambda: t.XLMRobertaConfig(**shifted, type_vocab_size=1, layer_norm_eps=1e-5),
        "mpnet": lambda: t.MPNetConfig(**shifted, relative_attention_num_buckets=32),
    }[tiny.family]()


def randomise(model: Any, seed: int = 0) -> None:
    """Give every parameter, biases and layer norms too, a value that matters."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator) * 0.3
            parameter.copy_(noise + 1 if "norm" in name.lower() and name.endswith("weight") else noise)


def write_cross_encoder(folder: Path, labels: int) -> None:
    """Write a tiny BERT cross-encoder with so many labels and weights that are large enough to tell texts apart."""
    transformers = pytest.importorskip("transformers", reason="it makes the tiny cross-encoder")
    size = write_tokenizer(folder, "bert", 48)
    with quiet():
        config = make_config(Tiny(positions=POSITIONS), size)
        config.num_labels = labels
        model = transformers.AutoModelForSequenceClassification.from_config(config).eval()
        randomise(model)
        model.save_pretrained(folder)


def build(folder: Path, tiny: Tiny) -> Path:
    """Make one folder, in the dialect asked for; "plain" has no modules at all."""
    with quiet():
        import transformers

        encoder = folder if tiny.dialect != "new" else folder / "encoder"
        size = write_tokenizer(encoder, tiny.family, None if tiny.dialect == "legacy" else tiny.max_length)
        model = transformers.AutoModel.from_config(make_config(tiny, size)).eval()
        randomise(model)
        model.save_pretrained(encoder)
        if tiny.dialect == "legacy":
            _write_legacy(folder, tiny)
        elif tiny.dialect == "new":
            folder = _write_new(encoder, folder / "model", tiny)
    return folder


def _write_legacy(folder: Path, tiny: Tiny) -> None:
    from safetensors.numpy import save_file

    random = np.random.default_rng(1)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": tiny.max_length, "do_lower_case": False})
    flags = {flag: mode in tiny.pooling for mode, flag in FLAGS.items()}
    write_json(folder / "1_Pooling/config.json", {"word_embedding_dimension": WIDTH, **flags, "include_prompt": tiny.include_prompt})
    listed, width = [("", "Transformer"), ("1_Pooling", "Pooling")], WIDTH * len(tiny.pooling)
    for number, module in enumerate(tiny.modules, start=2):
        kind = "Dense" if isinstance(module, Dense) else {"normalize": "Normalize", "layernorm": "LayerNorm"}[module]
        listed.append((f"{number}_{kind}", kind))
        place = folder / f"{number}_{kind}"
        if isinstance(module, Dense):
            write_json(place / "config.json", {"in_features": width, "out_features": module.out, "bias": module.bias,
                                               "activation_function": module.activation, "use_residual": module.residual})  # fmt: skip
            tensors = {"linear.weight": random.normal(size=(module.out, width)) * 0.3}
            tensors |= {"linear.bias": random.normal(size=module.out)} if module.bias else {}
            tensors |= {"residual.weight": random.normal(size=(module.out, width)) * 0.3} if module.residual and module.out != width else {}
            save_file({name: array.astype(np.float32) for name, array in tensors.items()}, place / "model.safetensors")
            width = module.out
        elif kind == "LayerNorm":
            write_json(place / "config.json", {"dimension": width})
            tensors = {"norm.weight": random.normal(1, 0.3, width), "norm.bias": random.normal(0, 0.3, width)}
            save_file({name: array.astype(np.float32) for name, array in tensors.items()}, place / "model.safetensors")
    entries = [
        {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{kind}"} for n, (path, kind) in enumerate(listed)
    ]
    write_json(folder / "modules.json", entries)
    settings = {
        "__version__": {"sentence_transformers": "3.0.0"},
        "prompts": {},
        "default_prompt_name": None,
        "similarity_fn_name": "cosine",
    }
    write_json(folder / "config_sentence_transformers.json", settings | json.loads(tiny.settings))


def _write_new(encoder: Path, folder: Path, tiny: Tiny) -> Path:
    """Let sentence-transformers itself write the folder."""
    import sentence_transformers as st
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense as TorchDense
    from sentence_transformers.sentence_transformer.modules import LayerNorm, Normalize, Pooling, Transformer

    modes = tuple("mean_sqrt_len_tokens" if mode == "mean_sqrt_len" else mode for mode in tiny.pooling)
    modules: list[Any] = [Transformer(str(encoder)), Pooling(WIDTH, pooling_mode=modes, include_prompt=tiny.include_prompt)]
    width = WIDTH * len(modes)
    for module in tiny.modules:
        if isinstance(module, Dense):
            activation = getattr(torch.nn, module.activation.rsplit(".", 1)[-1])()
            made: Any = TorchDense(width, module.out, bias=module.bias, activation_function=activation, use_residual=module.residual)
            width = module.out
        else:
            made = Normalize() if module == "normalize" else LayerNorm(width)
        randomise(made, seed=2)
        modules.append(made)
    more = json.loads(tiny.settings)
    st.SentenceTransformer(modules=modules, device="cpu", **more).save_pretrained(str(folder), create_model_card=False)
    return folder


@pytest.fixture(scope="session", autouse=True)
def munjang_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep the user's own models and cached graphs out of the tests."""
    home = tmp_path_factory.mktemp("munjang-home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUNJANG_HOME", str(home))
        yield home


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Make a tiny model folder; arguments are the fields of Tiny."""
    for package in ("torch", "transformers", "sentence_transformers"):
        pytest.importorskip(package, reason=f"{package}, which makes the tiny models, is not installed")
    made: dict[Any, Path] = {}

    def make(family: str = "bert", **fields: Any) -> Path:
        tiny = Tiny(family, **fields)
        key = astuple(tiny)
        if key not in made:
            made[key] = build(tmp_path_factory.mktemp(f"{family}-{tiny.dialect}"), tiny)
        return made[key]

    return make


@pytest.fixture(scope="session")
def tiny_bert_folder(tiny_folder: Callable[..., Path]) -> Path:
    """BERT, width 32, mean pooling, normalised, in the legacy dialect."""
    return tiny_folder("bert")


@pytest.fixture(scope="session")
def authority() -> Callable[..., np.ndarray]:
    """Return a function (folder, texts) → the vectors of sentence-transformers, computed in float32."""
    pytest.importorskip("sentence_transformers", reason="the authority sentence-transformers is not installed")

    def encode(folder: Path | str, texts: Sequence[str], *, as_list: bool = False, **options: Any) -> Any:
        with quiet():
            import sentence_transformers as st

            model = st.SentenceTransformer(str(folder), device="cpu", local_files_only=True, model_kwargs={"dtype": "float32"})
            vectors = model.encode(list(texts), show_progress_bar=False, **options)
            return [rows.numpy() for rows in vectors] if as_list else np.asarray(vectors)

    return encode
