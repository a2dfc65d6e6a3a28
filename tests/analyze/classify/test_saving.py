"""A saved classifier answers as the fitted one; damage and another model are refused; a killed save leaves the old one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.analyze.classify.word_encoder import WordEncoder, write_texts

from munjang.analyze.classify.apply import apply_classifier
from munjang.analyze.classify.fitting import fit_classifier
from munjang.analyze.classify.saving import MAIN, load_classifier, save_classifier
from munjang.errors import DamagedFile, FolderError, MunjangError, UsageError

ENCODER = WordEncoder()
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def made() -> object:
    return fit_classifier(*write_texts(6), ENCODER, strength=3.0)


def test_a_loaded_classifier_answers_bit_for_bit(made: object, tmp_path: Path) -> None:
    save_classifier(made, tmp_path / "c")  # type: ignore[arg-type]
    loaded = load_classifier(tmp_path / "c")
    texts, _ = write_texts(10, seed=2)
    one, other = apply_classifier(made, texts, ENCODER), apply_classifier(loaded, texts, ENCODER)  # type: ignore[arg-type]
    assert np.array_equal(one.probability_NC.view(np.int32), other.probability_NC.view(np.int32))
    assert loaded.facts() == made.facts()  # type: ignore[attr-defined]
    assert not any(path.suffix in (".pkl", ".pickle", ".bin", ".pt") for path in (tmp_path / "c").iterdir())


def test_another_model_is_refused_by_its_fingerprint(made: object) -> None:
    with pytest.raises(UsageError, match="was made with the model words"):
        apply_classifier(made, ["비"], WordEncoder("words-2"))  # type: ignore[arg-type]


def test_saving_replaces_a_classifier_and_nothing_else(made: object, tmp_path: Path) -> None:
    folder = tmp_path / "c"
    save_classifier(made, folder)  # type: ignore[arg-type]
    save_classifier(fit_classifier(*write_texts(4), ENCODER, strength=1.0), folder)
    assert load_classifier(folder).strength == 1.0
    assert len(list(folder.iterdir())) == 2
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "diary.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds other files"):
        save_classifier(made, tmp_path / "notes")  # type: ignore[arg-type]


def test_every_damaged_byte_of_the_json_is_noticed(made: object, tmp_path: Path) -> None:
    folder = tmp_path / "c"
    save_classifier(made, folder)  # type: ignore[arg-type]
    whole = (folder / MAIN).read_bytes()
    for place in range(0, len(whole), 97):
        (folder / MAIN).write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises((DamagedFile, FolderError)):
            load_classifier(folder)
    (folder / MAIN).write_bytes(whole)
    arrays = next(folder.glob("arrays-*"))
    content = arrays.read_bytes()
    arrays.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(DamagedFile, match="checksum"):
        load_classifier(folder)
    arrays.unlink()
    with pytest.raises(DamagedFile, match="is missing"):
        load_classifier(folder)
    facts = json.loads(whole) | {"file": "../../secret"}
    (folder / MAIN).write_text(json.dumps(facts))
    with pytest.raises(MunjangError):
        load_classifier(folder)


KILLED = """
import os, signal, sys
import munjang.analyze.classify.saving as saving
import munjang.analyze.saved_folder as files
from munjang.analyze.classify.fitting import fit_classifier
from tests.analyze.classify.word_encoder import WordEncoder, write_texts
real, left = files.atomic_write, int(sys.argv[2])
def dying(path, content):
    global left
    if not left:
        path.with_name(f".{path.name}.dead.part").write_bytes(b"half")
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    real(path, content)
files.atomic_write = dying
saving.save_classifier(fit_classifier(*write_texts(4, seed=9), WordEncoder(), strength=30.0), sys.argv[1])
"""


@pytest.mark.parametrize("writes", [0, 1])
def test_a_killed_save_leaves_the_old_classifier_and_can_be_repeated(made: object, tmp_path: Path, writes: int) -> None:
    folder = tmp_path / "c"
    save_classifier(made, folder)  # type: ignore[arg-type]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    ended = subprocess.run([sys.executable, "-c", KILLED, folder, str(writes)], env=environment, check=False, cwd=ROOT)
    assert ended.returncode == -signal.SIGKILL
    assert load_classifier(folder).strength == 3.0
    save_classifier(fit_classifier(*write_texts(4), ENCODER, strength=1.0), folder)
    assert len(list(folder.iterdir())) == 2
