"""Score → probability, against scikit-learn, and through a file."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from munjang.errors import DamagedFile, InputError, UsageError
from munjang.evaluate.calibrate import calibrate, expected_calibration_error, fit, load_calibration, save_calibration
from munjang.limits import LIMITS

rows = st.lists(st.tuples(st.integers(-10, 10).map(lambda i: i / 10), st.integers(0, 1)), min_size=2, max_size=60).filter(
    lambda rows: len({label for _, label in rows}) == 2
)


@settings(deadline=None)
@given(rows)
def test_isotonic_equals_scikit_learn_and_rises(data):
    isotonic = pytest.importorskip("sklearn.isotonic")
    scores, labels = map(np.asarray, zip(*data, strict=True))
    grid = np.linspace(-1.2, 1.2, 49)
    ours = fit(scores, labels, method="isotonic").probability(grid)
    theirs = isotonic.IsotonicRegression(out_of_bounds="clip").fit(scores, labels).predict(grid)
    assert np.allclose(ours, theirs, atol=1e-9)
    assert (np.diff(ours) >= -1e-12).all()


def test_logistic_equals_scikit_learns_platt_scaling():
    calibration = pytest.importorskip("sklearn.calibration")
    random = np.random.default_rng(1)
    for scale in (0.01, 1.0, 300.0):
        labels = random.integers(0, 2, size=200)
        scores = (labels + random.normal(size=200)) * scale
        theirs = calibration._SigmoidCalibration().fit(scores, labels).predict(scores)
        assert np.allclose(fit(scores, labels, method="logistic").probability(scores), theirs, atol=1e-3)


@settings(deadline=None)
@given(rows)
def test_logistic_probabilities_are_finite_even_when_classes_are_apart(data):
    scores, labels = zip(*data, strict=True)
    found = fit(scores, labels, method="logistic").probability([-1e6, *scores, 1e6])
    assert np.isfinite(found).all()
    assert ((found >= 0) & (found <= 1)).all()


def _sample() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    scores = random.uniform(-1, 1, size=2000)
    return scores, (random.random(2000) < 1 / (1 + np.exp(-4 * scores))).astype(int)


@pytest.mark.parametrize("method", ["isotonic", "logistic"])
def test_probabilities_are_true_on_rows_not_seen(method):
    found = calibrate(*_sample(), method=method)
    assert found.ece < 0.05
    assert found.brier < 0.2
    assert 0.6 < found.f1 < 0.95
    assert found.calibration.probability([0.0])[0] == pytest.approx(0.5, abs=0.12)


def test_the_calibration_error_of_a_boast_is_its_size():
    assert expected_calibration_error([0.95] * 10, [1] * 5 + [0] * 5) == pytest.approx(0.45)


@pytest.mark.parametrize("method", ["isotonic", "logistic"])
def test_a_saved_calibration_loads_exactly(method, tmp_path):
    made = fit(*_sample(), method=method)
    save_calibration(made, tmp_path / "c.json")
    assert load_calibration(tmp_path / "c.json") == made
    assert [path.name for path in tmp_path.iterdir()] == ["c.json"]


@pytest.mark.parametrize("change", [{"format": "x"}, {"method": "magic"}, {"points": [[1, 1], [0, 0]]}, {"threshold": None}, {"points": 3}])
def test_a_damaged_file_is_named(change, tmp_path):
    body = fit(*_sample()).to_json() | change
    (tmp_path / "c.json").write_text(json.dumps(body))
    with pytest.raises(DamagedFile, match="c.json"):
        load_calibration(tmp_path / "c.json")


def test_one_class_and_unknown_methods_are_refused():
    with pytest.raises(InputError, match="all alike"):
        fit([0.1, 0.2], [1, 1])
    with pytest.raises(InputError, match="rarer label"):
        calibrate([0.1, 0.2, 0.3], [1, 1, 0])
    with pytest.raises(UsageError, match="isotonic or logistic"):
        fit([0.1, 0.2], [0, 1], method="beta")  # type: ignore[arg-type]


def test_a_calibration_of_nothing_has_no_error():
    assert math.isnan(expected_calibration_error([], []))


def test_a_file_that_is_not_there_or_far_too_large_is_named(tmp_path):
    with pytest.raises(InputError, match=r"c.json: no such file"):
        load_calibration(tmp_path / "c.json")
    (tmp_path / "c.json").write_bytes(b" " * (LIMITS.max_config_bytes + 1))
    with pytest.raises(DamagedFile, match=rf"c.json: {LIMITS.max_config_bytes + 1:,} bytes, the limit is {LIMITS.max_config_bytes:,}"):
        load_calibration(tmp_path / "c.json")
