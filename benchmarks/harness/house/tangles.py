"""Where modules know more of each other than they need."""

import ast
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch

from benchmarks.harness.house.sources import Module, Place

__all__ = ["HOMES_OF_ROWS", "HOMES_OF_TASKS", "find_file_checks", "find_private_reads", "find_task_comparisons"]

HOMES_OF_ROWS = ("data/*", "training/streams*.py", "estimators/scanned.py")
"""Modules of the source of rows, which may know where rows come from: paths in the package."""
HOMES_OF_TASKS = ("targets/*",)
"""Modules that may know the tasks."""

_FROM_FILES = re.compile(r"(File|Scanned|Stream)(?!.*Error$)")
_OWN = ("self", "cls", "mcs")
_PUBLIC = ("_replace", "_asdict", "_fields", "_make", "_core")


def find_file_checks(modules: Sequence[Module]) -> list[Place]:
    """Calls of ``isinstance`` that ask whether data are tables in files or streams, outside `HOMES_OF_ROWS`.

    They are known by the name of a class in their second argument: it has ``File``, ``Scanned`` or ``Stream`` in it,
    but is no error. Of prunus these are FileTable, ScannedTable and SampleStream. A call that names two counts once.
    """
    return [
        Place(module.name, node.lineno, ast.unparse(node))
        for module in _outside(modules, HOMES_OF_ROWS)
        for node in module.nodes
        if isinstance(node, ast.Call) and _name(node.func) == "isinstance" and len(node.args) == 2
        if any(_FROM_FILES.search(_name(part)) for part in ast.walk(node.args[1]))
    ]


def find_task_comparisons(modules: Sequence[Module]) -> list[Place]:
    """Comparisons of a name or an attribute ``task`` with constants, outside `HOMES_OF_TASKS`.

    The other side is a string, or a tuple, list or set of strings. Flags such as ``is_classes``, tables whose keys are
    tasks, and ``match`` do not count.
    """
    found = []
    for module in _outside(modules, HOMES_OF_TASKS):
        for node in module.nodes:
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                if any(_name(side) == "task" for side in sides) and any(map(_is_text, sides)):
                    found.append(Place(module.name, node.lineno, ast.unparse(node)))
    return found


def find_private_reads(modules: Sequence[Module]) -> tuple[list[Place], list[Place]]:
    """Reads of private attributes that another module defines: first those of the modules given, then of libraries.

    A private attribute has one underscore in front. What is read of ``self``, ``cls``, ``mcs`` or ``super()`` does not
    count, nor does an attribute that the same module defines anywhere: as function, class, name, annotation, slot, or
    by assigning to an attribute. The same goes for the public methods of named tuples and for ``prunus._core``. It is
    one of a library if none of the modules defines it. In a chain of attributes each may count.
    """
    defined = {module.name: set(_definitions(module)) for module in modules}
    ours = set().union(*defined.values())
    own: list[Place] = []
    foreign: list[Place] = []
    for module in modules:
        for node in module.nodes:
            if isinstance(node, ast.Attribute) and _is_private_read(node) and node.attr not in defined[module.name]:
                place = Place(module.name, node.lineno, ast.unparse(node))
                (own if node.attr in ours else foreign).append(place)
    return own, foreign


def _outside(modules: Sequence[Module], homes: Sequence[str]) -> list[Module]:
    return [module for module in modules if not any(fnmatch(module.name, home) for home in homes)]


def _name(node: ast.AST) -> str:
    """The last part of a name with dots; nothing for other nodes."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_text(node: ast.AST) -> bool:
    parts = node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else [node]
    return bool(parts) and all(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in parts)


def _is_private_read(node: ast.Attribute) -> bool:
    owner = node.value
    is_own = (isinstance(owner, ast.Name) and owner.id in _OWN) or (
        isinstance(owner, ast.Call) and _name(owner.func) == "super"
    )
    is_private = node.attr.startswith("_") and not node.attr.startswith("__") and node.attr not in _PUBLIC
    return isinstance(node.ctx, ast.Load) and is_private and not is_own


def _definitions(module: Module) -> Iterator[str]:
    """Names that a module defines, and attributes that it assigns to."""
    for node in module.nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            yield _name(node)
        elif isinstance(node, ast.Assign) and any(_name(target) == "__slots__" for target in node.targets):
            yield from (str(part.value) for part in ast.walk(node.value) if isinstance(part, ast.Constant))
