"""Encoding speed of every family at base size, side by side with sentence-transformers, interleaved in one run.

    ./run bench families [--families modernbert,gte] [--rounds 3] [--layers 12] [--half] [--lengths 512,2048,8192] [--json FILE]

Each model has 12 layers of 768 and a vocabulary of 30,000; its weights are random, which does not change how long it takes. Both sides are
processes of their own that read the same folder and encode the same texts in turn: sentences of 5 to 40 tokens, passages of 200, and for
ModernBERT texts of 2,000. One family takes one to four minutes. Reported: the median over rounds of (time of
sentence-transformers) / (time of the route), by the clock and in CPU time, and the peak memory of the process, in its first start and in
a later one, with its proportional share (PSS) after the last text. On a machine that does
other work too, only CPU time means something, and only with OMP_NUM_THREADS=1: threads that wait for each other burn it. `--half` takes
half as many texts. `--lengths` measures one text of each length instead, each in a new process: seconds and peak memory.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

VOCABULARY = 30_000
SETS = {"short": (64, 5, 40), "passages": (8, 200, 200), "long": (2, 2_000, 2_000)}
"""How many texts, and their shortest and longest."""
WARM_UP = ((4, 5, 40), (1, 200, 200))
ROUTES = ("st", "munjang", "munjang-int8")
FAMILIES = (
    "modernbert", "albert", "deberta-v2", "qwen3", "gemma3_text", "gte", "nomic_bert", "eurobert", "jina_embeddings_v3",
)  # fmt: skip
LONG = ("modernbert",)
"""Families whose texts of 2,000 tokens are measured too."""


def make_config(family: str, longest: int, layers: int) -> Any:
    import transformers as t

    sizes: dict[str, Any] = {"vocab_size": VOCABULARY, "hidden_size": 768, "num_hidden_layers": layers, "num_attention_heads": 12}
    sizes |= {"intermediate_size": 3072, "max_position_embeddings": longest, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    deberta = {"relative_attention": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True}
    deberta |= {"pos_att_type": ["p2c", "c2p"], "position_biased_input": False}
    gemma = {
        "num_key_value_heads": 4,
        "head_dim": 64,
        "query_pre_attn_scalar": 64,
        "sliding_window": 512,
        "use_bidirectional_attention": True,
    }
    return {
        "modernbert": lambda: t.ModernBertConfig(**sizes | {"intermediate_size": 1152, "cls_token_id": 1, "sep_token_id": 2}),
        "albert": lambda: t.AlbertConfig(**sizes),
        "deberta-v2": lambda: t.DebertaV2Config(**sizes, **deberta),
        "qwen3": lambda: t.Qwen3Config(**sizes, num_key_value_heads=4, head_dim=64),
        "gemma3_text": lambda: t.Gemma3TextConfig(**sizes, **gemma),
        "gte": lambda: t.GteConfig(**sizes),
        "nomic_bert": lambda: t.NomicBertConfig(**sizes),
        "eurobert": lambda: t.EuroBertConfig(**sizes),
        "jina_embeddings_v3": lambda: t.JinaEmbeddingsV3Config(**sizes),
    }[family]()


def write_model(folder: Path, family: str, longest: int, layers: int) -> None:
    """Write a random model of base size as a sentence-transformers folder; one word is one token."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "a", *(f"w{number}" for number in range(5, VOCABULARY))]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    tokenizer.save(str(folder / "tokenizer.json"))
    roles = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
    settings = {**roles, "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": longest}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    transformers.AutoModel.from_config(make_config(family, longest, layers)).save_pretrained(folder)
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": longest, "do_lower_case": False}))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": 768, "pooling_mode_mean_tokens": True}))
    kinds = (("", "Transformer"), ("1_Pooling", "Pooling"))
    entries = [
        {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{kind}"} for n, (path, kind) in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(entries))


def make_texts(count: int, shortest: int, longest: int) -> list[str]:
    random = np.random.default_rng(count)
    lengths = random.integers(shortest, longest + 1, count) - 2  # without the special tokens
    return [" ".join(f"w{word}" for word in random.integers(5, VOCABULARY, length)) for length in lengths]


def work(route: str, folder: str) -> None:
    """Load the model and encode each set of texts that standard input names."""
    if route == "st":
        import sentence_transformers

        model: Any = sentence_transformers.SentenceTransformer(folder, device="cpu", local_files_only=True)
    else:
        from munjang import SentenceEncoder

        model = SentenceEncoder.load(folder, compute="int8" if route.endswith("int8") else "float32")
    print("READY", flush=True)
    for line in sys.stdin:
        texts = make_texts(*json.loads(line))
        start, busy = time.perf_counter(), time.process_time()
        model.encode(texts)
        seconds, cpu = time.perf_counter() - start, time.process_time() - busy
        answer = {
            "seconds": seconds,
            "cpu_seconds": cpu,
            "peak_mb": read_memory("status", "VmHWM"),
            "pss_mb": read_memory("smaps_rollup", "Pss"),
        }
        print("ANSWER " + json.dumps(answer), flush=True)


def read_memory(file: str, entry: str) -> float:
    """Return an entry of this process in MB; getrusage would count the process that started it."""
    [line] = [line for line in Path("/proc/self", file).read_text().splitlines() if line.startswith(entry + ":")]
    return int(line.split()[1]) / 1024


class Route:
    """A worker process that encodes on demand."""

    def __init__(self, name: str, folder: Path) -> None:
        command = [sys.executable, __file__, "--work", name, "--folder", str(folder)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "MUNJANG_HOME": str(folder / "home")},
        )

    def wait(self) -> None:
        """Return when the model is loaded."""
        self._read("READY")

    def encode(self, texts: tuple[int, int, int]) -> dict[str, float]:
        """Encode texts of so many and such lengths; return seconds and peak memory."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(texts) + "\n")
        self.process.stdin.flush()
        return dict(json.loads(self._read("ANSWER ")))

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def _read(self, mark: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(mark):
                return line.removeprefix(mark)
        raise RuntimeError("a route ended without an answer")


CLOCKS = {"": "seconds", " (CPU)": "cpu_seconds"}


def compare(family: str, rounds: int, *, layers: int, divisor: int) -> dict[str, Any]:
    """Return each route's ratios, of time and of CPU time, and its peak memory for one family."""
    longest = 2_048 if family in LONG else 512
    sets = {name: (count // divisor, least, most) for name, (count, least, most) in SETS.items() if most <= longest}
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder), family, longest, layers)
        begun = time.perf_counter()
        routes = {name: Route(name, Path(folder)) for name in ROUTES}
        for route in routes.values():
            route.wait()
        print(f"{family}: loaded after {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
        answers: dict[str, dict[str, list[dict[str, float]]]] = {name: {texts: [] for texts in sets} for name in ROUTES}
        for route in routes.values():
            for texts in WARM_UP:
                route.encode(texts)
        for number in range(rounds):
            for texts in sets:
                for name, route in routes.items():
                    answers[name][texts].append(route.encode(sets[texts]))
            print(f"{family}: round {number + 1} of {rounds}, {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
        for route in routes.values():
            route.close()
        later = {name: measure_later_start(name, Path(folder), list(sets.values())) for name in ROUTES}
    result: dict[str, Any] = {}
    for name in ROUTES:
        first = max(answer["peak_mb"] for each in answers[name].values() for answer in each)
        result[name] = {"first_peak_mb": first, "peak_mb": later[name]["peak_mb"], "pss_mb": later[name]["pss_mb"]}
        for texts in sets:
            pairs = list(zip(answers["st"][texts], answers[name][texts], strict=True))
            for suffix, clock in CLOCKS.items():
                result[name][texts + suffix] = statistics.median(theirs[clock] / ours[clock] for theirs, ours in pairs)
    return result


def measure_later_start(name: str, folder: Path, sets: list[tuple[int, int, int]]) -> dict[str, float]:
    """Return the memory of a new process that encodes the same texts; Munjang takes its graph from the cache then."""
    route = Route(name, folder)
    route.wait()
    for texts in (*WARM_UP, *sets):
        answer = route.encode(texts)
    route.close()
    return answer


def measure_lengths(family: str, lengths: list[int], *, layers: int) -> list[dict[str, float]]:
    """Return seconds and peak memory of one text of each length, in new processes."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder), family, max(lengths), layers)
        weights = (Path(folder) / "model.safetensors").stat().st_size / 2**20
        for length in lengths:
            route = Route("munjang", Path(folder))
            route.wait()
            answer = route.encode((1, length, length))
            route.close()
            rows.append({"tokens": length, "weights_mb": weights, **answer})
            print(
                f"{family}, {length:,} tokens: {answer['seconds']:.1f} s ({answer['cpu_seconds']:.1f} s of CPU), "
                f"peak {answer['peak_mb']:.0f} MB, weights {weights:.0f} MB"
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lengths", default="")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work, options.folder)
        return
    result: dict[str, Any] = {}
    for family in options.families.split(","):
        if options.lengths:
            result[family] = measure_lengths(family, [int(length) for length in options.lengths.split(",")], layers=options.layers)
        else:
            result[family] = compare(family, options.rounds, layers=options.layers, divisor=2 if options.half else 1)
            for name, row in result[family].items():
                ratios = "".join(f"{texts} {ratio:.2f}×  " for texts, ratio in row.items() if not texts.endswith("_mb"))
                memory = f"peak {row['peak_mb']:.0f} MB (first start {row['first_peak_mb']:.0f}), PSS {row['pss_mb']:.0f} MB"
                print(f"{family:20}{name:14}{ratios}{memory}", flush=True)
        if options.json:
            options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
