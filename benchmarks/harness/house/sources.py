"""Files of Python: their lines of code, and places in them."""

import ast
import io
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

__all__ = ["CodeLine", "Module", "Place", "code_lines", "format_places", "read_modules"]

_LAYOUT = {tokenize.ENDMARKER, tokenize.INDENT, tokenize.DEDENT, tokenize.NEWLINE, tokenize.NL}


@dataclass(frozen=True)
class Module:
    """A file of Python."""

    name: str
    """Its path in the folder that was read."""
    text: str

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of its syntax tree."""
        return list(ast.walk(ast.parse(self.text)))


@dataclass(frozen=True)
class CodeLine:
    """A line of code, without the comment at its end and without indentation."""

    number: int
    text: str


@dataclass(frozen=True, order=True)
class Place:
    """Something that was found in a file."""

    module: str
    line: int
    text: str


def read_modules(folder: Path) -> list[Module]:
    """All ``*.py`` files of a folder and of those in it, in the order of their paths. Stubs, ``*.pyi``, are none."""
    paths = sorted(folder.rglob("*.py"))
    return [Module(path.relative_to(folder).as_posix(), path.read_text(encoding="utf-8")) for path in paths]


def code_lines(module: Module, *, with_imports: bool = True) -> list[CodeLine]:
    """Lines that are left without docstrings, comments and blank lines, and if wanted without imports.

    A docstring is any statement that is only a string, so also one below an attribute. Of strings over several lines
    that are not docstrings, each line counts that is not blank.
    """
    dropped = [_span(node) for node in module.nodes if _is_docstring(node) or (not with_imports and _is_import(node))]
    inside = {line: span for span in dropped for line in range(span[0][0], span[1][0] + 1)}
    numbers: set[int] = set()
    comments: dict[int, int] = {}
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        first, last = inside.get(token.start[0], (token.end, token.end))
        if token.type == tokenize.COMMENT:
            comments[token.start[0]] = token.start[1]
        elif token.type not in _LAYOUT and not first <= token.start < last:
            numbers |= set(range(token.start[0], token.end[0] + 1))
    lines = module.text.split("\n")
    found = (CodeLine(number, lines[number - 1][: comments.get(number)].strip()) for number in sorted(numbers))
    return [line for line in found if line.text]


def format_places(places: Sequence[Place]) -> str:
    """Under each module, with the number of its places, the lines and what is there."""
    by_module: dict[str, list[Place]] = {}
    for place in sorted(places):
        by_module.setdefault(place.module, []).append(place)
    lines = []
    for module, found in by_module.items():
        lines += [f"{len(found):5}  {module}", *(f"       {place.line:5}  {place.text}" for place in found)]
    return "\n".join(lines)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_import(node: ast.AST) -> bool:
    return isinstance(node, (ast.Import, ast.ImportFrom))


def _span(node: ast.AST) -> tuple[tuple[int, int], tuple[int, int]]:
    assert isinstance(node, ast.stmt)
    return (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)
