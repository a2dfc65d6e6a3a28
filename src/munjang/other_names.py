"""What sentence-transformers calls an argument → what it is called here, in the TypeError of whoever gives it.

A decorator over public functions: their signature stays as it is written, for people, for type checkers and for the documentation. A name
that neither library knows is Python's own TypeError.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_ARRAYS = "leave it out: the result is a NumPy array"
_TENSORS = "leave it out: the result is a NumPy array; torch.from_numpy converts it to a tensor"
_BATCHES = "leave it out: batches are planned by the texts' lengths"
_DEVICE = "use load(device=…): a model stays where it was loaded"
_BAR = "use progress"

ENCODE = {
    "inputs": "pass the texts as the first argument, without a name",
    "sentences": "pass the texts as the first argument, without a name",
    "batch_size": _BATCHES,
    "show_progress_bar": _BAR,
    "normalize_embeddings": "use normalize",
    "convert_to_numpy": _ARRAYS,
    "convert_to_tensor": _TENSORS,
    "device": _DEVICE,
    "truncate_dim": "use dimensions",
    "output_value": "encode returns sentence vectors, encode_tokens those of every token",
    "pool": "leave it out: all cores are used; munjang.encode_bulk runs several processes",
    "chunk_size": "leave it out; encode_stream(block=…) yields so many vectors at a time",
    "task": "use prompt_name, or call encode_query or encode_document",
}
LOAD = {
    "model_name_or_path": "pass the name or folder as the first argument, without a name",
    "cache_folder": "leave it out: nothing is downloaded; munjang models pull downloads a model to MUNJANG_HOME",
    "local_files_only": "leave it out: nothing is ever downloaded",
    "token": "leave it out: nothing is downloaded; munjang models pull downloads a model",
    "revision": "leave it out: nothing is downloaded; munjang models pull --revision downloads one",
    "trust_remote_code": "leave it out: code in a model's folder is never run",
    "backend": 'use engine="fast" (onnxruntime) or engine="torch"; device="openvino" runs OpenVINO',
    "model_kwargs": 'leave it out; compute="int8", "float16" or "bfloat16" is the arithmetic',
    "tokenizer_kwargs": "leave it out: a folder's tokenizer is read as it is",
    "config_kwargs": "leave it out: a folder's configuration is read as it is",
    "prompts": "leave it out: prompts are those of the folder; encode(prompt=…) takes another",
    "default_prompt_name": "leave it out; use encode(prompt_name=…)",
    "similarity_fn_name": "leave it out; munjang.similarity(metric=…) takes any",
    "truncate_dim": "use encode(dimensions=…)",
    "max_seq_length": "use max_length",
    "num_labels": "leave it out: a cross-encoder has the labels of its folder",
    "activation_fn": 'use predict(score="sigmoid"), "softmax" or "logits"',
    "default_activation_function": 'use predict(score="sigmoid"), "softmax" or "logits"',
}
PREDICT = {
    "sentences": "pass the pairs as the first argument, without a name",
    "inputs": "pass the pairs as the first argument, without a name",
    "batch_size": _BATCHES,
    "show_progress_bar": _BAR,
    "num_workers": "leave it out: all cores are used",
    "device": _DEVICE,
    "pool": "leave it out: all cores are used",
    "chunk_size": "leave it out: pairs are scored in blocks by themselves",
    "activation_fn": 'use score="sigmoid", "softmax" or "logits"',
    "activation_fct": 'use score="sigmoid", "softmax" or "logits"',
    "apply_softmax": 'use score="softmax"',
    "convert_to_numpy": _ARRAYS,
    "convert_to_tensor": _TENSORS,
    "prompt": "leave it out: put it before the texts",
    "prompt_name": "leave it out: put the prompt before the texts",
}
RANK = {
    **PREDICT,
    "top_k": "use k",
    "return_documents": "leave it out: each entry of the ranking has its document's index",
}
SEARCH = {
    "top_k": "use k",
    "n_results": "use k",
    "limit": "use k",
    "filter": 'use where, such as where="year >= 2020"',
    "query_embeddings": "pass the query as text, as the first argument and without a name",
    "corpus_embeddings": "leave it out: a library searches its own documents; munjang.top_k searches arrays",
    "score_function": "leave it out: a library compares by cosine",
    "query_chunk_size": "leave it out: blocks are chosen by the memory they take",
    "corpus_chunk_size": "leave it out: blocks are chosen by the memory they take",
    "show_progress_bar": "leave it out: a search shows no progress",
    "batch_size": _BATCHES,
}


def explain_other_names(ours: Mapping[str, str]) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Make a function say what to do where it is given an argument by a name of sentence-transformers."""

    def decorate(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        foreign = ours.keys() - inspect.signature(function).parameters.keys()

        @functools.wraps(function)
        def call(*given: Arguments.args, **named: Arguments.kwargs) -> Result:
            if named and not foreign.isdisjoint(named):
                told = [f"{name}: {ours[name]}" for name in named if name in foreign]
                raise TypeError(f"{function.__qualname__} does not take " + "; ".join(told))
            return function(*given, **named)

        return call

    return decorate
