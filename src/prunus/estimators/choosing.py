"""Options that are "auto": a few candidates are trained for a while, and the best of them are trained longer."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import Any, NamedTuple

import torch

from prunus.data import TableEncoder
from prunus.errors import TrainingError
from prunus.estimators.bags import Bags
from prunus.estimators.defaults import SOFT_TREES, Recipe, default_recipe
from prunus.estimators.devices import choose_device
from prunus.estimators.options import AUTO
from prunus.estimators.preparation import Rows, merge_alike, to_samples
from prunus.estimators.screening import narrowed
from prunus.training import EpochRecord
from prunus.training.epochs import take_epochs
from prunus.training.losses import mean_loss
from prunus.training.many import n_threads, side_by_side
from prunus.training.processes import processes
from prunus.tree.prediction import row_outputs

__all__ = ["CHOSEN", "Candidate", "Lesson", "candidates", "choose", "tree_kinds"]

CHOSEN = ("leaf", "depth", "pieces")
"""The options that may be "auto"; the weight decay is chosen with them, if it is "auto" as well."""
FEW = 3_000
"""With fewer rows than this candidates are compared by cross-validation: few validation rows would not tell them
apart."""
FOLDS = 4
HELD_OUT = 0.2
"""Share of the rows that candidates are compared on, without cross-validation."""
ROUNDS = ((0.25, 2), (0.5, 1))
"""For each round the share of the epochs for which candidates are trained, and how many of them are kept."""
ALMOST = 1.1
"""A loss that is at most this many times the best one is almost as good. With 4 trees of each kind that is almost as
good, the mean R^2 of 13 sets was 86.5 and the mean accuracy of 10 sets 88.1; with the best kind alone 86.2 and 87.7."""


class Candidate(NamedTuple):
    """Options that compete with others."""

    leaf: str
    depth: int
    pieces: int
    decay: float = 1.0
    """The weight decay, as a multiple of its default."""


SOFT = (
    Candidate("mlp", 2, 0),
    Candidate("mlp", 2, 8, 3.0),
    Candidate("linear", 6, 0, 2.0),
    Candidate("additive", 8, 8, 10.0),
)
"""The candidates of soft trees. Of all sets of four candidates from the table in `benchmarks/accuracy_notes.md`, one
that is good on average and whose members are good on different tables: smooth ones, noisy ones, and those with
thresholds."""
HARD = (Candidate("linear", 6, 0), Candidate("linear", 6, 8), Candidate("additive", 10, 8))
HARD_SINGLE = (Candidate("constant", 12, 0), Candidate("linear", 6, 0), Candidate("additive", 8, 16))
"""Splits of one column need more levels."""
HARD_SHORT = (Candidate("linear", 3, 0), Candidate("linear", 6, 0))
"""Leaves of few columns: linear models alone, without curves."""


@dataclass(frozen=True)
class Lesson:
    """What candidates with a certain number of pieces learn from."""

    encoder: TableEncoder
    target: Any
    rows: Rows
    valid: Rows | None = None
    """The rows of the user's eval_set."""


def candidates(tree: Any) -> list[Candidate]:
    """The candidates for a tree whose options may be "auto"; options that are not stay as they are."""
    if tree.routing == "hard":
        listed: tuple[Candidate, ...] = HARD_SINGLE if tree.max_split_features == 1 else HARD
    else:
        listed = SOFT
    if tree.routing == "hard" and tree.max_leaf_features is not None:
        listed = HARD_SHORT
    fixed = {name: getattr(tree, name) for name in CHOSEN if getattr(tree, name) != AUTO}
    if tree.weight_decay != AUTO:
        fixed["decay"] = 1.0
    return list(dict.fromkeys(candidate._replace(**fixed) for candidate in listed))


