"""Texts that break programs, by name. Each must give an answer or a clear error at every door."""

from __future__ import annotations

import unicodedata

SPECIAL = "[CLS] [SEP] [PAD] [MASK] [UNK] <s> </s> <pad> <mask> <unk>"

ODD_TEXTS = {
    "empty": "",
    "spaces": "   \t  ",
    "newlines": "\n\r\n\n",
    "NUL": "rain\x00snow",
    "control characters": "".join(map(chr, range(1, 32))) + "\x7f\x9b",
    "high surrogate": "rain \ud800 snow",
    "low surrogate": "\udfff",
    "surrogates in the wrong order": "\udc00\ud800",
    "last code point": "\U0010ffff",
    "noncharacters": "\ufffe\uffff\ufdd0",
    "byte order mark": "\ufeffrain",
    "emoji family": "👨‍👩‍👧‍👦 👍🏽 🏳️‍🌈 🇰🇷",
    "ten thousand joiners": "👩" + "\u200d👩" * 10_000,
    "right to left": "שלום עולם مرحبا بالعالم",
    "bidi overrides": "\u202e\u2066evil\u2069\u202c rain",
    "half a million combining marks": "e" + "\u0301" * 500_000,
    "jamo": "ㅂㅣㄱㅏ ㅇㅗㄴㄷㅏ",
    "conjoining jamo": "\u1107\u1175\u1100\u1161 \u110b\u1169\u11ab\u1103\u1161",
    "endless conjoining jamo": "\u1100" * 50_000 + "\u1161" * 50_000,
    "decomposed": unicodedata.normalize("NFD", "비가 온다, café"),
    "full width": "ＲＡＩＮ　１２３！",
    "special tokens": SPECIAL,
    "one word of a megabyte": "a" * 1_000_000,
    "one Korean word of a megabyte": "가" * 350_000,
    "many words": "rain snow " * 20_000,
    "much punctuation": "!?" * 20_000,
    "unknown signs": "☃☂" * 1_000,
    "braces": "{{7*7}} ${HOME} %s %n <script>alert(1)</script> '; DROP TABLE documents; --",
    "zalgo": "".join(letter + "\u0336\u035c\u0489" * 20 for letter in "rain and snow"),
    "variation selectors": "rain" + "\ufe0f\U000e0100" * 2_000,
    "private use": "\ue000\U000f0000" * 50,
}
