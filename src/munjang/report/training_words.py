"""What a training says, in English and in Korean: its report, its data, its objectives, its diagnoses, the ablation."""

from __future__ import annotations

from munjang.report.words import WordTable


class TrainingWord(WordTable):
    """The lines of training."""

    # Training: the page
    TRAINING_OF = ("Training of {name}", "{name} 학습 보고서")
    WHAT = ("what", "항목")
    VALUE = ("value", "값")
    BASE = ("base", "기반 모델")
    RANDOM_WEIGHTS = ("random weights", "무작위 가중치")
    LABELS = ("labels", "라벨")
    DIMENSION = ("dimension", "차원")
    TOKEN_DIMENSION = ("dimension of a token's vector", "토큰 벡터의 차원")
    POOLING = ("pooling", "풀링")
    SETTING = ("setting", "설정")
    SEED_AND_PRECISION = ("seed {seed}, {precision}", "시드 {seed}, {precision}")
    STEPS = ("{count} steps", "{count}스텝")
    EPOCHS = ("{count} epochs", "{count}에폭")
    STAGE_SETTINGS = (
        "stage {number}: {length}, batches of {batch}, learning rate {rate:g}, warm-up {warmup:g}, weight decay {decay:g}",
        "{number}단계: {length}, 배치 크기 {batch}, 학습률 {rate:g}, 워밍업 {warmup:g}, 가중치 감쇠 {decay:g}",
    )
    STAGE_NUMBER = ("stage {number}", "{number}단계")
    LOSS = ("Loss", "손실")
    LOSS_AXIS = ("loss (mean of the step's batch)", "손실 (스텝의 배치 평균)")
    STEP = ("step", "스텝")
    STAGE = ("stage", "단계")
    DEV_SCORE = ("Dev score", "검증 점수")
    TEST_SCORE = ("Test score", "시험 점수")
    METRIC = ("metric", "지표")
    SCORE = ("score", "점수")
    FILE = ("file", "파일")
    RANDOM_PAIRS = ("random pairs", "임의의 쌍")
    ALIKE = ("alike", "비슷한 쌍")
    LESS_ALIKE = ("less alike", "덜 비슷한 쌍")
    COSINES = ("Cosines", "코사인 분포")
    SCORES = ("Scores", "점수 분포")
    COSINES_OF_PAIRS = ("Cosines of pairs", "문장 쌍의 코사인 분포")
    SCORES_OF_PAIRS = ("Scores of pairs", "문장 쌍의 점수 분포")
    SHARE = ("share of pairs", "쌍의 비율")
    NOTHING_MEASURED = ("nothing measured", "잰 값이 없습니다")
    STEP_OF_STAGE = ("step (counted from the beginning of each stage)", "스텝 (단계마다 처음부터 셈)")
    DEV_AXIS = ("dev score ({metric})", "검증 점수 ({metric})")
    CONSTANT_SCORE = (
        "Every pair gets nearly the same score, {answer} (standard deviation {spread:.2g}, of the labels {labels:.2g}).",
        "모든 쌍의 점수가 거의 같습니다: {answer} (표준편차 {spread:.2g}, 라벨의 표준편차 {labels:.2g}).",
    )
    CONSTANT_SCORE_ADVICE = (
        "Lower the learning rate, add warm-up or epochs, and check that the labels of the training data differ (munjang lint).",
        "학습률을 낮추거나 워밍업이나 에폭을 늘리고, 학습 자료의 라벨이 서로 다른지 확인하세요(munjang lint).",
    )
    CONSTANT_CLASS = (
        "{share:.1%} of the pairs get the same answer, {answer}, which is right for {right:.1%} of them.",
        "쌍의 {share:.1%}에 같은 답({answer})을 내며, 그중 {right:.1%}만 맞습니다.",
    )
    CONSTANT_CLASS_ADVICE = (
        "Lower the learning rate, add warm-up or epochs, check the labels (munjang lint), and balance the classes of the training data.",
        "학습률을 낮추거나 워밍업이나 에폭을 늘리고, 라벨을 확인하고(munjang lint), 학습 자료의 분류별 수를 고르게 맞추세요.",
    )
    GUESSING = (
        "The loss stays at {loss:.3f}: a model that guesses has {chance:.3f}{formula}.",
        "손실이 {loss:.3f}에 머뭅니다. 찍기만 하는 모델의 손실이 {chance:.3f}입니다{formula}.",
    )
    GUESSING_ADVICE = (
        "Check that the labels belong to their texts (munjang lint), try another learning rate (lower after a rise, higher where nothing "
        "moves), train for more epochs, or start from a pre-trained model.",
        "라벨이 제 글에 붙어 있는지 확인하고(munjang lint), 학습률을 바꾸거나(손실이 올랐으면 낮게, 움직이지 않으면 높게) 에폭을 늘리거나 "
        "미리 학습한 모델에서 시작하세요.",
    )
    FALLING_DEV = (
        "The dev score falls while the model learns: {metric} is {best:.4f} {before}, and {last:.4f} at step {step}.",
        "학습하는 동안 검증 점수가 떨어집니다. {metric}: {before} {best:.4f}, {step}스텝에서 {last:.4f}.",
    )
    FALLING_DEV_ADVICE = (
        "Lower the learning rate, train for fewer steps, and check that the labels of training and dev data mean the same (munjang lint).",
        "학습률을 낮추거나 스텝을 줄이고, 학습 자료와 검증 자료의 라벨이 같은 뜻인지 확인하세요(munjang lint).",
    )
    BEFORE_TRAINING = ("before the first step", "학습 전")
    AT_STEP = ("at step {step}", "{step}스텝에서")
    COLLAPSED = (
        "The space has collapsed: random pairs have a mean cosine of {cosine:.2f}.",
        "벡터 공간이 무너졌습니다. 임의의 쌍의 평균 코사인이 {cosine:.2f}입니다.",
    )
    COLLAPSED_ADVICE = (
        "Lower the learning rate, use an objective with negatives, or train for fewer steps.",
        "학습률을 낮추거나, 음성 예를 쓰는 목적 함수를 고르거나, 스텝을 줄이세요.",
    )

    # Training: what it says of its data
    NAMED = ("{name}: {line}", "{name}: {line}")
    ROWS = ("{file}: {count:,} rows, {objective}", "{file}: {count:,}행, {objective}")
    ROWS_CHOSEN = ("{file}: {count:,} rows, {objective} (chosen: {reason})", "{file}: {count:,}행, {objective} (고른 까닭: {reason})")
    ROWS_AS_ABOVE = ("{file}: {count:,} rows, as above", "{file}: {count:,}행, 위와 같음")
    ROWS_LEFT_OUT = ("{file}: {count:,} rows left out, first: {first}", "{file}: {count:,}행 제외, 첫 행: {first}")
    WORDS_ADDED = (
        "{count:,} words of the data added to the vocabulary: {first}",
        "데이터의 낱말 {count:,}개를 어휘에 더했습니다: {first}",
    )
    CLASSIFIER_KEPT = (
        "the classifier is kept in the folder {folder}, for `munjang score`",
        "분류기를 {folder} 폴더에 남깁니다(`munjang score`에서 사용)",
    )
    HEAD_KEPT = ("the head of the cross-encoder is kept", "크로스 인코더의 헤드를 그대로 씁니다")
    HEAD_NEW = (
        "the folder's labels are {old}, the data's are {new}: the head is new",
        "모델의 라벨({old})과 데이터의 라벨({new})이 달라 헤드를 새로 만듭니다",
    )
    HEAD_FRESH = ("a fresh head of {kind} on the encoder", "인코더 위에 {kind}의 헤드를 새로 얹습니다")
    TEACHER_VECTORS = (
        "teacher {name}: vectors of {count:,} texts, {dimension} dimensions",
        "교사 {name}: 글 {count:,}건의 벡터, {dimension}차원",
    )
    TEACHER_PROJECTED = (
        "teacher: {wide} dimensions projected to {narrow} (PCA), {share:.1f} % kept",
        "교사: {wide}차원을 {narrow}차원으로 투영(PCA), 분산의 {share:.1f} % 보존",
    )
    PARALLEL_COLUMNS = ("columns {columns}", "열 {columns}")
    PAIRS_REPEATED = ("{count:,} pairs that came before left out", "앞에 나온 쌍 {count:,}개 제외")
    PAIRS_UNTRANSLATED = ("{count:,} rows without a translation left out", "번역이 없는 {count:,}행 제외")
    TEXTS_REPEATED = ("{count:,} texts that came before left out", "앞에 나온 글 {count:,}건 제외")
    QUERIES_LEFT_OUT = (
        "{count:,} of {total:,} queries left out, their documents all have one label",
        "질의 {total:,}개 가운데 문서의 라벨이 모두 같은 {count:,}개 제외",
    )
    QUERIES_CUT = (
        "{count:,} queries with more than {most} documents, of which the most relevant are kept",
        "질의 {count:,}개는 문서가 {most}개보다 많아 가장 관련 있는 것만 남김",
    )
    RANDOM_NEGATIVES = (
        "up to {most} random answers of other rows are each row's negatives; harder ones: munjang mine",
        "다른 행에서 무작위로 뽑은 답을 최대 {most}개까지 음성 예로 씀. 더 어려운 음성 예는 munjang mine으로 찾습니다",
    )
    LABELS_TURNED = (
        "labels are inverted in this file (0 means same) and were turned",
        "이 파일은 라벨이 반대여서(0이 같음) 뒤집어 읽었습니다",
    )
    SCALE_DOUBTFUL = (
        "no score is above {top:g} though the scale is {low:g} to {high:g}: is the scale right?",
        "척도는 {low:g}~{high:g}인데 {top:g}보다 큰 점수가 없습니다. 척도가 맞는지 확인하세요",
    )

    # Training: objectives, and why they were chosen
    OBJECTIVE_COSENT = (
        "CoSENT: cosines in the order of the scores, scale {scale:g}",
        "CoSENT: 코사인의 순서를 점수의 순서에 맞춤, 배율 {scale:g}",
    )
    OBJECTIVE_ANGLE = (
        "AnglE: angles in complex space in the order of the scores, scale {scale:g}",
        "AnglE: 복소 공간의 각을 점수의 순서에 맞춤, 배율 {scale:g}",
    )
    OBJECTIVE_CLASSIFICATION = (
        "cross-entropy of softmax(W·({parts})) over {classes} classes",
        "softmax(W·({parts}))의 교차 엔트로피, 클래스 {classes}개",
    )
    OBJECTIVE_REGRESSION = ("mean squared error of cos(u, v) against the score", "cos(u, v)와 점수의 평균 제곱 오차")
    OBJECTIVE_TRIPLET = ("triplets, {distance} distance, margin {margin:g}", "세 문장 비교(triplet), {distance} 거리, 여백 {margin:g}")
    OBJECTIVE_CONTRASTIVE = ("contrastive, {distance} distance, margin {margin:g}", "대조 학습, {distance} 거리, 여백 {margin:g}")
    OBJECTIVE_ONLINE_CONTRASTIVE = (
        "contrastive over the hard pairs of a batch, {distance} distance, margin {margin:g}",
        "배치의 어려운 쌍만 쓰는 대조 학습, {distance} 거리, 여백 {margin:g}",
    )
    OBJECTIVE_IN_BATCH = (
        "in-batch negatives one way, {similarity} × {factor:g}, further columns are hard negatives",
        "배치 안의 음성 예(한 방향), {similarity} × {factor:g}, 셋째 열부터는 어려운 음성 예",
    )
    OBJECTIVE_IN_BATCH_BOTH = (
        "in-batch negatives both ways, {similarity} × {factor:g}, further columns are hard negatives",
        "배치 안의 음성 예(양방향), {similarity} × {factor:g}, 셋째 열부터는 어려운 음성 예",
    )
    OBJECTIVE_MARGIN_MSE = (
        "mean squared error of the margins ({similarity}) against the teacher's",
        "점수 차이({similarity})와 교사의 점수 차이의 평균 제곱 오차",
    )
    OBJECTIVE_SQUARED = ("distillation: squared distance from the teacher's vectors", "증류: 교사 벡터와의 제곱 거리")
    OBJECTIVE_MSE = ("distillation: mean squared difference from the teacher's vectors", "증류: 교사 벡터와의 평균 제곱 차이")
    OBJECTIVE_COSINE = ("distillation: 1 − cosine with the teacher's vectors", "증류: 1 − 교사 벡터와의 코사인")
    OBJECTIVE_SCORE_DISTILLATION = (
        "distillation: the cosines of a batch (× {scale:g}) follow the teacher's (× {teacher_scale:g})",
        "증류: 배치 안의 코사인(× {scale:g})을 교사의 코사인(× {teacher_scale:g})에 맞춤",
    )
    OBJECTIVE_TOKEN_DISTILLATION = (
        "distillation: distance from the teacher's token vectors (× {token_weight:g}) and vectors",
        "증류: 교사의 토큰 벡터(× {token_weight:g}) 및 벡터와의 거리",
    )
    OBJECTIVE_LATE_INTERACTION = (
        "in-batch negatives by vectors (cosine × {scale:g}) and, with weight {late_weight:g}, by tokens (MaxSim × {late_scale:g})",
        "배치 안의 음성 예, 벡터(코사인 × {scale:g})와 토큰(MaxSim × {late_scale:g}, 가중치 {late_weight:g})으로 비교",
    )
    OBJECTIVE_MAXSIM = (
        "in-batch negatives by tokens, MaxSim × {scale:g}, further columns are hard negatives",
        "배치 안의 음성 예, 토큰으로 비교(MaxSim × {scale:g}), 셋째 열부터는 어려운 음성 예",
    )
    OBJECTIVE_MAXSIM_SCORES = (
        "MaxSim (× {scale:g}) of a row's texts follows a teacher's scores (× {teacher_scale:g}), in-batch negatives with weight "
        "{batch_weight:g}",
        "행마다 MaxSim(× {scale:g})을 교사의 점수(× {teacher_scale:g})에 맞춤, 배치 안의 음성 예의 가중치 {batch_weight:g}",
    )
    OBJECTIVE_MATRYOSHKA = ("Matryoshka at {steps} around {inner}", "마트료시카 {steps}, 안쪽은 {inner}")
    OBJECTIVE_MATRYOSHKA_CUT = (
        "Matryoshka at {steps} (the full {dimension} dimensions are not trained) around {inner}",
        "마트료시카 {steps} (전체 {dimension}차원은 학습하지 않음), 안쪽은 {inner}",
    )
    OBJECTIVE_MLM = (
        "masked language model, {share:.0%} of {what} hidden, guessed among {among}",
        "가린 낱말 맞히기(MLM), {what}의 {share:.0%}를 가리고 {among}에서 맞힘",
    )
    WHOLE_WORDS = ("whole words", "낱말")
    PIECES = ("pieces", "조각")
    PIECES_OF_DATA = ("the data's pieces", "데이터에 나온 조각")
    WHOLE_VOCABULARY = ("the whole vocabulary", "전체 어휘")
    OBJECTIVE_SIMCSE = (
        "unsupervised SimCSE, each text twice with dropout, cosine / {temperature:g}",
        "비지도 SimCSE, 같은 글을 드롭아웃으로 두 번 읽음, 코사인 / {temperature:g}",
    )
    OBJECTIVE_TSDAE = (
        "TSDAE, {share:.0%} of the pieces deleted, a decoder writes the text from its vector",
        "TSDAE, 조각의 {share:.0%}를 지우고 디코더가 벡터에서 글을 되살림",
    )
    LOSS_MSE = ("one score a pair, mean squared error", "쌍마다 점수 하나, 평균 제곱 오차")
    LOSS_BCE = ("one score a pair, binary cross-entropy", "쌍마다 점수 하나, 이진 교차 엔트로피")
    LOSS_CROSS_ENTROPY = ("one score a class, cross-entropy", "클래스마다 점수 하나, 교차 엔트로피")
    LOSS_MARGIN_MSE = ("mean squared error of the margins against the teacher's", "점수 차이와 교사의 점수 차이의 평균 제곱 오차")
    LOSS_MULTIPLE_NEGATIVES = (
        "the first document must win over the query's others, cross-entropy",
        "첫 문서가 질의의 다른 문서보다 앞서야 함, 교차 엔트로피",
    )
    LOSS_LISTNET = ("a query's documents ordered together, ListNet", "질의의 문서를 한꺼번에 정렬, ListNet")
    LOSS_LAMBDALOSS = ("a query's documents ordered together, LambdaLoss", "질의의 문서를 한꺼번에 정렬, LambdaLoss")
    LOSS_RANKNET = ("a query's documents ordered two by two, RankNet", "질의의 문서를 둘씩 정렬, RankNet")
    CHOSEN_DISTILLATION = (
        "each row carries a teacher's vector, so the student learns to return it",
        "행마다 교사의 벡터가 있으므로 학생이 그 벡터를 배웁니다",
    )
    CHOSEN_IN_BATCH_NEGATIVES = (
        "rows are anchor, positive and negatives without labels, so each anchor must find its positive among them and the whole batch",
        "행이 라벨 없는 기준 문장, 양성 예, 음성 예이므로 기준 문장이 음성 예와 배치 전체에서 제 양성 예를 찾게 합니다",
    )
    CHOSEN_MAXSIM = (
        "the model has a vector for each token, so each question must find its text in the batch by MaxSim",
        "토큰마다 벡터가 있는 모델이므로 질문이 배치에서 제 글을 MaxSim으로 찾게 합니다",
    )
    CHOSEN_MAXSIM_SCORES = (
        "the model has a vector for each token, and rows carry a teacher's scores, which MaxSim follows",
        "토큰마다 벡터가 있는 모델이고 행마다 교사의 점수가 있으므로 MaxSim을 그 점수에 맞춥니다",
    )
    CHOSEN_MARGINS = (
        "triplets carry a teacher's scores, so the student learns its margins",
        "세 문장마다 교사의 점수가 있으므로 학생이 점수 차이를 배웁니다",
    )
    CHOSEN_CLASSES = (
        "pairs are labelled with {classes} classes that have no order, so a classifier over both vectors learns them, as the paper does "
        "for NLI",
        "쌍의 라벨이 순서 없는 클래스 {classes}개이므로 논문이 NLI에서 하듯 두 벡터 위의 분류기가 배웁니다",
    )
    CHOSEN_SCORES = (
        "pairs carry graded scores, and CoSENT learns their order, which is what the rank correlation measures, in any range; "
        "the paper's own is regression",
        "쌍마다 점수가 있고 CoSENT는 범위와 상관없이 순위 상관이 재는 순서를 배웁니다. 논문의 방법은 regression입니다",
    )
    CHOSEN_BINARY = (
        "pairs match or do not, so the hard ones of each batch are drawn together or pushed apart",
        "쌍이 맞거나 맞지 않으므로 배치의 어려운 쌍을 당기거나 밀어냅니다",
    )
    CHOSEN_PAIRS = (
        "pairs without labels are taken as matches, so each text must find its partner among the batch's others",
        "라벨 없는 쌍은 맞는 쌍으로 보고 글마다 배치의 다른 글 사이에서 제 짝을 찾게 합니다",
    )
    CHOSEN_LIST_MARGINS = (
        "lists carry a teacher's scores, so the model learns its margins",
        "목록마다 교사의 점수가 있으므로 모델이 점수 차이를 배웁니다",
    )
    CHOSEN_LISTS = (
        "rows are a query, its answer and texts that are none, so the answer must win over the row's others",
        "행이 질의, 답, 답이 아닌 글이므로 답이 같은 행의 다른 글보다 앞서야 합니다",
    )
    CHOSEN_PAIR_CLASSES = (
        "pairs are labelled with {classes} classes, so each class has a score of its own",
        "쌍의 라벨이 클래스 {classes}개이므로 클래스마다 점수를 둡니다",
    )
    SEVERAL = ("several", "여러")
    CHOSEN_PAIR_SCORES = (
        "pairs carry graded scores, so one number learns them by regression, as the paper's BERT does",
        "쌍마다 점수가 있으므로 논문의 BERT처럼 숫자 하나가 회귀로 배웁니다",
    )
    CHOSEN_PAIR_BINARY = (
        "pairs match or do not, so one number learns the probability that they do",
        "쌍이 맞거나 맞지 않으므로 숫자 하나가 맞을 확률을 배웁니다",
    )
    CHOSEN_PAIR_MATCHES = (
        "pairs without labels are taken as matches, so the answer must win over random answers of other rows",
        "라벨 없는 쌍은 맞는 쌍으로 보고 답이 다른 행의 무작위 답보다 앞서야 합니다",
    )

    # Ablation
    ABLATION = ("Ablation: pooling, objective, concatenation", "제거 실험: 풀링, 목적 함수, 벡터 이어 붙이기")
    ABLATION_NOTE = ("Measured on {file}. Before training: {score:.2f}.", "측정 파일: {file}. 학습 전 점수: {score:.2f}")
    PART = ("part", "실험")
    OBJECTIVE = ("objective", "목적 함수")
    CONCATENATION = ("concatenation", "이어 붙이기")
    SPEARMAN = ("Spearman × 100", "스피어만 상관 × 100")
    SEEDS = ("seeds", "시드 수")
