"""A sentence encoder's folder → the same encoder with a cross-encoder's head of random numbers, which knows nothing.

For measuring how long a cross-encoder takes: that depends on the encoder and not on what the head has learnt. To train a head, use
`munjang train` with kind = "cross".
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from munjang.engine.backbone import read_backbone
from munjang.engine.cross_folder import HEADS
from munjang.engine.folder import ModelFolder
from munjang.engine.modules import TransformerModule
from munjang.engine.weights import SINGLE, find_weights
from munjang.engine.write_folder import write_json
from munjang.errors import UsageError
from munjang.models.save import save_pair_tokenizer
from munjang.text.tokenizer import Tokenizer

ARCHITECTURES = {
    "bert": "BertForSequenceClassification",
    "electra": "ElectraForSequenceClassification",
    "roberta": "RobertaForSequenceClassification",
    "xlm-roberta": "XLMRobertaForSequenceClassification",
    "camembert": "CamembertForSequenceClassification",
    "mpnet": "MPNetForSequenceClassification",
    "distilbert": "DistilBertForSequenceClassification",
}
"""What a family's model with a head is called."""


def write_untrained_cross_encoder(folder: ModelFolder, tokenizer: Tokenizer, target: Path, *, seed: int = 0) -> None:
    """Write a cross-encoder with one score into the empty folder `target`; an encoder without attention is refused."""
    from safetensors.numpy import save_file

    base = folder.base
    if not isinstance(base, TransformerModule):
        raise UsageError(f"{folder.path}: has no layers that could read two texts together\n  name a cross-encoder to compare it with")
    weights = find_weights(base.folder)
    width = read_backbone(base, weights).dimension  # refuses families that have no architecture here
    architecture = ARCHITECTURES[str(base.config["model_type"])]
    names, random = HEADS[architecture], np.random.default_rng(seed)
    head = {}
    for name, outputs in ((names.dense, width), (names.out, 1)):
        head[f"{name}.weight"] = random.normal(0, 0.02, (outputs, width)).astype(np.float32)
        head[f"{name}.bias"] = np.zeros(outputs, np.float32)
    save_file({**{name: np.ascontiguousarray(weights[name]) for name in weights}, **head}, target / SINGLE)
    write_json(target / "config.json", {**base.config, "architectures": [architecture], "id2label": {"0": "LABEL_0"}})
    save_pair_tokenizer(tokenizer, base.config, target)
