"""Source files → every mutant of them, one JSON line each; cosmic-ray makes the changes, nothing is written into the source tree.

Comes in: `targets.toml`. Goes out: lines with module, operator, occurrence, line number, the changed line and the whole mutated source.
A change that only touches an annotation, or whether an argument must be named, is left out (mypy sees to both), and one that is no
Python any more. Running tests is left to
`run_mutants`.

    python tests/mutation/make_mutants.py mutants.jsonl
"""

from __future__ import annotations

import ast
import difflib
import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src/munjang"


def operator_names(targets: dict[str, Any]) -> list[str]:
    """Return cosmic-ray's names of the chosen operators."""
    parts = {"binary": "ReplaceBinaryOperator_", "comparison": "ReplaceComparisonOperator_", "unary": "ReplaceUnaryOperator_", "others": ""}
    return [f"core/{prefix}{name}" for part, prefix in parts.items() for name in targets[part]]


def mutants_of(module: str, names: list[str]) -> Iterator[dict[str, Any]]:
    """Yield every mutant of one file under src/munjang."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    source = (SOURCE / module).read_text(encoding="utf-8")
    meant = _behaviour(source)
    for name in names:
        operator = get_operator(name)()
        places = [place for node in ast_nodes(get_ast(source)) for place in operator.mutation_positions(node)]
        for occurrence, ((line, _), _) in enumerate(places):
            mutated = mutate_code(source, operator, occurrence)
            if mutated is None or _behaviour(mutated) in (meant, ""):
                continue
            yield {
                "module": module,
                "operator": name.removeprefix("core/"),
                "occurrence": occurrence,
                "line": line,
                "change": _change(source, mutated),
                "source": mutated,
            }


def _behaviour(source: str) -> str:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return ""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign):
            node.annotation = ast.Constant(None)
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.arguments):
            node.args = [*node.posonlyargs, *node.args, *node.kwonlyargs]
            node.defaults = [*node.defaults, *filter(None, node.kw_defaults)]
            node.posonlyargs, node.kwonlyargs, node.kw_defaults = [], [], []
    return ast.dump(tree)


def _change(before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return "\n".join(line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---"))


def main() -> None:
    """Write the mutants of all targets, or of the modules named behind the file."""
    targets = tomllib.loads((HERE / "targets.toml").read_text(encoding="utf-8"))
    names = operator_names(targets)
    with Path(sys.argv[1]).open("w", encoding="utf-8") as file:
        for module in sys.argv[2:] or targets["tests"]:
            made = list(mutants_of(module, names))
            file.writelines(json.dumps(mutant, ensure_ascii=False) + "\n" for mutant in made)
            print(f"{len(made):5} {module}", file=sys.stderr)


if __name__ == "__main__":
    main()
