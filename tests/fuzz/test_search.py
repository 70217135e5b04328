"""Searches of random tables: trees keep their limits and predict what their rows had; no argument breaks the engine."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from prunus.search import find
from prunus.search.engine import EngineTable, Job, read_table
from prunus.search.predict import class_scores, find_leaves, leaf_outputs, route
from prunus.search.problem import Category, Doubles, Found, Limits, Number, Problem
from prunus.search.record import ReadableRecord
from tests.search.reference import SearchNode, SearchRows, SearchTree, ends_of_rows, tree_worth
from tests.tolerances import SAME_WORTH

core: Any = pytest.importorskip("prunus._core")

Generator = np.random.Generator
Column = Number | Category
WRITTEN = 1e-9
"""Of the largest target: records have at least twelve digits."""
ROUNDED = 0.25
"""Of the standard error of a mean, which is at most the spread: it is written in steps of twice that."""


class Table(NamedTuple):
    problem: Problem
    random: Generator


def table(seed: int, most_rows: int = 300) -> Table:
    """A random table with targets that depend on its first column."""
    random = np.random.default_rng(seed)
    n = int(random.choice([random.integers(1, 4), random.integers(1, 30), *random.integers(1, most_rows, size=6)]))
    columns = [draw_column(random, n) for _ in range(random.integers(1, 7))]
    weight = draw_weights(random, n)
    first = columns[0]
    signal = first.codes if isinstance(first, Category) else np.nan_to_num(first.values)
    noisy = signal.argsort(kind="stable").argsort(kind="stable") / n + random.exponential(0.3, n)
    if random.random() < 0.5:
        return Table(Problem(columns, draw_values(random, noisy), weight), random)
    classes = int(random.choice([1, 2, 2, 3, 5, 40]))
    labels = np.minimum(classes - 1, (noisy * classes / 2).astype(np.int64))
    labels[labels == random.integers(-classes, classes)] = 0  # a class without rows
    return Table(Problem(columns, labels, weight, classes), random)


def draw_column(random: Generator, n: int) -> Column:
    missing = random.random(n) < random.choice([0, 0, 0.1, 0.9, 1.0], p=[0.4, 0.3, 0.2, 0.05, 0.05])
    if random.random() < 0.35:
        count = int(random.choice([1, 2, 3, 8, 60, 254]))
        codes = random.integers(0, count + (random.random() < 0.1), n)  # rows of a level that is not known
        return Category(np.where(missing, -1, codes), tuple(map(str, range(count))), bool(random.random() < 0.3))
    values = draw_numbers(random, n)
    kind = str(random.choice(["number", "number", "datetime", "duration"]))
    return Number(np.where(missing, np.nan, values), kind)


def draw_numbers(random: Generator, n: int) -> Doubles:
    """Numbers that tie, vary over many orders of magnitude, lie close together or far away, or do not vary."""
    kind = int(random.integers(8))
    found = random.normal(size=n)
    if kind == 1:
        found = random.integers(0, 4, n).astype(np.float64)
    elif kind == 2:
        found = found * 10.0 ** random.uniform(-30, 30, n)
    elif kind == 3:
        found = 1e9 + 1e-6 * np.round(100 * found)
    elif kind == 4:
        found = found * 10.0 ** random.uniform(-250, 250)
    elif kind == 5:
        found = np.full(n, found[0])
    elif kind == 6:
        found = np.where(random.random(n) < 0.5, 0.0, found)
    elif kind == 7:
        found = np.where(random.random(n) < 0.02, 1e12, found)
    return found


def draw_weights(random: Generator, n: int) -> Doubles | None:
    """Positive weights around 1, as an estimator gives them."""
    kind = int(random.integers(8))
    if kind < 4:
        return None
    weight = random.exponential(size=n) + 1e-3
    if kind == 6:
        weight = 10.0 ** random.uniform(-20, 20, n)
    elif kind == 7:
        weight = random.choice([1e-12, 1.0], n)
    found: Doubles = weight / weight.mean()
    return found


def draw_values(random: Generator, noisy: Doubles) -> Doubles:
    """Targets of 1 to 3 columns: large, small, whole, far from zero or constant."""
    count = int(random.integers(1, 4))
    found = np.stack([noisy if j == 0 else random.normal(size=len(noisy)) for j in range(count)], axis=1)
    kind = int(random.integers(7))
    if kind == 1:
        found = found * 1e100
    elif kind == 2:
        found = found * 1e-100
    elif kind == 3:
        found = np.round(found)
    elif kind == 4:
        found = 1e6 + found
    elif kind == 5:
        found = np.full_like(found, found[0, 0])
    elif kind == 6:
        found = np.where(random.random(found.shape) < 0.02, 1e9, found)
    return found


def draw_job(random: Generator, table: EngineTable) -> Job:
    """A search of some rows, some of them twice."""
    n = len(table.weight)
    rows = np.arange(n) if random.random() < 0.5 else random.integers(0, n, int(random.integers(1, n + 1)))
    numbers = np.flatnonzero(table.binned.is_category == 0)
    slopes: tuple[int, ...] = ()
    if table.targets is not None and len(numbers):
        slopes = tuple(random.permutation(numbers)[: random.integers(0, 5)].tolist())
    is_classes = table.is_share or table.targets is None
    return Job(
        rows,
        leaves=int(random.integers(1, 41)),
        terms=int(random.integers(1, 3)),
        least=float(random.choice([0.0, 0.5, 1.0, 3.0, 5.0, 20.0])),
        price=float(random.choice([0.0, 0.0, 0.0, 0.1, 10.0])),
        accuracy=float(random.choice([0.0, 0.5, 1.0])) if is_classes and not slopes else 0.0,
        cycles=int(random.integers(1, 3)),
        rounds=int(random.choice([0, 1, 30])),
        polish=int(random.choice([0, 1, 100])),
        anneal=int(random.choice([0, 1, 20])),
        seed=int(random.integers(2**31)),
        slopes=slopes,
    )


def arguments(table: EngineTable) -> dict[str, Any]:
    """The table as the engine takes it."""
    binned = table.binned
    return {
        "bins": binned.bins,
        "bin_count": binned.bin_count,
        "is_category": binned.is_category,
        "values": binned.values,
        "edges": binned.edges,
        "weight": table.weight,
        "targets": table.targets,
        "labels": table.labels,
        "outputs": table.outputs,
        "is_share": table.is_share,
    }


def searched_rows(table: EngineTable, job: Job) -> SearchRows:
    """The rows of a job as the reference sees them; repeated rows are rows of their own."""
    binned, rows = table.binned, job.rows
    columns = replace(binned, bins=binned.bins[:, rows], values=binned.values[:, rows])
    if table.targets is None:
        y = np.eye(table.outputs)[table.labels][rows]
    else:
        y = table.targets[rows]
        y = np.column_stack((1 - y, y)) if table.is_share and not job.slopes else y
    return SearchRows(columns, table.weight[rows], y, job.least, job.accuracy, slopes=job.slopes)


def attack_engine(seed: int) -> int:
    """Search a random table, and return the number of leaves of the largest tree."""
    problem, random = table(seed)
    given = read_table(problem)
    jobs = [draw_job(random, given) for _ in range(3)]
    wanted = [job.as_dict() for job in jobs]
    found = core.search(**arguments(given), jobs=wanted, threads=1)
    assert core.search(**arguments(given), jobs=wanted, threads=3) == found, seed
    trees = [[None if node is None else SearchNode(*node) for node in nodes] for nodes, _ in found]
    for job, tree, (_, reported) in zip(jobs, trees, found, strict=True):
        assert_tree(tree, reported, job, searched_rows(given, job), seed)
    return max(len(tree) for tree in trees) // 2 + 1


def assert_tree(tree: SearchTree, reported: float, job: Job, rows: SearchRows, seed: int) -> None:
    """A tree has enough rows in each leaf, and is worth what the engine says."""
    with np.errstate(over="ignore", invalid="ignore"):
        ends = ends_of_rows(tree, rows.columns)
        expected = tree_worth(tree, rows)
    leaves = [q for q, node in enumerate(tree) if node is None]
    counts, weights = (np.bincount(ends, own, minlength=len(tree))[leaves] for own in (None, rows.weight))
    assert len(leaves) <= job.leaves, seed
    assert min(counts) > 0, seed
    assert len(leaves) == 1 or min(weights) >= job.least * (1 - SAME_WORTH), seed
    size = float(rows.weight @ (rows.y**2).sum(1))
    assert reported == pytest.approx(expected, abs=SAME_WORTH * max(1.0, size)), seed


def attack_find(seed: int) -> int:
    """Search a random table as an estimator does, and return the number of leaves."""
    problem, random = table(seed, most_rows=250)
    limits = Limits(
        max_leaf_nodes="auto" if random.random() < 0.2 else int(random.integers(1, 41)),
        max_split_features=int(random.integers(1, 3)),
        max_leaf_features=int(random.choice([0, 0, 1, 3])),
        min_samples_leaf="auto" if random.random() < 0.5 else int(random.integers(1, 12)),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(find, "MOST_SEARCHED", int(random.choice([50, 30_000])))
        found = find.find_tree(problem, limits, seed=seed)
        again = find.find_tree(problem, limits, n_jobs=3, seed=seed)
    assert repr(again) == repr(found), seed  # scores may be NaN
    assert_found(found, problem, limits, seed)
    return found.record.n_leaves


def assert_found(found: Found, problem: Problem, limits: Limits, seed: int) -> None:
    most = 32 if limits.max_leaf_nodes == "auto" else limits.max_leaf_nodes
    assert 1 <= found.record.n_leaves <= most, seed
    sizes = [member.n_leaves for member in found.family]
    assert sizes == sorted(set(sizes)), seed
    assert [member.record for member in found.family if member.record == found.record], seed
    for record in {found.record.n_leaves: found.record, 1: found.family[0].record, 2: found.family[-1].record}.values():
        leaf = find_leaves(record, problem.columns)
        np.testing.assert_array_equal(leaf, route(record.splits, problem.columns), str(seed))
        assert set(leaf.tolist()) == set(record.leaves), seed  # no side of a split is empty
        assert_predictions(record, leaf, problem, seed)


def assert_predictions(record: ReadableRecord, leaf: npt.NDArray[np.int64], problem: Problem, seed: int) -> None:
    """Values are within the range of the targets of their leaf, but for rounding; probabilities add up to 1."""
    if problem.n_classes:
        shares = class_scores(record, problem.columns, leaf, problem.n_classes)[1]
        np.testing.assert_allclose(shares.sum(1), 1, atol=WRITTEN, err_msg=str(seed))
        assert (shares >= 0).all(), seed
        return
    y = problem.y.reshape(len(leaf), -1)
    found = leaf_outputs(record, problem.columns, leaf, y.shape[1])
    for t in record.leaves:
        own = leaf == t
        size = WRITTEN * np.abs(y).max() + ROUNDED * np.array(record.rows[t].spread)
        assert (found[own] >= y[own].min(0) - size).all(), seed
        assert (found[own] <= y[own].max(0) + size).all(), seed


def spoiled(given: dict[str, Any], job: dict[str, Any], random: Generator) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of which one is wrong."""
    given, job, wrong = dict(given), dict(job), list[str](sorted(given))
    name = str(random.choice([*wrong, "rows", "slopes", "job"]))
    own = given.get(name, job.get(name))
    if name == "job":
        key = str(random.choice(sorted(job)))
        return given, {**job, key: random.choice(np.array([None, "x", -5, 1e400, np.nan], dtype=object))}
    if name == "slopes":
        return given, {**job, name: random.integers(-3, 9, size=random.integers(1, 7)).tolist()}
    target = job if name == "rows" else given
    target[name] = spoiled_array(own, random) if isinstance(own, np.ndarray) else random.choice([-1, 0, 7, 2**31 - 1])
    return given, job


