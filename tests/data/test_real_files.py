"""Row counts of the public sets, where they are at hand: nothing is lost, nothing is doubled."""

from __future__ import annotations

import pytest

from munjang.data import (
    read_labelled_pairs,
    read_labelled_texts,
    read_retrieval,
    read_scored_pairs,
    read_text_pairs,
)

SCORED = {
    "korsts/sts-train.tsv.gz": ("korsts", 5749),
    "korsts/sts-dev.tsv.gz": ("korsts", 1500),
    "korsts/sts-test.tsv.gz": ("korsts", 1379),
    "stsb-en/stsb-en-train.csv.gz": ("stsb-csv", 5749),
    "stsb-en/stsb-en-dev.csv.gz": ("stsb-csv", 1500),
    "stsb-en/stsb-en-test.csv.gz": ("stsb-csv", 1379),
    "klue-sts/klue_sts_train.csv.gz": ("klue-sts", 11668),
}
LABELLED = {
    "snli/snli_train_subset.tsv.gz": ("snli-tsv", 99890),
    "snli/snli_test.tsv.gz": ("snli-tsv", 9824),
    "kornli-xnli/xnli.dev.ko.tsv.gz": ("kornli", 2490),
    "kornli-xnli/xnli.test.ko.tsv.gz": ("kornli", 5010),
    "xnli-en/xnli_dev-en.tsv.gz": ("xnli", 2490),
    "klue-nli/klue-nli-v1.1_dev.json.gz": ("klue-nli", 3000),
    "pawsx/pawsx_dev-en.tsv.gz": ("pawsx-xtreme", 2000),
    "pawsx/pawsx_ko_dev_2k.tsv.gz": ("pawsx", 2000),
    "pawsx/pawsx_ko_test_2k.tsv.gz": ("pawsx", 2000),
    "question-pair-ko/train.txt.gz": ("question-pair-ko", 6136),
    "question-pair-ko/validation.txt.gz": ("question-pair-ko", 682),
    "question-pair-ko/test.txt.gz": ("question-pair-ko", 758),
}
PAIRS = {
    "pawsx/pawsx_test-en.tsv.gz": ("xtreme-unlabelled", 2000),
    "xnli-en/xnli_test-en.tsv.gz": ("xtreme-unlabelled", 5010),
    "tatoeba-kor-eng/kor.txt.gz": ("tatoeba", 3853),
    "parallel-en-ko/parallel-en-ko.tsv.gz": ("parallel-en-ko", 41867),
}


def _present(shared_data, name):
    if not (shared_data / name).exists():
        pytest.skip(f"{name} is not here")
    return shared_data / name


@pytest.mark.parametrize("name", SCORED)
def test_scored_sets_are_whole(name, shared_data):
    found = read_scored_pairs(_present(shared_data, name))
    assert (found.layout, len(found), found.skipped) == (*SCORED[name], ())
    assert max(row.score for row in found.rows) == 1.0
    assert min(row.score for row in found.rows) == 0.0


@pytest.mark.parametrize("name", LABELLED)
def test_labelled_sets_are_whole(name, shared_data):
    found = read_labelled_pairs(_present(shared_data, name))
    assert (found.layout, len(found), found.skipped) == (*LABELLED[name], ())


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_without_labels_are_whole(name, shared_data):
    found = read_text_pairs(_present(shared_data, name))
    assert (found.layout, len(found)) == PAIRS[name]


def test_korsts_and_the_english_set_are_row_aligned(shared_data):
    korean = read_scored_pairs(_present(shared_data, "korsts/sts-dev.tsv.gz"))
    english = read_scored_pairs(_present(shared_data, "stsb-en/stsb-en-dev.csv.gz"))
    assert [row.score for row in korean.rows] == pytest.approx([row.score for row in english.rows], abs=1e-3)


def test_parakqc_has_a_thousand_groups_of_ten(shared_data):
    found = read_labelled_texts(_present(shared_data, "paraKQC/paraKQC_v1.txt.gz"))
    assert len(found) == 10_000
    assert len({row.label for row in found.rows}) == 1_000


def test_the_bills_have_fourteen_committees(shared_data):
    found = read_labelled_texts(_present(shared_data, "korean-assembly-bills/bills_14x500.tsv.gz"))
    assert (len(found), len({row.label for row in found.rows})) == (7_000, 14)


@pytest.mark.parametrize(
    ("name", "documents", "queries", "judged"),
    [
        ("korquad1-dev/KorQuAD_v1.0_dev.json.gz", 961, 5774, 5774),  # 964 paragraphs, three of them repeats
        ("tydiqa-ko/train.json.gz", 1269, 1625, 1625),
        ("tydiqa-ko/dev.json.gz", 228, 276, 276),
        ("cranfield", 1400, 225, 1837),
    ],
)
def test_retrieval_sets_are_whole(name, documents, queries, judged, shared_data):
    found = read_retrieval(_present(shared_data, name))
    assert (len(found.corpus), len(found.queries), sum(map(len, found.judgements.values()))) == (documents, queries, judged)
    assert set(found.judgements) <= set(found.queries)
    assert all(document in found.corpus for grades in found.judgements.values() for document in grades)
