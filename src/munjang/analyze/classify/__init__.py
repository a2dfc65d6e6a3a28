"""Texts → labels: by the labels' names alone (`zero_shot`), or by examples (`fitting`).

Both give a `TextClassifier` (`classifier.py`): one linear function of a text's vector, which `apply.py` applies and `saving.py` saves. So a
classifier without examples is used, saved and served exactly as one that was trained.
"""
