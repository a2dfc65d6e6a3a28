"""Numbers, units, model codes and variants: pairs of names that a model finds alike, with the right answers."""

from __future__ import annotations

import numpy as np
import pytest

from munjang.analyze.match import match
from munjang.analyze.numbers import numbers_differ, read_numbers
from munjang.analyze.pairs import mine_pairs
from munjang.errors import UsageError
from munjang.models.sentence_encoder import SentenceEncoder

SAME = [
    ("애플 아이폰 13 프로 128GB 그래파이트", "Apple iPhone 13 Pro (128 GB, Graphite)"),
    ("갤럭시 S23 울트라 256기가 자급제", "Galaxy S23 Ultra 256GB unlocked"),
    ("갤럭시S23+ 512GB", "Galaxy S23 Plus 512 GB"),
    ("맥북프로 14인치 1TB", "MacBook Pro 14 inch 1024GB"),
    ("햅쌀 1kg", "햅쌀 1000g 봉지"),
    ("제주 생수 2L 6개입", "제주 생수 2리터 x 6"),
    ("Green tea, 500 ml bottle", "green tea 0.5L"),
    ("화장지 30롤 2팩", "화장지 30롤, 2개"),
    ("소니 WH-1000XM5 헤드폰", "Sony WH1000XM5 wireless headphones"),
    ("지포스 RTX 4070 그래픽카드", "GeForce RTX4070 graphics card"),
    ("55인치 QLED TV", "QLED 텔레비전 55형 (138cm)"),
    ("비타민C 1,000mg 60정", "비타민 C 1g 60 tablets"),
    ("라면 다섯 봉지", "라면 5봉"),
    ("개인정보 보호법 제3조", "Personal Information Protection Act, Article 3"),
    ("보조배터리 10000mAh", "power bank 10Ah"),
    ("에어프라이어 5.5L", "에어 프라이어 5.5리터"),
    ("에어팟 2세대", "AirPods (2nd gen)"),
    ("AA batteries, pack of 4", "AA 건전지 4개입"),
    ("아이패드 미니 64GB", "iPad mini, 64 GB, Wi-Fi"),
    ("4인용 식탁 1200mm", "식탁 4인용 120cm"),
    ("Laundry detergent", "세탁 세제 3L"),
    ("무상 보증 1년", "무상 보증 12개월"),
    ("LG 그램 16인치 32GB", 'LG gram 16" 32 GB RAM'),
    ("코카콜라 355ml 24캔", "Coca-Cola 355 ml x 24 cans"),
    ("삼성 갤럭시 탭 S9 FE", "Samsung Galaxy Tab S9 FE tablet"),
    ("동원참치 150g 4개", "동원 참치 150g×4"),
    ("민법 제750조", "Civil Act Article 750"),
    ("닌텐도 스위치 64기가", "Nintendo Switch (64GB)"),
    ("세제 2.5L 리필", "세제 리필 2500ml"),
    ("무선 마우스 M720", "Logitech M720 wireless mouse"),
    ("나이키 에어맥스 90", "Nike Air Max 90"),
    ("A4 복사용지 500매", "A4 copy paper 500 sheets"),
    ("캡슐커피 10개입 3박스", "capsule coffee 10 pcs, 3 boxes"),
    ("운동화 270mm", "sneakers 27cm"),
    ("아이폰15프로맥스 1테라", "iPhone 15 Pro Max 1TB"),
    ("공기청정기 20평형", "공기청정기 66㎡"),
    ("디월트 18V 드릴 2.0Ah", "DeWalt 18 V drill 2000mAh"),
]
DIFFERENT = [
    ("갤럭시 S23 128GB", "갤럭시 S23 256GB"),
    ("아이폰 13 프로", "아이폰 13"),
    ("iPhone 13", "iPhone 14"),
    ("햅쌀 1kg", "햅쌀 500g"),
    ("물티슈 2개입", "물티슈 3개입"),
    ("도로교통법 제3조", "도로교통법 제4조"),
    ("Road Traffic Act, Article 3 paragraph 1", "Road Traffic Act, Article 3 paragraph 2"),
    ("Sony WH-1000XM4 headphones", "Sony WH-1000XM5 headphones"),
    ("인텔 코어 i5-13600K", "인텔 코어 i7-13700K"),
    ("MacBook Air 13 inch", "MacBook Pro 13 inch"),
    ("생수 500ml x 20", "생수 500ml x 40"),
    ("27인치 모니터 144Hz", "27인치 모니터 240Hz"),
    ("오메가3 60캡슐 2병", "오메가3 60캡슐 3병"),
    ("아이패드 미니 64GB", "아이패드 64GB"),
    ("갤럭시 A54 5G", "갤럭시 A34 5G"),
    ("Ibuprofen 200 mg tablets", "Ibuprofen 400 mg tablets"),
    ("해리 포터 제2권", "Harry Potter, Volume 3"),
    ("선크림 SPF50 50ml", "선크림 SPF50 100ml"),
    ("우유 두 팩", "우유 세 팩"),
    ("LED 전구 8W", "LED 전구 12W"),
    ("2인용 텐트", "4인용 텐트"),
    ("갤럭시 버즈2", "갤럭시 버즈2 프로"),
    ("코카콜라 355ml 24캔", "코카콜라 500ml 24캔"),
    ("갤럭시 탭 S9", "갤럭시 탭 S9 FE"),
    ("민법 제750조", "민법 제751조"),
    ("갤럭시 워치6 40mm", "갤럭시 워치6 44mm"),
    ("Kindle Paperwhite 8GB", "Kindle Paperwhite 16GB"),
    ("캡슐커피 10개입", "캡슐커피 20개입"),
    ("로지텍 MX Master 3", "Logitech MX Master 3S"),
    ("운동화 270mm", "운동화 265mm"),
    ("LG 그램 16인치", "LG 그램 17인치"),
    ("타이레놀 500mg", "타이레놀 160mg"),
    ("아이폰 SE 64GB", "아이폰 64GB"),
    ("Canon EOS R6", "Canon EOS R5"),
    ("1차 회의록", "2차 회의록"),
    ("시즌 2 3화", "시즌 2 4화"),
    ("iPad 9세대", "iPad 10th generation"),
    ("프린터 잉크 67XL", "프린터 잉크 67"),
]


