"""Tags of other Korean analysers → Kiwi's (Sejong), as far as noun phrases need them.

Komoran, Mecab and Kkma write Sejong tags or near ones; Okt writes words ("Noun", "Josa"); Hannanum writes one or two letters.
"""

from __future__ import annotations

_NAMES = {
    "Noun": "NNG",
    "ProperNoun": "NNP",
    "Alpha": "SL",
    "Foreign": "SL",
    "Number": "SN",
    "Hashtag": "W_HASHTAG",
    "Josa": "JX",
    "Eomi": "EF",
    "PreEomi": "EP",
    "Verb": "VV",
    "Adjective": "VA",
    "Adverb": "MAG",
    "Determiner": "MM",
    "Modifier": "MM",
    "Conjunction": "MAJ",
    "Exclamation": "IC",
    "Suffix": "XSN",
    "VerbPrefix": "VV",
    "Punctuation": "SF",
    "KoreanParticle": "IC",
    "OL": "SL",
    "OH": "SH",
    "ON": "SN",
    "NNM": "NNB",
    "N": "NNG",
    "NC": "NNG",
    "NQ": "NNP",
    "NB": "NNB",
    "NN": "NR",
    "P": "VV",
    "J": "JX",
    "E": "EF",
    "M": "MAG",
    "X": "XSV",
    "S": "SF",
    "F": "SL",
    "SY": "SW",
}


def sejong_tag(tag: str) -> str:
    """Return the Sejong tag that means the same; of a joined tag the last part, because what a word ends with decides.

    >>> sejong_tag("Noun"), sejong_tag("NNG+JKO"), sejong_tag("NNP")
    ('NNG', 'JKO', 'NNP')
    """
    last = tag.rpartition("+")[2]
    return _NAMES.get(last, last)