def choose(
    tree: Any,
    lesson_of: Callable[[int], Lesson],
    seed: int,
    seconds: float | None = None,
) -> dict[str, Any]:
    """The best candidate for a tree, and how well all of them did.

    Parameters
    ----------
    tree : ArgminTree
        The estimator whose options are "auto". It does not change.
    lesson_of : callable
        What to learn from, given the number of pieces.
    seed : int
        The candidates and their validation rows depend on it.
    seconds : float, optional
        No new candidate starts after this time; the first always runs. By default there is no limit.

    Returns
    -------
    dict
        The options "leaf", "depth", "pieces" and "weight_decay", and "candidates": the options of each candidate with
        its validation loss, the best first.
    """
    n_pieces = 0 if tree.pieces == AUTO else tree.pieces
    first = lesson_of(n_pieces)
    n_rows, task = len(first.rows), first.target.task
    left = candidates(tree)
    type(tree)(**(tree.get_params(deep=False) | {"leaf": left[0].leaf}))._check_options()
    others = sorted({one.pieces for one in left} - {n_pieces})
    read = {n_pieces: first} | {pieces: lesson_of(pieces) for pieces in others}
    merged = merge_alike([lesson.rows for lesson in read.values()])
    lessons = {pieces: replace(read[pieces], rows=rows) for pieces, rows in zip(read, merged, strict=True)}
    end = math.inf if seconds is None else time.monotonic() + seconds
    losses: dict[Candidate, float] = {}
    ranked = left
    for share, kept in ROUNDS if n_rows > 1 or first.valid is not None else ():
        if len(left) == 1 or processes().broadcast(time.monotonic() > end):
            break
        found = _compete(tree, left, lessons, share, seed, end)
        losses |= found
        left = sorted(found, key=lambda candidate: found[candidate])
        ranked = [*left, *(other for other in ranked if other not in left)]
        left = left[:kept]
    best = ranked[0]
    return _options(tree, best, n_rows, task) | {
        "candidates": [
            _options(tree, one, n_rows, task) | {"loss": losses.get(one)}
            for one in ranked
            if one in losses or one is best
        ]
    }


def tree_kinds(chosen: dict[str, Any]) -> list[dict[str, Any]]:
    """The options of the trees of a forest: the best candidate, and those that are almost as good.

    The mean of different trees is better than that of equal ones. Those that have pieces have the same.

    Examples
    --------
    >>> best = {"leaf": "linear", "depth": 6, "pieces": 0, "weight_decay": 0.6, "loss": 0.5}
    >>> next_one = best | {"leaf": "additive", "loss": 0.51}
    >>> [kind["leaf"] for kind in tree_kinds(best | {"candidates": [best, next_one]})]
    ['linear', 'additive']
    """
    best, *others = chosen["candidates"]
    kinds = [best, *(other for other in others if _is_almost(other["loss"], best["loss"]))]
    found = [{name: kind[name] for name in (*CHOSEN, "weight_decay")} for kind in kinds]
    pieces = next((kind["pieces"] for kind in found if kind["pieces"]), 0)
    return [kind | {"pieces": pieces} if kind["pieces"] else kind for kind in found]


def _is_almost(loss: float | None, best: float | None) -> bool:
    return loss is not None and best is not None and loss <= ALMOST * best


def _options(tree: Any, candidate: Candidate, n: int, task: str) -> dict[str, Any]:
    found: dict[str, Any] = {name: getattr(candidate, name) for name in CHOSEN}
    found["weight_decay"] = tree.weight_decay
    if tree.weight_decay == AUTO:
        found["weight_decay"] = (
            candidate.decay * default_recipe(n, _trained(tree, candidate), classes=task == "classes").weight_decay
        )
    return found


