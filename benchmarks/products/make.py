"""Write the files of this folder: 200 product titles of invented brands, a dictionary of them, and a question for each title.

    python benchmarks/products/make.py

Brands, kinds of products and their other names are written here by hand; who sells what, in which words and with which errors of spacing,
is drawn with a seed (--seed; --folder writes another draw elsewhere). A pair of brand and kind stands in one title only, so one title
answers a question.

exact       brand and kind in the words of the title
brand       the brand in another spelling than in the title
kind        another word for the kind of product
spacing     other spelling or other word, and no spaces, or a space in the wrong place
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

TITLES = 200

BRANDS = """
바람막이왕|바람 막이 왕|바람막이킹
누보하임|누보 하임|nuvoheim
새벽결|새벽 결|saebyeokgyeol
모락이네|모락 이네|morakine
하늘자리|하늘 자리|하늘자리몰
코지오브|코지 오브|cozyov
두레밥상|두레 밥상|두레밥
온담은|온 담은|ondameun
라루즈벨|라 루즈 벨|larouzbel
퓨어릿|퓨어 릿|purelit
숲속의집|숲 속의 집|숲속집
그레이톤즈|그레이 톤즈|graytones
바른손맛|바른 손맛|바른손 맛
달보드레|달 보드레|dalbodre
에어핏플러스|에어핏 플러스|에어핏+
피노키친|피노 키친|pinokitchen
도톰이네|도톰 이네|도톰이
뽀송마을|뽀송 마을|뽀송뽀송마을
스윗밀즈|스윗 밀즈|sweetmeals
메이플루트|메이플 루트|mapleroot
파랑새공방|파랑새 공방|파랑새공작소
오르빛나|오르 빛나|orbitna
토닥베어|토닥 베어|todakbear
리브엣홈|리브 엣 홈|livathome
""".strip()
"""A brand, and how else it is written."""

KINDS = """
휴대폰 케이스|핸드폰 케이스|폰케이스
텀블러|보온컵
사과주스|사과쥬스
후드티|후디
노트북 거치대|랩탑 스탠드
슬리퍼|실내화
수납함|정리함
무선충전기|와이어리스 차저
이어폰|이어버드
프라이팬|후라이팬
커튼|커텐
캐리어|여행가방
물티슈|웻티슈
마우스패드|장패드
텐트|천막
요가매트|운동매트
베개|필로우
스웨터|니트
선크림|썬크림|자외선차단제
양말|삭스
""".strip()
"""A kind of product, and other words for it."""

DETAILS = """
블랙|아이보리|네이비|민트|라이트그레이|대용량|미니|2개입|3개 세트|국내생산|무료배송|신상|선물용|사무실용|캠핑용|겨울용
여름용|가벼운|접이식|프리미엄|저소음|휴대용|방수|세탁 가능|친환경
""".strip().replace("\n", "|")
"""What else stands in titles."""


def write_title(brand: str, kind: str, chance: random.Random) -> str:
    """Return a title as shops write it."""
    details = chance.sample(DETAILS.split("|"), 3)
    return chance.choice(
        (
            f"[{brand}] {details[0]} {kind} {details[1]} {details[2]}",
            f"{brand} {kind} {details[0]} {details[1]}",
            f"{details[0]} {brand} {details[1]} {kind} ({details[2]})",
            f"{kind} {details[0]} / {brand} 공식 {details[1]}",
        )
    )


def break_spaces(text: str, chance: random.Random) -> str:
    """Return a text without spaces, or with one in a wrong place."""
    joined = "".join(text.split())
    if chance.random() < 0.5:
        return joined
    at = chance.randrange(2, len(joined) - 1)
    return f"{joined[:at]} {joined[at:]}"


def main() -> None:
    """Write titles.tsv, questions.tsv and dictionary.tsv."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    brands = [line.split("|") for line in BRANDS.splitlines()]
    kinds = [line.split("|") for line in KINDS.splitlines()]
    titles, questions = ["id\ttext"], ["kind\tid\ttext"]
    for number, (brand, kind) in enumerate(chance.sample([(brand, kind) for brand in brands for kind in kinds], TITLES)):
        id, written, named = f"p{number:03}", chance.choice(brand), chance.choice(kind)
        titles.append(f"{id}\t{write_title(written, named, chance)}")
        other_brand = chance.choice([each for each in brand if each != written])
        other_kind = chance.choice([each for each in kind if each != named])
        asked = (
            ("exact", f"{written} {named}"),
            ("brand", f"{other_brand} {named}"),
            ("kind", f"{written} {other_kind}"),
            ("spacing", break_spaces(chance.choice((f"{other_brand} {named}", f"{written} {other_kind}")), chance)),
        )[number % 4]
        questions.append(f"{asked[0]}\t{id}\t{asked[1]}")
    lines = [f"word\t{brand[0]}\tNNP" for brand in brands]
    lines += [f"variant\t{other}\t{brand[0]}" for brand in brands for other in brand[1:]]
    lines += ["synonym\t" + "\t".join(kind) for kind in kinds]
    for name, content in (("titles", titles), ("questions", questions), ("dictionary", lines)):
        (options.folder / f"{name}.tsv").write_text("\n".join(content) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
