"""The kinds of trees that ``prunus fit`` learns, and the options that belong to each."""

import argparse
from typing import Any

import prunus
from prunus.cli.file_problem import FileProblem
from prunus.cli.mistakes import Mistake
from prunus.cli.problem import Problem

__all__ = ["GRADIENT", "KINDS", "READABLE", "TREES", "add_kind_option", "check_kind", "kinds_of", "new_estimator"]

READABLE = "readable"
KINDS = {
    READABLE: "a small tree that a person can read, searched as a whole",
    "soft": "the paper's tree: a row that is undecided at a split follows both routes",
    "hard": "such a tree in which each row follows one path",
    "forest": "several trees whose predictions are averaged",
}
GRADIENT = ("soft", "hard", "forest")
"""The kinds that are learned by gradient descent."""
TREES = 16
"""Trees of a forest whose number is not given: the default of the estimators, whose import takes seconds."""
_KINDS_OF: dict[str, tuple[str, ...]] = {
    "max_leaf_nodes": tuple(KINDS),
    "max_split_features": tuple(KINDS),
    "class_weight": tuple(KINDS),
    "max_leaf_features": tuple(KINDS),
    "min_samples_leaf": (READABLE,),
    "routing": ("forest",),
    "forest": ("forest",),
}
"""The kinds that these options belong to; all others belong to those of `GRADIENT`."""
_CURES = {
    "auto": "leave it out: readable trees choose by themselves",
    "depth": "use --max-leaf-nodes, which limits the size of a readable tree",
    "leaf": "use --max-leaf-features, the terms in the formula of a leaf",
    "resume": "leave it out",
    "routing": "use --kind hard for a tree in which each row follows one path",
}
"""What else a user may have wanted, by option."""


def add_kind_option(parser: argparse.ArgumentParser, *kinds: str) -> None:
    """Add the choice between these kinds, of which the first is the default."""
    words = "; ".join(f"{kind}, {KINDS[kind]}" for kind in kinds)
    parser.add_argument("--kind", choices=kinds, help=f"what is learned (default: {kinds[0]}): {words}")


def kinds_of(option: str) -> tuple[str, ...]:
    """The kinds that an option belongs to.

    Examples
    --------
    >>> kinds_of("min_samples_leaf"), kinds_of("depth")
    (('readable',), ('soft', 'hard', 'forest'))
    """
    return _KINDS_OF.get(option, GRADIENT)


def check_kind(options: argparse.Namespace, names: tuple[str, ...]) -> None:
    """Settle which kind is meant, and how many trees a forest has; an error if an option belongs to other kinds.

    Parameters
    ----------
    options : argparse.Namespace
        Its `kind` and `forest` are set.
    names : tuple of str
        The options that belong to some kinds only.
    """
    is_default = options.kind is None
    if is_default:
        options.kind = READABLE if options.forest is None else "forest"
    for name in names:
        if getattr(options, name) not in (None, False) and options.kind not in kinds_of(name):
            raise Mistake(_of_another_kind(name, options.kind, is_default=is_default))
    if options.kind == "forest" and options.forest is None:
        options.forest = TREES


def _of_another_kind(name: str, kind: str, *, is_default: bool) -> str:
    kinds = kinds_of(name)
    belongs = kinds[0] if len(kinds) == 1 else f"{', '.join(kinds[:-1])} or {kinds[-1]}"
    given = f"--kind {kind}, the default" if is_default and kind == READABLE else f"--kind {kind}"
    cure = _CURES.get(name, "leave it out") if kind == READABLE or name == "routing" else "leave it out"
    option = f"--{name.replace('_', '-')}"
    return f"{option} belongs to --kind {belongs}, got it with {given}; add --kind {kinds[0]}, or {cure}"


def new_estimator(
    problem: Problem | FileProblem, kind: str, options: dict[str, Any], n_trees: int | None = None
) -> Any:
    """A new estimator of a kind for the task, with these options; `n_trees` is for forests."""
    is_classes = problem.target.task == "classification"
    if kind == READABLE:
        readable: Any = prunus.ReadableTreeClassifier if is_classes else prunus.ReadableTreeRegressor
        return readable(**options)
    made: Any = prunus.ArgminTreeClassifier if is_classes else prunus.ArgminTreeRegressor
    if kind == "forest":
        made = prunus.ArgminForestClassifier if is_classes else prunus.ArgminForestRegressor
        options = options | {"n_trees": n_trees}
    if problem.trains_on_all:
        options = options | {"early_stopping_rounds": None}
    return made(**options)