def _compete(
    tree: Any, some: Sequence[Candidate], lessons: dict[int, Lesson], share: float, seed: int, end: float
) -> dict[Candidate, float]:
    """The validation losses of candidates that are trained for this share of their epochs."""
    any_lesson = lessons[some[0].pieces]
    parts = _parts(any_lesson, seed)
    on_cpu = choose_device(tree.device, len(any_lesson.rows)).type == "cpu"
    threads = (n_threads(tree.n_jobs) or torch.get_num_threads()) if on_cpu else 1
    tasks = [
        partial(_loss, tree, candidate, lessons[candidate.pieces], part, share, seed, end if i else math.inf)
        for i, candidate in enumerate(some)
        for part in parts
    ]
    before = torch.get_num_threads()
    try:
        found = processes().share_out(
            tasks, partial(side_by_side, threads=threads, initializer=partial(torch.set_num_threads, 1))
        )
    finally:
        torch.set_num_threads(before)
    means = {
        candidate: sum(found[i * len(parts) : (i + 1) * len(parts)]) / len(parts) for i, candidate in enumerate(some)
    }
    finite = {candidate: loss for candidate, loss in means.items() if math.isfinite(loss)}
    return finite or {some[0]: math.inf}


class _Part(NamedTuple):
    """The numbers of the rows to train on and to compare on; None for the first means all rows and the eval_set."""

    train: Any
    valid: Any


def _parts(lesson: Lesson, seed: int) -> list[_Part]:
    """The rows to train on and to compare on: one pair of parts, or several if rows are few."""
    if lesson.valid is not None:
        return [_Part(None, None)]
    few = len(lesson.rows) < FEW
    bags = Bags(lesson.rows.y, 1, seed, held_out=1 / FOLDS if few else HELD_OUT)
    found = [bags.of(k) for k in range(FOLDS if few else 1)]
    return [_Part(bag.train, bag.valid) for bag in found]


def _loss(
    tree: Any,
    candidate: Candidate,
    lesson: Lesson,
    part: _Part,
    share: float,
    seed: int,
    end: float,
    interrupted: Event,
) -> float:
    """The validation loss of a candidate that is trained on a part of the rows; infinite if there is no time left."""
    if time.monotonic() > end or interrupted.is_set():
        return math.inf
    rows, valid = (
        (lesson.rows, lesson.valid) if part.train is None else (lesson.rows[part.train], lesson.rows[part.valid])
    )
    assert valid is not None
    one = _competitor(tree, _options(tree, candidate, len(rows), lesson.target.task), seed, interrupted)
    device = choose_device(tree.device, len(lesson.rows))
    samples, held_out = to_samples(rows, lesson.target, device), to_samples(valid, lesson.target, device)
    assert samples is not None
    assert held_out is not None
    samples, held_out, encoder = narrowed(samples, held_out, lesson.target, lesson.encoder)
    recipe = _shorter(one._recipe(len(rows), lesson.target, None), share)
    stops = recipe.early_stopping_rounds is not None
    try:
        watched = held_out if stops else None
        take_epochs(one._learn(samples, watched, lesson.target, encoder, recipe, seed, owns_valid=False))
    except TrainingError:
        return math.inf
    outputs = torch.from_numpy(row_outputs(one.tree_, held_out.x.numpy(force=True))).to(held_out.x.dtype)
    return float(mean_loss(one._find_loss(), outputs.to(device), held_out.y, held_out.weight))


def _competitor(tree: Any, options: dict[str, Any], seed: int, interrupted: Event) -> Any:
    """An estimator like this one, with these options, that computes alone and in silence."""
    alone = {"n_jobs": 1, "random_state": seed, "verbose": 0, "checkpoint": None, "warm_start": False}
    return type(tree)(
        **(tree.get_params(deep=False) | options | alone | {"callbacks": [partial(_stop_if, interrupted)]})
    )


def _stop_if(interrupted: Event, _record: EpochRecord) -> bool:
    return interrupted.is_set()


def _shorter(recipe: Recipe, share: float) -> Recipe:
    """The same training in fewer epochs."""
    epochs = max(1, math.ceil(share * recipe.max_epochs))
    rounds = recipe.early_stopping_rounds
    return replace(
        recipe, max_epochs=epochs, early_stopping_rounds=None if rounds is None else max(3, math.ceil(share * rounds))
    )


def _trained(tree: Any, candidate: Candidate) -> str:
    """The kind of leaf that is trained first."""
    return SOFT_TREES[candidate.leaf].leaf if tree.routing == "hard" else candidate.leaf
