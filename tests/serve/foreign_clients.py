"""Clients that do not fit into the tests' environment, each in a Python of its own: foreign_clients.py CLIENT URL MODEL RERANKER.

Texts come as JSON on standard input, what the client got goes as JSON to standard output. Nothing of Munjang is imported here.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

QUERY = "the rain"


def call_litellm(url: str, model: str, reranker: str, texts: list[str]) -> dict[str, Any]:
    import litellm

    def embedded(provider: str, base: str) -> list[list[float]]:
        answer = litellm.embedding(model=f"{provider}/{model}", input=texts, api_base=base, api_key="none")
        return [each["embedding"] for each in answer.data]

    def ranked(provider: str) -> list[tuple[int, float, Any]]:
        answer = litellm.rerank(
            model=f"{provider}/{reranker}", query=QUERY, documents=texts, api_base=url, api_key="none", return_documents=True
        )
        return [(each["index"], each["relevance_score"], (each.get("document") or {}).get("text")) for each in answer.results or []]

    return {
        "vectors": {
            "openai": embedded("openai", f"{url}/v1"),
            "infinity": embedded("infinity", url),
            "cohere": embedded("cohere", f"{url}/v2/embed"),
        },
        "ranks": {"cohere": ranked("cohere"), "infinity": ranked("infinity")},
    }


def call_llama_index(url: str, model: str, reranker: str, texts: list[str]) -> dict[str, Any]:
    from llama_index.core.schema import NodeWithScore, TextNode
    from llama_index.embeddings.openai_like import OpenAILikeEmbedding
    from llama_index.embeddings.text_embeddings_inference import TextEmbeddingsInference
    from llama_index.postprocessor.tei_rerank import TextEmbeddingInference

    like = OpenAILikeEmbedding(model_name=model, api_base=f"{url}/v1", api_key="none")
    tei = TextEmbeddingsInference(model_name=model, base_url=url)
    nodes = [NodeWithScore(node=TextNode(text=text, id_=str(number))) for number, text in enumerate(texts)]
    ranks = TextEmbeddingInference(base_url=url, model_name=reranker, top_n=len(texts)).postprocess_nodes(nodes, query_str=QUERY)
    return {
        "vectors": {"openai": like.get_text_embedding_batch(texts), "tei": tei.get_text_embedding_batch(texts)},
        "ranks": {"tei": [(int(each.node.node_id), each.score, each.node.get_content()) for each in ranks]},
    }


def call_haystack(url: str, model: str, _reranker: str, texts: list[str]) -> dict[str, Any]:
    from haystack import Document
    from haystack.components.embedders import OpenAIDocumentEmbedder, OpenAITextEmbedder
    from haystack.utils import Secret
    from haystack_integrations.components.embedders.huggingface_api import HuggingFaceAPIDocumentEmbedder

    key = Secret.from_token("none")
    one = OpenAITextEmbedder(api_key=key, api_base_url=f"{url}/v1", model=model)
    many = OpenAIDocumentEmbedder(api_key=key, api_base_url=f"{url}/v1", model=model, progress_bar=False)
    tei = HuggingFaceAPIDocumentEmbedder(
        api_type="text_embeddings_inference", api_params={"url": url}, token=key, progress_bar=False, truncate=None, normalize=None
    )

    def documents() -> list[Any]:
        return [Document(content=text) for text in texts]

    return {
        "vectors": {
            "openai, one": [one.run(text=text)["embedding"] for text in texts],
            "openai": [each.embedding for each in many.run(documents=documents())["documents"]],
            "tei": [each.embedding for each in tei.run(documents=documents())["documents"]],
        },
        "ranks": {},
    }


CLIENTS: dict[str, Callable[[str, str, str, list[str]], dict[str, Any]]] = {
    "litellm": call_litellm,
    "llama-index": call_llama_index,
    "haystack": call_haystack,
}

if __name__ == "__main__":
    os.environ |= {"HAYSTACK_TELEMETRY_ENABLED": "False", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "DO_NOT_TRACK": "1"}
    name, *arguments = sys.argv[1:]
    found = CLIENTS[name](*arguments, json.loads(sys.stdin.read()))
    print(json.dumps(found))