def spoiled_array(own: npt.NDArray[Any], random: Generator) -> Any:
    """An array of another shape or type, or with a number that it must not have."""
    kind = int(random.integers(6))
    if kind == 0:
        return np.ascontiguousarray(np.delete(own, 0, int(random.integers(own.ndim))))
    if kind == 1:
        with np.errstate(all="ignore"):
            return own.astype(str(random.choice(["float16", "int64", "complex128"])))
    if kind == 2:
        return own[..., None]
    if kind == 3:
        return np.repeat(own, 2, axis=0)
    wrong = own.copy()
    numbers: Sequence[Any] = [np.nan, np.inf, -np.inf, 1e38] if own.dtype.kind == "f" else [0, 254, 255]
    if own.dtype.kind == "i":
        numbers = [-1, 2**31 - 1, -(2**31), 10**6]
    wrong.flat[random.integers(own.size)] = random.choice(np.array(numbers, dtype=own.dtype))
    return wrong


def attack_arguments(seed: int) -> bool:
    """Search with an argument that is wrong, and return whether it was refused."""
    problem, random = table(seed, most_rows=40)
    given = read_table(problem)
    changed, job = spoiled(arguments(given), draw_job(random, given).as_dict(), random)
    try:
        core.search(**changed, jobs=[job], threads=int(random.integers(-1, 4)))
    except (ValueError, TypeError):
        return True
    return False


def test_some_random_searches() -> None:
    assert sum(attack_engine(seed) > 3 for seed in range(150)) > 60


def test_some_random_trees() -> None:
    assert sum(attack_find(seed) > 1 for seed in range(25)) >= 8


def test_some_wrong_arguments() -> None:
    assert sum(attack_arguments(seed) for seed in range(600)) > 400


@pytest.mark.slow
def test_random_searches() -> None:
    for seed in range(3_000):
        attack_engine(seed)
        attack_arguments(seed)
        if seed % 10 == 0:
            attack_find(seed)
