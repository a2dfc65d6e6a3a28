"""Source code → the calls and imports in it that could run what data says, each as (line, what).

Looked at are imports, calls by name, and the options that make a harmless call dangerous. What cannot be told from the source (a module
reached through another name) is left to the audit hook of tests/hostile.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

CODE_MODULES = {
    "pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "yaml", "ruamel", "jsonpickle",
    "zipfile", "tarfile", "runpy", "code", "codeop", "imp", "pty", "ctypes", "cffi", "multiprocessing", "subprocess",
    "socket", "urllib.request", "http.client", "requests", "httpx", "aiohttp", "ftplib", "smtplib", "xmlrpc", "telnetlib",
    "xml", "lxml", "cloudpathlib",
}  # fmt: skip
BUILTINS = {"eval", "exec", "compile", "__import__", "breakpoint", "input"}
CALLS = {
    "os.system", "os.popen", "os.startfile", "os.fork", "torch.load", "torch.jit.load", "torch.hub.load", "torch.package.PackageImporter",
    "pandas.read_pickle", "pd.read_pickle", "shutil.unpack_archive", "importlib.import_module", "importlib.reload", "builtins.eval",
    "builtins.exec", "builtins.compile", "numpy.lib.npyio.NpzFile", "sqlite3.Connection.load_extension", "onnx.load",
}  # fmt: skip
STARTS = ("os.exec", "os.spawn", "os.posix_spawn", "importlib.machinery.", "importlib.util.spec_from", "importlib.util.module_from")
ENDS = ("load_extension", "enable_load_extension", "register_custom_ops_library")
MUST_BE_FALSE = {"trust_remote_code", "allow_pickle"}
MUST_BE_TRUE = {"weights_only"}
ARRAY_READERS = {"numpy.load", "numpy.lib.format.read_array", "numpy.save", "numpy.lib.format.write_array"}


def banned(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, what) for everything that needs a reason to be there."""
    tree = ast.parse(source)
    names = _imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for module in _modules(node):
                if any(module == bad or module.startswith(bad + ".") for bad in CODE_MODULES):
                    yield node.lineno, f"import {module}"
        elif isinstance(node, ast.Call):
            yield from ((node.lineno, what) for what in _call(node, names))


def _imported(tree: ast.Module) -> dict[str, str]:
    """Return what each imported name stands for, dotted."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.partition(".")[0]] = alias.name if alias.asname else alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)][: 1 if node.module in CODE_MODULES else None]


def _call(node: ast.Call, names: dict[str, str]) -> Iterator[str]:
    name = _dotted(node.func, names)
    if isinstance(node.func, ast.Name) and node.func.id in BUILTINS and node.func.id not in names:
        yield f"{node.func.id}()"
    if name in CALLS or name.startswith(STARTS) or (isinstance(node.func, ast.Attribute) and node.func.attr in ENDS):
        yield f"{name}()"
    for option in node.keywords:
        fixed = option.value.value if isinstance(option.value, ast.Constant) else None
        if option.arg in MUST_BE_FALSE and fixed is not False:
            yield f"{option.arg} is not False"
        if option.arg in MUST_BE_TRUE and fixed is not True:
            yield f"{option.arg} is not True"
        if option.arg == "shell" and (fixed is True or name.startswith("subprocess.")) and fixed is not False:
            yield "shell is not False"
    if name in ARRAY_READERS and not any(option.arg == "allow_pickle" for option in node.keywords):
        yield f"{name}() without allow_pickle=False"
    if name.endswith(".from_pretrained"):
        wanted = {"trust_remote_code", "local_files_only"} - {option.arg for option in node.keywords}
        yield from (f"from_pretrained() without {option}" for option in sorted(wanted))
    if name == "getattr" and isinstance(node.args[0], ast.Name) and not isinstance(node.args[1], ast.Constant):
        home = names.get(node.args[0].id, "")
        if home and home.rpartition(".")[2].islower():
            yield f"getattr({home}, a computed name)"


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id).replace("np.", "numpy.")
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value, names)}.{node.attr}"
    return "?"
