"""Forty and more ways to make a model folder that wants to run code, reach outside itself, or eat the machine.

Each takes a good folder and the path of a canary that must never appear, and spoils the folder. What a loader should do with it is said
above its name: "refused", or "harmless" where the bait is a file that nobody reads.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tests.conftest import write_json
from tests.hostile.conftest import WORDS, Canary, edit, module, rewrite_header

Spoil = Callable[[Path, Path], None]
REFUSED: dict[str, Spoil] = {}
HARMLESS: dict[str, Spoil] = {}


def refused(spoil: Spoil) -> Spoil:
    REFUSED[spoil.__name__] = spoil
    return spoil


def harmless(spoil: Spoil) -> Spoil:
    HARMLESS[spoil.__name__] = spoil
    return spoil


def evil(canary: Path) -> bytes:
    return pickle.dumps(Canary(canary))


def python(canary: Path) -> str:
    return f"open({str(canary)!r}, 'w')\nclass Evil:\n    pass\n"


def torch_archive(canary: Path) -> bytes:
    """What torch.save writes: a zip with a pickle inside."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("archive/data.pkl", evil(canary))
        archive.writestr("archive/version", "3\n")
    return made.getvalue()


def tar_archive(canary: Path) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name in ("../../canary", str(canary), "model/config.json"):
            info = tarfile.TarInfo(name)
            info.size = 2
            archive.addfile(info, io.BytesIO(b"{}"))
    return made.getvalue()


def object_array(canary: Path) -> bytes:
    made = io.BytesIO()
    np.save(made, np.array([Canary(canary)], dtype=object), allow_pickle=True)
    return made.getvalue()


def instead_of_weights(name: str, content: Callable[[Path], bytes]) -> None:
    """Register two folders: with the bait instead of the weights, and with it under the weights' own name."""
    stem = name.replace(".", "_").replace("/", "_")

    def only(folder: Path, canary: Path) -> None:
        (folder / "model.safetensors").unlink()
        (folder / name).write_bytes(content(canary))

    def disguised(folder: Path, canary: Path) -> None:
        (folder / "model.safetensors").write_bytes(content(canary))

    def beside(folder: Path, canary: Path) -> None:
        (folder / name).write_bytes(content(canary))

    REFUSED[f"{stem}_instead_of_weights"] = only
    REFUSED[f"{stem}_named_like_weights"] = disguised
    HARMLESS[f"{stem}_beside_good_weights"] = beside


for bait, content in {
    "pytorch_model.bin": evil,
    "model.pt": torch_archive,
    "model.joblib": lambda canary: gzip.compress(evil(canary)),
    "model.npz": lambda canary: _npz(canary),
    "model.npy": object_array,
    "model.tar.gz": tar_archive,
    "model.zip": torch_archive,
    "model.h5": lambda canary: b"\x89HDF\r\n\x1a\n" + evil(canary),
}.items():
    instead_of_weights(bait, content)


def _npz(canary: Path) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("weights.npy", object_array(canary))
    return made.getvalue()


