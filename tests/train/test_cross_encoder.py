"""A cross-encoder in training is the model that transformers and sentence-transformers have, and its losses are theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tests.conftest import Tiny, make_config, quiet, randomise, write_tokenizer

from munjang.errors import FolderError, UsageError
from munjang.train.cross_encoder import TrainableCrossEncoder
from munjang.train.cross_task import prepare_cross_stage
from munjang.train.examples import DataSource
from munjang.train.load_folder import CrossOptions, load_cross_encoder
from munjang.train.recipe import StageRecipe
from munjang.train.stage import ABSENT

FAMILIES = ("bert", "electra", "roberta", "xlm-roberta", "distilbert", "mpnet")
PAIRS = [
    ("the rain", "비가 많이 온다"),
    ("cat", "a dog was on the train and the book of winter was coffee"),
    ("snow is in winter", ""),
    ("눈이 올까요?", "겨울 날씨"),
    ("the cat sleep in the sun and the river", "coffee and a book in the rain and the snow of winter is cold"),
]


def short_pairs(count: int) -> list[tuple[str, str, float]]:
    """Pairs that fit the tiny model, whose authority cuts long ones elsewhere."""
    nouns, places = ("rain", "sun", "cat", "dog", "book"), ("river", "winter", "train", "snow")
    return [
        (f"the {nouns[n % 5]} is in the {places[n % 4]}", f"a {nouns[n // 2 % 5]} was on the {places[n % 3]}", n % 6) for n in range(count)
    ]


def cross_folder(folder: Path, family: str = "bert", labels: int = 1, names: list[str] | None = None) -> Path:
    size = write_tokenizer(folder, family, 48)
    with quiet():
        config = make_config(Tiny(family=family, positions=64), size)
        config.num_labels = labels
        if names:
            config.id2label = dict(enumerate(names))
            config.label2id = {name: number for number, name in enumerate(names)}
        model = transformers.AutoModelForSequenceClassification.from_config(config).eval()
        randomise(model)
        model.save_pretrained(folder)
    return folder


def padded_logits(model: TrainableCrossEncoder, folder: Path) -> torch.Tensor:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    firsts, seconds = [a for a, _ in PAIRS], [b for _, b in PAIRS]
    inputs = tokenizer(firsts, seconds, padding=True, return_tensors="pt")
    logits: torch.Tensor = model.model(**inputs).logits
    return logits


def own_logits(model: TrainableCrossEncoder) -> torch.Tensor:
    sides = [model.tokens([pair[side] for pair in PAIRS]) for side in (0, 1)]
    (logits,) = model.columns(sides)
    return logits


@pytest.mark.parametrize("labels", [1, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_and_gradients_equal_the_padded_pass(family: str, labels: int, tmp_path: Path) -> None:
    names = [f"LABEL_{number}" for number in range(labels)]
    with quiet():
        # in double precision, where a wrong term cannot hide behind rounding
        model = load_cross_encoder(cross_folder(tmp_path, family, labels), names).eval().double()
    assert model.is_packed
    weights = torch.randn(len(PAIRS), labels, generator=torch.Generator().manual_seed(1)).double()
    made, gradients = [], []
    for logits in (own_logits(model), padded_logits(model, tmp_path)):
        model.zero_grad()
        (logits * weights).sum().backward()
        made.append(logits.detach())
        gradients.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})
    torch.testing.assert_close(made[0], made[1], atol=1e-9, rtol=1e-9)
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], atol=1e-9, rtol=1e-9, msg=name)


def test_a_family_without_the_packed_pass_is_padded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cross_folder(tmp_path)
    packed = load_cross_encoder(folder, ["LABEL_0"]).eval()
    monkeypatch.setattr("munjang.train.cross_encoder._get_head", lambda _: None)
    padded = load_cross_encoder(folder, ["LABEL_0"]).eval()
    assert not padded.is_packed
    np.testing.assert_allclose(padded.predict(PAIRS), packed.predict(PAIRS), atol=1e-6)


def test_dropout_is_on_in_training_and_off_outside(tmp_path: Path) -> None:
    model = load_cross_encoder(cross_folder(tmp_path), ["LABEL_0"]).eval()
    assert torch.equal(own_logits(model), own_logits(model))
    model.train()
    assert not torch.equal(own_logits(model), own_logits(model))
    still = load_cross_encoder(tmp_path, ["LABEL_0"], CrossOptions(dropout=0.0)).train()
    assert torch.equal(own_logits(still), own_logits(still))


def test_an_absent_document_scores_nothing_and_disturbs_nobody(tmp_path: Path) -> None:
    model = load_cross_encoder(cross_folder(tmp_path), ["LABEL_0"]).eval()
    queries, documents = (model.tokens([pair[side] for pair in PAIRS]) for side in (0, 1))
    whole, holes = model.columns([queries, documents, [ABSENT, *documents[1:]]])
    assert holes[0].item() == 0
    torch.testing.assert_close(holes[1:], whole[1:], atol=1e-6, rtol=1e-6)


def test_a_sentence_encoder_gives_its_layers_and_gets_the_head_of_sentence_bert(tiny_bert_folder: Path) -> None:
    with quiet():
        encoder = transformers.AutoModel.from_pretrained(tiny_bert_folder)
    torch.manual_seed(1)
    model = load_cross_encoder(tiny_bert_folder, ["no", "yes"]).eval()
    assert type(model.model).__name__ == "ElectraForSequenceClassification"
    ours = model.model.electra.state_dict()
    assert all(torch.equal(tensor, ours[name]) for name, tensor in encoder.state_dict().items() if not name.startswith("pooler."))
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_bert_folder)
    with torch.no_grad():
        inputs = tokenizer([a for a, _ in PAIRS], [b for _, b in PAIRS], padding=True, return_tensors="pt")
        first = encoder(**inputs).last_hidden_state[:, 0]
        head = model.model.classifier
        expected = head.out_proj(torch.nn.functional.gelu(head.dense(first)))
        torch.testing.assert_close(own_logits(model), expected, atol=1e-5, rtol=1e-5)
    own = load_cross_encoder(tiny_bert_folder, ["no", "yes"], CrossOptions(head="own"))
    assert type(own.model).__name__ == "BertForSequenceClassification"


def test_a_head_is_kept_with_the_same_labels_and_new_with_others(tmp_path: Path) -> None:
    folder = cross_folder(tmp_path, labels=3, names=["contradiction", "entailment", "neutral"])
    kept = load_cross_encoder(folder, ["neutral", "entailment", "contradiction"])
    assert kept.labels == ("contradiction", "entailment", "neutral")
    assert "kept" in kept.messages[0]
    fresh = load_cross_encoder(folder, ["no", "yes"])
    assert fresh.labels == ("no", "yes")
    assert "the head is new" in fresh.messages[0]
    before, after = kept.model.bert.state_dict(), fresh.model.bert.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_long_pair_loses_the_end_of_its_second_text_as_at_run_time(tmp_path: Path) -> None:
    from munjang import CrossEncoder

    folder = cross_folder(tmp_path)
    long = [("the rain", "snow is in winter " * 30), ("cat " * 60, "dog"), ("the rain", "sun")]
    ours = load_cross_encoder(folder, ["LABEL_0"]).predict(long)
    np.testing.assert_allclose(CrossEncoder.load(folder).predict_with_report(long).scores, ours, atol=1e-5)


def test_bad_models_are_named(tmp_path: Path, tiny_bert_folder: Path) -> None:
    with pytest.raises(UsageError, match="head is 'sbert'"):
        load_cross_encoder(cross_folder(tmp_path / "r", "roberta"), ["LABEL_0"], CrossOptions(head="sbert"))
    with pytest.raises(UsageError, match="no room for two texts"):
        load_cross_encoder(tiny_bert_folder, ["LABEL_0"], CrossOptions(max_length=8))
    with pytest.raises(FolderError, match="no such folder"):
        load_cross_encoder(tmp_path / "nothing", ["LABEL_0"])


# losses over the whole way: files, rows, tokens, model


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cross_folder(tmp_path_factory.mktemp("start"))


def write_rows(path: Path, header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    path.write_text("\n".join("\t".join(map(str, row)) for row in [header, *rows]) + "\n", encoding="utf-8")
    return str(path)


def stage_loss(folder: Path, source: DataSource, objective: str | None, labels: tuple[str, ...] = ("LABEL_0",)) -> tuple[float, list[Any]]:
    """Return the loss of all rows as one batch, and the rows."""
    model = load_cross_encoder(folder, labels).eval()
    stage = prepare_cross_stage(StageRecipe(data=(source,), objective=objective), model, number=0, seed=3)
    rows = list(range(len(stage.data[0].examples)))
    with torch.no_grad():
        loss = stage.objectives[0](model.columns(stage.ids(0, rows)), stage.labels(0, rows))
    return float(loss), list(stage.data[0].examples.examples)


def authority(folder: Path) -> tuple[Any, Any]:
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="the authority is not installed")
    from sentence_transformers.cross_encoder import losses

    with quiet():
        return sentence_transformers.CrossEncoder(str(folder), device="cpu").eval(), losses


def test_the_losses_of_pairs_are_those_of_sentence_transformers(start: Path, tmp_path: Path) -> None:
    model, losses = authority(start)
    scored = short_pairs(7)
    texts = [[a for a, _, _ in scored], [b for _, b, _ in scored]]
    path = write_rows(tmp_path / "pairs.tsv", ("sentence1", "sentence2", "score"), scored)
    source = DataSource(path, label_range=(0.0, 5.0))
    gold = torch.tensor([score / 5 for _, _, score in scored])
    with quiet(), torch.no_grad():
        expected = {
            None: losses.MSELoss(model, activation_fn=torch.nn.Sigmoid())(texts, gold),
            "bce": losses.BinaryCrossEntropyLoss(model)(texts, gold),
        }
    for name, value in expected.items():
        assert stage_loss(start, source, name)[0] == pytest.approx(float(value), abs=1e-6)


def test_the_loss_of_classes_is_that_of_sentence_transformers(tmp_path: Path) -> None:
    names = ["neutral", "entailment", "contradiction"]
    folder = cross_folder(tmp_path / "nli", labels=3, names=names)
    model, losses = authority(folder)
    rows = [(a, b, names[number % 3]) for number, (a, b, _) in enumerate(short_pairs(7))]
    source = DataSource(write_rows(tmp_path / "nli.tsv", ("a", "b", "gold"), rows), texts=("a", "b"), label="gold")
    with quiet(), torch.no_grad():
        gold = torch.tensor([names.index(label) for _, _, label in rows])
        expected = losses.CrossEntropyLoss(model)([[a for a, _, _ in rows], [b for _, b, _ in rows]], gold)
    # the file's classes are sorted, the model's are not: labels go by name
    assert stage_loss(folder, source, None, tuple(sorted(names)))[0] == pytest.approx(float(expected), abs=1e-6)


def test_the_losses_of_lists_are_those_of_sentence_transformers(start: Path, tmp_path: Path) -> None:
    model, losses = authority(start)
    texts = [text for a, b, _ in short_pairs(8) for text in (a, b)]
    rows = [(*texts[at : at + 4], 3.5, 1.25, 0.5) for at in range(0, 16, 4)]
    path = write_rows(tmp_path / "lists.tsv", ("q", "p", "n1", "n2", "s0", "s1", "s2"), rows)
    plain = DataSource(path, texts=("q", "p", "n1", "n2"))
    scored = DataSource(path, texts=("q", "p", "n1", "n2"), scores=("s0", "s1", "s2"))
    columns = [[row[at] for row in rows] for at in range(4)]
    lists = [columns[0], [list(row[1:4]) for row in rows]]
    hard = [torch.tensor([1.0, 0.0, 0.0]) for _ in rows]
    soft = [torch.tensor(row[4:]) for row in rows]
    listed_only = losses.MultipleNegativesRankingLoss(model)
    listed_only.get_in_batch_negatives = lambda *_: []
    with quiet(), torch.no_grad():
        cases = [
            (None, plain, listed_only(columns, None)),
            ("lambdaloss", plain, losses.LambdaLoss(model)(lists, hard)),
            ("listnet", scored, losses.ListNetLoss(model)(lists, soft)),
            ("ranknet", scored, losses.RankNetLoss(model)(lists, soft)),
            (None, scored, losses.MarginMSELoss(model)(columns, torch.stack(soft))),
        ]
    for name, source, expected in cases:
        assert stage_loss(start, source, name)[0] == pytest.approx(float(expected), abs=1e-5), name


def test_labelled_pairs_of_one_query_become_a_list_of_any_length(start: Path, tmp_path: Path) -> None:
    model, losses = authority(start)
    texts = [text for a, b, _ in short_pairs(4) for text in (a, b)]
    rows = [
        ("the rain", texts[0], 0),
        ("the sun", texts[1], 1),
        ("the rain", texts[2], 1),
        ("the rain", texts[3], 0),
        ("the sun", texts[4], 0),
    ]
    rows += [("alone", texts[5], 1)]
    source = DataSource(write_rows(tmp_path / "pairs.tsv", ("a", "b", "label"), rows), texts=("a", "b"), label="label")
    loss, lists = stage_loss(start, source, "lambdaloss")
    assert [len(example.texts) for example in lists] == [4, 3]
    assert [example.scores for example in lists] == [(1.0, 0.0, 0.0), (1.0, 0.0)]
    with quiet(), torch.no_grad():
        docs = [list(example.texts[1:]) for example in lists]
        expected = losses.LambdaLoss(model)([["the rain", "the sun"], docs], [torch.tensor(example.scores) for example in lists])
    assert loss == pytest.approx(float(expected), abs=1e-5)


def test_triplets_are_cut_into_pairs_for_a_loss_of_pairs(start: Path, tmp_path: Path) -> None:
    source = DataSource(
        write_rows(tmp_path / "t.tsv", ("anchor", "positive", "negative"), [("the rain", "rain", "sun"), ("cat", "dog", "sun")])
    )
    _, rows = stage_loss(start, source, "bce")
    assert [(row.texts, row.label) for row in rows[:2]] == [(("the rain", "rain"), 1.0), (("the rain", "sun"), 0.0)]


def test_pairs_without_labels_get_other_rows_answers(start: Path, tmp_path: Path) -> None:
    rows = [(f"question {number}", f"answer {number}") for number in range(12)] + [("question 0", "answer 1")]
    source = DataSource(write_rows(tmp_path / "p.tsv", ("a", "b"), rows), texts=("a", "b"))
    _, first = stage_loss(start, source, None)
    _, again = stage_loss(start, source, None)
    assert first == again
    for example in first:
        query, *answers = example.texts
        wrong = answers[1:]
        assert 0 < len(wrong) <= 4
        assert len(set(wrong)) == len(wrong)
        assert not {b for a, b in rows if a == query} & set(wrong)
