"""Eleven small collections, written for this test: a question finds its answer first, although others share light words with it.

In a small collection every word is rare, so BM25 alone cannot tell that 있다, 수 or "need" says nothing. The bundled model and Kiwi are
used; the questions are such that the model itself knows the answer, since how well it knows meaning is not what is tested here.
"""

from __future__ import annotations

from functools import cache

import pytest

from munjang.library.library import Library
from munjang.models.sentence_encoder import SentenceEncoder

COLLECTIONS = {
    "shop": (
        [
            "비밀번호를 잊어버렸어요. 어떻게 다시 설정하나요?",
            "I forgot my password. How do I set a new one?",
            "주문한 상품이 언제 도착하나요?",
            "When will the parcel that I ordered arrive?",
            "환불은 며칠 안에 받을 수 있나요?",
            "How many days does a refund take?",
            "신용카드로 결제할 수 있나요?",
            "Can I pay by credit card?",
            "배송지 주소를 바꾸고 싶어요.",
            "Is there a discount for students?",
        ],
        {
            "학생 할인 있나요": 9,
            "카드로 계산할 수 있어요?": 6,
            "택배가 언제 오는지 알 수 있을까요": 2,
            "돈을 돌려받는 데 얼마나 걸리나요?": 4,
        },
    ),
    "library desk": (
        [
            "책은 한 번에 다섯 권까지 빌릴 수 있습니다.",
            "The reading room closes at nine in the evening.",
            "반납이 늦으면 하루에 백 원의 연체료가 있습니다.",
            "You may print and copy on the second floor.",
            "회원증을 잃어버리면 안내 데스크에 알려 주세요.",
        ],
        {"열람실은 언제 문을 닫나요?": 1, "프린터를 쓸 수 있는 곳이 있나요": 3, "카드를 분실했는데 어떻게 하나요": 4},
    ),
    "kitchen": (
        [
            "양파를 먼저 볶은 뒤에 고기를 넣는 것이 좋습니다.",
            "Let the dough rest in the fridge overnight.",
            "국이 짜면 물을 더 넣을 수 있습니다.",
            "A sharp knife is safer than a blunt one.",
            "남은 밥은 얼려 두면 됩니다.",
        ],
        {"남은 밥은 어떻게 하면 되나요?": 4, "찌개가 너무 짜게 됐는데 어떻게 하죠": 2, "칼이 무뎌도 되나요": 3},
    ),
    "clinic": (
        [
            "예약을 바꿀 수 있나요? 전날까지 전화해 주세요.",
            "Bring your insurance card on the first visit.",
            "감기약을 먹을 때는 운전을 하지 않는 것이 좋습니다.",
            "Vaccinations are given on Tuesday mornings.",
            "진단서는 접수처에서 받을 수 있습니다.",
        ],
        {"보험 카드를 가지고 가야 하나요": 1, "처음 갈 때 필요한 것이 있나요?": 1, "예약 날짜를 바꾸고 싶어요": 0},
    ),
    "office": (
        [
            "회의실은 하루 전에 예약할 수 있습니다.",
            "Expense reports are due on the last Friday of the month.",
            "휴가는 팀장에게 먼저 알려 주세요.",
            "The VPN must be on when you work from home.",
            "새 노트북은 총무팀에 신청하면 됩니다.",
        ],
        {"재택근무 할 때 주의할 것이 있나요": 3, "비용 보고서는 언제까지 내야 하나요": 1, "휴가를 쓰고 싶은데 누구에게 말하면 되나요": 2},
    ),
    "train": (
        [
            "표는 출발 전까지 취소할 수 있습니다.",
            "Bicycles are not allowed during rush hour.",
            "짐이 있으면 맨 뒤 칸을 이용할 수 있습니다.",
            "Children under six travel free of charge.",
            "열차 안에서 물을 살 수 있습니다.",
        ],
        {"자전거를 가지고 탈 수 있나요": 1, "다섯 살 아이도 요금이 있나요?": 3, "열차에서 마실 물을 팔고 있나요": 4},
    ),
    "garden": (
        [
            "토마토는 물을 많이 주면 뿌리가 썩을 수 있습니다.",
            "Prune roses at the end of winter.",
            "그늘에서도 잘 자라는 것이 있습니다: 고사리와 이끼.",
            "Coffee grounds keep slugs away.",
            "씨앗은 봄에 뿌리는 것이 좋습니다.",
        ],
        {"고사리를 심을 수 있는 곳이 있나요": 2, "커피 찌꺼기로 할 수 있는 것이 있나요": 3, "그늘에서 키울 수 있는 식물이 있나요": 2},
    ),
    "school": (
        [
            "The exam covers chapters one to five.",
            "숙제는 월요일까지 내면 됩니다.",
            "I would like to change my elective course.",
            "도시락을 가져올 수 있는 날은 금요일입니다.",
            "Parents can meet the teachers in October.",
        ],
        {"시험 범위를 알 수 있나요": 0, "선택 과목을 바꿀 수 있을까요?": 2, "학부모 상담은 언제 있나요": 4},
    ),
    "phone": (
        [
            "화면이 깨지면 수리를 받을 수 있습니다.",
            "The battery lasts about two days.",
            "사진은 자동으로 저장되게 할 수 있습니다.",
            "It can be charged without a cable.",
            "소리가 나지 않으면 다시 켜 보세요.",
        ],
        {"무선 충전 할 수 있나요?": 3, "배터리는 얼마나 가나요": 1, "깨진 화면을 고칠 수 있나요": 0},
    ),
    "english questions": (
        [
            "How do I change my address?",
            "여권을 갱신하려면 무엇이 필요한가요?",
            "Where can I park my car?",
            "수영장은 몇 시에 여나요?",
            "Do I need a visa?",
        ],
        {"What do I need to renew my passport?": 1, "When does the pool open?": 3, "Where do I leave my vehicle?": 2},
    ),
    "rules": (
        [
            "반려동물을 데리고 들어올 수 없습니다.",
            "Smoking is forbidden in the whole building.",
            "음식물은 정해진 곳에서만 먹을 수 있습니다.",
            "Visitors must wear a badge.",
            "자전거는 지하에 세울 수 있습니다.",
        ],
        {"담배를 피울 수 있는 곳이 있나요": 1, "강아지와 같이 갈 수 있나요": 0, "방문자는 무엇을 달아야 하나요": 3},
    ),
}


@cache
def model() -> SentenceEncoder:
    return SentenceEncoder.load()


@pytest.mark.parametrize("name", COLLECTIONS)
def test_a_question_finds_its_answer_first_in_a_small_collection(name, tmp_path):
    pytest.importorskip("kiwipiepy", reason="the extra korean is not installed")
    texts, questions = COLLECTIONS[name]
    with Library.open(tmp_path / "small.db", model()) as library:
        library.add([{"id": str(number), "text": text} for number, text in enumerate(texts)])
        firsts = {question: int(library.search(question, k=1)[0].id) for question in questions}
    assert firsts == questions
