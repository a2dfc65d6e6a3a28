"""What reports say, in English and in Korean, in tables; the browser's page has its own beside it (serve/page/words_*.js).

`say(Word.TEXTS, "ko", count=3)` is one of its lines in one language, with {names} filled in. A `Message` is such a line that is made in one
place and shown in another: it is its English text, as the command line prints it, and a report says it in its own language. Names of
commands, options, files, metrics and objectives are not words and stay as they are.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from munjang.wording import Language


class WordTable(Enum):
    """A table of lines: English, Korean. Each subject has its own."""


class Word(WordTable):
    """The lines of analyses: topics, maps, keywords, similarity, tokens; those of training are `training_words.TrainingWord`."""

    # Topics
    TOPICS = ("Topics", "주제")
    TOPICS_OF = ("Topics of {file}", "{file}의 주제")
    TOPICS_LEAD = (
        "A bubble is a topic, a dot a document; near bubbles are near in meaning. A number names the same topic everywhere.",
        "원은 주제, 점은 문서입니다. 가까이 있는 원은 뜻도 가깝습니다. 같은 번호는 어디서나 같은 주제를 가리킵니다.",
    )
    TOPICS_FOOTER = ("Made by munjang topics.", "munjang topics로 만든 보고서입니다.")
    TOPIC_WITHOUT_WORDS = ("topic {id}", "주제 {id}")
    MAP = ("Map", "지도")
    HIERARCHY = ("Hierarchy", "주제의 계층")
    OVER_TIME = ("Over time", "시간에 따른 변화")
    PER_CLASS = ("Per class", "분류별 주제")
    MAP_OF_TOPICS = ("map of topics", "주제 지도")
    TREE_OF_TOPICS = ("tree of topics", "주제의 계층 나무")
    TOPICS_OVER_TIME = ("topics over time", "시간에 따른 주제의 변화")
    NUMBER_OF_DOCUMENTS = ("documents", "문서 수")
    NUMBER_OF_TOPICS = ("topics", "주제 수")
    OUTLIERS = ("outliers", "이상치")
    COHERENCE_NPMI = ("coherence (NPMI)", "일관성 (NPMI)")
    DIVERSITY = ("diversity", "다양성")
    METHOD = ("method", "방법")
    TOPIC_FACTS = ("{count:,} documents · coherence {coherence:.2f}", "문서 {count:,}건 · 일관성 {coherence:.2f}")
    TOPIC_TITLE = ("{id}: {name} ({count:,} documents)", "{id}: {name} (문서 {count:,}건)")
    PERIOD_TITLE = ("{period}: {count:,} documents", "{period}: 문서 {count:,}건")
    CLASS = ("class", "분류")
    LARGEST_TOPICS = ("topics", "주요 주제")

    # The map of texts, keywords
    MAP_LEAD_CLUSTERS = ("{count:,} texts, coloured by cluster", "글 {count:,}건, 색은 군집")
    MAP_LEAD_COLUMN = ("{count:,} texts, coloured by {column}", "글 {count:,}건, 색은 {column} 열")
    CLUSTER = ("cluster {number}", "군집 {number}")
    SEARCH = ("Search", "검색")
    MAP_OF_TEXTS = ("Map of texts", "글의 지도")
    MAP_THINNED = ("one in {step} of {count:,} points; save() draws all", "점 {count:,}개 가운데 {step}개마다 하나; save()는 모두 그립니다")
    ZOOM_IN = ("Zoom in", "확대")
    ZOOM_OUT = ("Zoom out", "축소")
    SHOW_ALL = ("Show all", "전체 보기")
    OTHERS = ("others", "그 밖")
    NONE = ("none", "없음")
    KEYWORDS = ("Keywords", "핵심어")
    TEXTS = ("{count:,} texts", "글 {count:,}건")
    NO_KEYWORDS = ("no keywords", "핵심어가 없습니다")

    # Similarity, inspection
    SIMILARITY_OF = ("Similarity of {rows} x {columns} texts", "글 {rows} x {columns}건의 유사도")
    SCORES_OF_TEXTS = ("Scores", "유사도 점수")
    MODEL = ("Model {model}", "모델 {model}")
    SIMILAR_FOOTER = ("Made by munjang similar --matrix", "munjang similar --matrix로 만든 보고서입니다.")
    INSPECT_FOOTER = ("Made by munjang inspect", "munjang inspect로 만든 보고서입니다.")
    INSPECT_TITLE = ("Two sentences, token by token", "두 문장을 토큰끼리 견주기")
    INSPECT_LEAD = (
        "{first} · {second} · score {score:.4f}{verdict} · model {model}",
        "{first} · {second} · 점수 {score:.4f}{verdict} · 모델 {model}",
    )
    TOKEN_COSINES = ("Cosine of every token with every token", "토큰과 토큰의 코사인 유사도")
    TOKEN_SHARES = ("What every pair adds to the score, in hundredths", "토큰 쌍이 점수에 더하는 몫 (100분의 1 단위)")
    TOKEN_PAIRS = ("The pairs that carry it", "점수를 이루는 주요 토큰 쌍")
    FIRST = ("first", "첫째 문장")
    SECOND = ("second", "둘째 문장")
    COSINE = ("cosine", "코사인")
    ADDS = ("adds to the score", "점수에 더하는 몫")
    ADDS_UP = ("All {count:,} pairs together add up to {total:.4f}, the score.", "쌍 {count:,}개를 모두 더한 값이 점수입니다: {total:.4f}")
    NO_SHARES = (
        "This model's vector is no weighted sum of its tokens, so the score cannot be split exactly; best partners are shown.",
        "이 모델의 벡터는 토큰의 가중합이 아니어서 점수를 정확히 나눌 수 없습니다. 토큰마다 가장 가까운 짝을 보여 줍니다.",
    )
    TOKENS = ("tokens", "토큰")
    LAYERS = ("layers", "층")
    TOKEN = ("token", "토큰")
    TOKEN_ID = ("id", "번호")
    SEGMENT = ("segment", "세그먼트")
    POSITION = ("position", "위치")
    MASK = ("mask", "마스크")
    CHARACTERS = ("characters", "글자 위치")
    POOLED = ("pooled", "풀링 포함")
    YES = ("yes", "예")
    NO = ("no", "아니요")
    LAYER_OUTPUT = ("output", "출력")
    SHAPE = ("shape", "모양")
    MEAN_NORM = ("mean norm", "평균 노름")
    VECTOR = ("vector", "벡터")
    VECTOR_SIZE = ("{count} numbers, norm {norm:.4f}", "숫자 {count}개, 노름 {norm:.4f}")
    VECTOR_BEGINS = ("begins", "앞부분")
    TOKEN_VECTORS = ("token vectors", "토큰 벡터")
    EMBEDDINGS = ("embeddings", "임베딩")
    LAYER = ("layer {number}", "{number}층")
    POOLING_LAYER = ("pooling ({modes})", "풀링 ({modes})")
    DENSE_LAYER = ("dense ({activation})", "밀집층 ({activation})")
    LAYER_NORM = ("layer norm", "층 정규화")
    NORMALIZE = ("normalize", "길이 정규화")
    CUT = ("cut", "차원 자르기")
    NEARLY_THE_SAME = ("nearly the same", "거의 같음")
    VERY_SIMILAR = ("very similar", "매우 비슷함")
    SIMILAR = ("similar", "비슷함")
    SOMEWHAT_SIMILAR = ("somewhat similar", "조금 비슷함")
    NOT_SIMILAR = ("not similar", "비슷하지 않음")

    # Classifiers of texts
    CLASSIFIER_OF = ("Classifier made of {file}", "{file}로 만든 분류기")
    CLASSIFIER_ON = ("Classifier on {file}", "{file}에서 잰 분류기")
    CLASSIFY_FOOTER = ("Made by munjang classify.", "munjang classify로 만든 보고서입니다.")
    EXAMPLES = ("{count:,} examples", "예 {count:,}개")
    HELD_OUT_QUALITY = (
        "Measured on examples that were held out: no classifier had seen them.",
        "떼어 둔 예로 잰 값입니다. 학습에 쓰지 않은 글만 셌습니다.",
    )
    LABEL = ("label", "라벨")
    LABELS_OF_TEXTS = ("Labels", "라벨")
    ACCURACY = ("accuracy", "정확도")
    MICRO_F1 = ("micro-F1", "마이크로 F1")
    MACRO_F1 = ("macro-F1", "매크로 F1")
    CALIBRATION_ERROR = ("calibration error (15 bins)", "보정 오차 (15구간)")
    INTERVAL_95 = ("95 % interval", "95% 신뢰구간")
    PRECISION = ("precision", "정밀도")
    RECALL = ("recall", "재현율")
    NUMBER_OF_TEXTS = ("texts", "글 수")
    CONFUSION = ("Confusion (rows: gold, columns: predicted)", "혼동 행렬 (행: 정답, 열: 예측)")
    CALIBRATION = ("Calibration", "확률 보정")
    CALIBRATION_LEAD = (
        "Of answers with a probability of 0.8, eight in ten should be right; the line of the classifier should lie on the diagonal.",
        "확률이 0.8인 답은 열에 여덟이 맞아야 합니다. 분류기의 선이 대각선에 가까울수록 확률을 믿을 수 있습니다.",
    )
    PROBABILITY = ("probability", "확률")
    SHARE_RIGHT = ("share that is right", "맞은 비율")
    PERFECT = ("perfect", "이상적인 값")
    LEARNING_CURVE = ("Learning curve", "학습 곡선")
    EXAMPLES_A_LABEL = ("examples a label", "라벨마다 예의 수")
    DOUBTFUL_LABELS = ("Doubtful labels", "의심스러운 라벨")
    DOUBTFUL_LEAD = (
        "Classifiers that had not seen these rows are sure of another label. Look at them first.",
        "이 행을 보지 않은 분류기가 다른 라벨을 확신합니다. 먼저 살펴보세요.",
    )
    ROW = ("row", "행")
    SUGGESTED = ("suggested", "제안")
    DOUBT = ("doubt", "의심")
    TEXT = ("text", "글")
    DIFFERENCE = ("difference", "차이")
    COMPARISON = ("Comparison with {other}", "{other}와 비교")


_COUNTED = re.compile(r"(\{count[^}]*\} )(\w+s)\b")
"""A count and its noun in the plural, as the table has them."""
_SINGULAR = {"queries": "query"}


def say(word: WordTable, language: Language = "en", **values: Any) -> str:
    """Return a line of the table in a language, with its {names} filled in.

    >>> say(Word.TEXTS, "ko", count=1200), say(Word.TEXTS, count=1200), say(Word.TEXTS, count=1)
    ('글 1,200건', '1,200 texts', '1 text')
    """
    english, korean = word.value
    if values.get("count") == 1:
        english = _COUNTED.sub(lambda found: found[1] + _SINGULAR.get(found[2], found[2][:-1]), english)
    spoken = {name: in_language(value, language) if isinstance(value, str) else value for name, value in values.items()}
    return str(korean if language == "ko" else english).format(**spoken)


class Message(str):
    """A line of the table with its values: English wherever it is a text, and any language where a report asks.

    >>> Message(Word.LAYER, number=2)
    'layer 2'
    >>> in_language(Message(Word.LAYER, number=2), "ko")
    '2층'
    """

    __slots__ = ("values", "word")
    word: WordTable
    values: dict[str, Any]

    def __new__(cls, word: WordTable, **values: Any) -> Message:
        """Make the English text, and keep what it is made of."""
        made = super().__new__(cls, say(word, "en", **values))
        made.word, made.values = word, values
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (self.word, self.values)


def _make(word: WordTable, values: dict[str, Any]) -> Message:
    return Message(word, **values)


def in_language(text: str, language: Language) -> str:
    """Return a message in a language; a text that is no message stays as it is."""
    return say(text.word, language, **text.values) if isinstance(text, Message) else text