@pytest.mark.parametrize(("a", "b"), SAME)
def test_the_same_written_differently_does_not_contradict(a: str, b: str) -> None:
    assert not numbers_differ(a, b), (read_numbers(a), read_numbers(b))
    assert not numbers_differ(b, a)


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_other_numbers_units_codes_and_variants_contradict(a: str, b: str) -> None:
    assert numbers_differ(a, b), (read_numbers(a), read_numbers(b))
    assert numbers_differ(b, a)


@pytest.mark.parametrize("text", ["", "비가 온다", "프로그램을 새로 짰다", "the project is on air", "미니멀리즘", "라이트닝 케이블"])
def test_a_text_without_numbers_states_nothing(text: str) -> None:
    found = read_numbers(text)
    assert (found.amounts, found.codes) == ((), frozenset())
    assert found.variants <= {"air"}


def test_a_model_alone_takes_different_products_for_the_same_and_numbers_mend_it() -> None:
    model = SentenceEncoder.load("ko-en-small")
    pairs = SAME + DIFFERENT
    a_ND, b_ND = (model.encode([pair[side] for pair in pairs], normalize=True) for side in (0, 1))
    close = (a_ND * b_ND).sum(axis=1) >= 0.5
    truth = np.arange(len(pairs)) < len(SAME)
    agree = np.array([not numbers_differ(a, b) for a, b in pairs])
    precision = {name: (said & truth).sum() / said.sum() for name, said in (("without", close), ("with", close & agree))}
    recall = {name: (said & truth).sum() / truth.sum() for name, said in (("without", close), ("with", close & agree))}
    assert precision["without"] < 0.6
    assert precision["with"] == 1
    assert recall["with"] == recall["without"] > 0.8


VECTORS = {"left": [[1.0, 0.0], [1.0, 0.1]], "right": [[1.0, 0.05], [1.0, 0.3], [0.2, 1.0]]}
TEXTS = (["phone 128GB", "phone 256GB"], ["phone 256GB new", "phone 128GB new", "charger"])


@pytest.mark.parametrize("one_to_one", [False, True])
@pytest.mark.parametrize("margin", [False, True], ids=["cosine", "margin"])
def test_a_row_takes_the_best_counterpart_that_does_not_contradict_it(one_to_one: bool, margin: bool) -> None:
    without = match(VECTORS["left"], VECTORS["right"], one_to_one=one_to_one)
    found = match(VECTORS["left"], VECTORS["right"], one_to_one=one_to_one, margin=margin, numbers=True, texts=TEXTS)  # type: ignore[arg-type]
    assert without.matches[0].right == 0
    assert [(pair.left, pair.right) for pair in found.matches] == [(0, 1), (1, 0)]


def test_pairs_taken_best_first_do_not_contradict_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("munjang.analyze.match.ASSIGNED_CELLS", 1)
    found = match(VECTORS["left"], VECTORS["right"], one_to_one=True, numbers=True, texts=TEXTS)
    assert not found.exact
    assert [(pair.left, pair.right) for pair in found.matches] == [(0, 1), (1, 0)]


def test_a_counterpart_is_found_behind_many_that_contradict() -> None:
    right = [[1.0, number / 1_000] for number in range(1, 501)]
    texts = [f"phone {number}GB" for number in range(1, 501)]
    found = match([[1.0, 0.0]], right, numbers=True, texts=(["phone 400GB"], texts))
    assert [(pair.left, pair.right) for pair in found.matches] == [(0, 399)]


@pytest.mark.parametrize("one_to_one", [False, True])
def test_a_row_that_all_contradict_stays_alone(one_to_one: bool) -> None:
    found = match(
        [[1.0, 0.0]], [[1.0, 0.0], [0.9, 0.1]], one_to_one=one_to_one, numbers=True, texts=(["rice 1kg"], ["rice 2kg", "rice 3kg"])
    )
    assert (found.matches, found.left_alone, found.right_alone) == ((), (0,), (0, 1))


def test_texts_that_do_not_fit_the_vectors_are_refused() -> None:
    with pytest.raises(UsageError, match="texts: found 1 and 0 texts"):
        match([[1.0]], [[1.0]], numbers=True, texts=(["a"], []))
    with pytest.raises(UsageError, match="numbers: found no texts"):
        mine_pairs([[1.0], [1.0]], numbers=True)


@pytest.mark.parametrize("tile", [1, 2, 1_000])
def test_pairs_leave_out_what_contradicts_whatever_the_tile(tile: int) -> None:
    texts = ["phone 128GB", "phone 256GB", "phone 128 GB new", "phone 256 GB new"]
    vectors = [[1.0, 0.0], [1.0, 0.01], [1.0, 0.02], [1.0, 0.03]]
    found = mine_pairs(vectors, texts=texts, numbers=True, tile=tile)
    assert {(pair.a, pair.b) for pair in found.pairs} == {(0, 2), (1, 3)}