@refused
def a_pickle_behind_a_safetensors_header(folder: Path, canary: Path) -> None:
    header = json.dumps({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\0\0\0\0" + evil(canary))


@refused
def a_zip_appended_to_the_weights(folder: Path, canary: Path) -> None:
    with (folder / "model.safetensors").open("ab") as file:
        file.write(torch_archive(canary))


@refused
def an_index_that_names_a_pickle(folder: Path, canary: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model-1.bin").write_bytes(evil(canary))
    write_json(folder / "model.safetensors.index.json", {"weight_map": {WORDS: "pytorch_model-1.bin"}})


@refused
def a_pytorch_index(folder: Path, canary: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model-1.bin").write_bytes(evil(canary))
    write_json(folder / "pytorch_model.bin.index.json", {"weight_map": {WORDS: "pytorch_model-1.bin"}})


@refused
def an_index_that_leaves_the_folder(folder: Path, canary: Path) -> None:
    (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
    write_json(folder / "model.safetensors.index.json", {"weight_map": {WORDS: "../outside.safetensors"}})


def typed(name: str, kind: str) -> None:
    def spoil(folder: Path, canary: Path) -> None:
        (folder / "evil.py").write_text(python(canary))
        (folder / "1_Pooling/evil.py").write_text(python(canary))
        module(folder, 1, type=kind)

    REFUSED[name] = spoil


for kind in ("evil.Evil", "os.system", "builtins.exec", "subprocess.Popen", "importlib.import_module", "sentence_transformers.models.Evil"):
    typed(f"modules_json_names_{kind.replace('.', '_')}", kind)


@refused
def a_module_path_that_is_absolute(folder: Path, canary: Path) -> None:
    module(folder, 1, path="/etc")


@refused
def a_module_path_that_climbs(folder: Path, canary: Path) -> None:
    module(folder, 1, path="1_Pooling/../../model/1_Pooling")


@refused
def a_module_folder_that_is_a_link_outside(folder: Path, canary: Path) -> None:
    outside = folder.parent / "outside"
    outside.mkdir()
    write_json(outside / "config.json", {"pooling_mode_mean_tokens": True})
    (folder / "link").symlink_to(outside)
    module(folder, 1, path="link")


@refused
def weights_that_are_a_link_to_a_device(folder: Path, canary: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to("/dev/zero")


@refused
def a_config_that_is_a_link_to_itself(folder: Path, canary: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to("config.json")


@refused
def a_config_that_is_a_device(folder: Path, canary: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to("/dev/zero")


@refused
def a_tokenizer_that_is_a_pipe(folder: Path, canary: Path) -> None:
    (folder / "tokenizer.json").unlink()
    os.mkfifo(folder / "tokenizer.json")


@refused
def an_auto_map_in_the_config(folder: Path, canary: Path) -> None:
    (folder / "evil.py").write_text(python(canary))
    edit(folder / "config.json", auto_map={"AutoModel": "evil.Evil"})


@refused
def an_auto_map_to_another_repository(folder: Path, canary: Path) -> None:
    edit(folder / "config.json", auto_map={"AutoModel": "someone/evil--evil.Evil"})


@refused
def yaml_instead_of_json(folder: Path, canary: Path) -> None:
    (folder / "config.json").write_text(f"!!python/object/apply:os.system ['touch {canary}']\n")


@refused
def a_config_that_is_python(folder: Path, canary: Path) -> None:
    (folder / "config.json").write_text(f"__import__('os').system('touch {canary}')")


@refused
def a_config_gzipped(folder: Path, canary: Path) -> None:
    (folder / "config.json").write_bytes(gzip.compress((folder / "config.json").read_bytes()))


@refused
def an_activation_that_is_code(folder: Path, canary: Path) -> None:
    edit(folder / "config.json", hidden_act=f"lambda x: open({str(canary)!r}, 'w')")


@refused
def a_pooling_that_is_code(folder: Path, canary: Path) -> None:
    edit(folder / "1_Pooling/config.json", pooling_mode="__import__('os')")


@refused
def a_similarity_that_is_code(folder: Path, canary: Path) -> None:
    edit(folder / "config_sentence_transformers.json", similarity_fn_name="os.system")


@refused
def weights_that_claim_a_petabyte(folder: Path, canary: Path) -> None:
    rewrite_header(folder, lambda header: header[WORDS].update(shape=[10**9, 10**6]))


@refused
def a_header_that_claims_an_exabyte(folder: Path, canary: Path) -> None:
    raw = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", 2**60) + raw[8:])


@harmless
def code_beside_the_model(folder: Path, canary: Path) -> None:
    for name in ("__init__.py", "conftest.py", "sitecustomize.py", "modeling_evil.py", "tokenizers.py", "numpy.py", "setup.py"):
        (folder / name).write_text(python(canary))


@harmless
def a_remote_code_flag_in_the_settings(folder: Path, canary: Path) -> None:
    (folder / "evil.py").write_text(python(canary))
    edit(folder / "config_sentence_transformers.json", trust_remote_code=True, allow_pickle=True)


@harmless
def a_tokenizer_class_from_nowhere(folder: Path, canary: Path) -> None:
    (folder / "evil.py").write_text(python(canary))
    edit(folder / "tokenizer_config.json", tokenizer_class="Evil", auto_map={"AutoTokenizer": ["evil.Evil", None]})


@harmless
def template_code_in_the_tokenizer_settings(folder: Path, canary: Path) -> None:
    edit(folder / "tokenizer_config.json", chat_template=f"{{{{ cycler.__init__.__globals__.os.system('touch {canary}') }}}}")


@harmless
def addresses_everywhere(folder: Path, canary: Path) -> None:
    edit(folder / "config.json", _name_or_path="http://127.0.0.1:9/evil", base_model="https://127.0.0.1:9/x", adapter="file:///etc/passwd")


@harmless
def an_adapter_that_names_another_base(folder: Path, canary: Path) -> None:
    write_json(folder / "adapter_config.json", {"base_model_name_or_path": "someone/evil", "auto_mapping": {"parent_library": "evil"}})
    (folder / "adapter_model.bin").write_bytes(evil(canary))


@harmless
def a_pickled_training_state(folder: Path, canary: Path) -> None:
    for name in ("optimizer.pt", "scheduler.pt", "training_args.bin", "rng_state.pth"):
        (folder / name).write_bytes(evil(canary))


@harmless
def a_tensorrt_and_onnx_graph_with_outside_data(folder: Path, canary: Path) -> None:
    (folder / "onnx").mkdir()
    (folder / "onnx/model.onnx").write_bytes(b"\x08\x07\x12\x04evil" + str(canary).encode())
    (folder / "model.engine").write_bytes(evil(canary))
