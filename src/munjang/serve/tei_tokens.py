"""The routes of text-embeddings-inference about tokens alone: /tokenize and /decode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from munjang.models.sentence_encoder import SentenceEncoder
from munjang.serve.call import Call, Operation, Reply
from munjang.serve.inputs import check_texts
from munjang.serve.refusals import Refusal
from munjang.serve.schemas.tei import DecodeRequest, SimpleToken, TokenizeRequest
from munjang.text.shield import SHIELD
from munjang.text.unicode import break_long_words, clean
from munjang.wording import count


async def tokenize(call: Call, body: TokenizeRequest) -> Reply:
    """Cut texts into tokens; start and stop count characters of the text in NFC."""
    texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
    check_texts(call, texts, field="inputs")
    characters, most = sum(map(len, texts)), call.service.settings.limits.max_tokenized_characters
    if characters > most:
        raise Refusal(413, f"inputs hold {count(characters, 'character')}, the limit of this route is {most:,}", field="inputs")
    model = call.service.encoder
    if body.prompt_name is not None and body.prompt_name not in model.prompts:
        raise Refusal(422, "prompt_name: the model has no such prompt", field="prompt_name")
    prompt = model.prompts.get(body.prompt_name or "", "")
    found = await call.service.in_text_thread(lambda: [_tokens(model, prompt + text, special=body.add_special_tokens) for text in texts])
    call.note(texts=len(texts), tokens=sum(map(len, found)))
    return Reply(found)


async def decode(call: Call, body: DecodeRequest) -> Reply:
    """Turn token ids back into texts."""
    arrays: list[list[int]] = [body.ids] if body.ids and isinstance(body.ids[0], int) else body.ids  # type: ignore[assignment]
    check_texts(call, arrays, field="ids")
    highest = call.service.encoder.engine.vocabulary_size
    if any(not 0 <= id < highest for array in arrays for id in array):
        raise Refusal(422, f"ids: the model's ids are 0 to {highest - 1:,}", field="ids")
    model = call.service.encoder
    found = await call.service.in_text_thread(lambda: [_decoded(model, array, skip=body.skip_special_tokens) for array in arrays])
    return Reply(found)


def _tokens(model: SentenceEncoder, text: str, *, special: bool) -> list[dict[str, Any]]:
    seen = model.tokenizer.encode_with_offsets(text)
    characters = break_long_words(clean(text))
    found = []
    for id, token, (start, stop), is_special in zip(seen.ids, seen.tokens, seen.offsets, seen.special_mask, strict=True):
        if is_special and special:
            found.append({"id": id, "text": token, "special": True, "start": None, "stop": None})
        elif not is_special:
            found.append({"id": id, "text": characters[start:stop], "special": False, "start": start, "stop": stop})
    return found


def _decoded(model: SentenceEncoder, ids: Sequence[int], *, skip: bool) -> str:
    """Let the tokenizer's own decoder join the tokens; special tokens come back under their names."""
    tokenizer = model.tokenizer
    kept = [id for id in ids if not (skip and id in tokenizer.special_ids)]
    text: str = tokenizer._inner.decode(kept, skip_special_tokens=False)
    return text.replace(SHIELD, "")


OPERATIONS = (
    Operation("POST", "/tokenize", "tei", "Texts to tokens.", tokenize, TokenizeRequest, list[list[SimpleToken]]),
    Operation("POST", "/decode", "tei", "Token ids to texts.", decode, DecodeRequest, list[str]),
)
