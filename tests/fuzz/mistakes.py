"""Wrong or odd options, tables, targets, weights and validation rows, one or two of which a case puts into a fit."""

import random
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import torch
from scipy.sparse import csr_array

from prunus import ArgminTreeClassifier, ArgminTreeClusterer, ArgminTreeRegressor

NAN, INF, HUGE = float("nan"), float("inf"), 10**400
ANYTHING: list[Any] = [
    *(
        None,
        True,
        -1,
        0,
        0.0,
        1,
        1.5,
        NAN,
        INF,
        -INF,
        -0.5,
        "",
        "x",
        "auto",
        b"x",
        [],
        {},
        (),
        [1],
        {"a": 1},
        object(),
        ...,
    ),
    *(np.int64(1), np.float32(0.5), np.array(1), np.array([1, 2]), np.nan, "1", ["x"], [None], 1j, Path("x"), range(2)),
]
"""Values that are wrong for nearly every option."""
LARGE: list[Any] = [2**31, 2**63, 10**30, HUGE, 1e308, (10**30,), [2**40]]


class Problem(NamedTuple):
    """What is handed to `fit`."""

    kind: type
    options: dict[str, Any]
    x: Any
    y: Any
    weight: Any = None
    eval_set: Any = None


def problem(dice: random.Random) -> Problem:
    """A sound problem, tiny and of any kind."""
    kind = dice.choice([ArgminTreeClassifier, ArgminTreeRegressor, ArgminTreeClusterer])
    options: dict[str, Any] = {
        "depth": dice.randrange(4),
        "split": dice.choice(["linear", "linear", "elu", "mlp", "sparse_mlp"]),
        "leaf": dice.choice(["constant", "constant", "additive", "linear", "mlp"]),
        "hidden_layer_sizes": (4,),
        "max_epochs": dice.choice([1, 2]),
        "random_state": 0,
    }
    n = dice.choice([1, 2, 8, 8, 12])
    x = table(dice, n)
    y = targets(dice, kind, n)
    weight = [dice.choice([0.5, 1.0, 3.0]) for _ in range(n)] if dice.random() < 0.2 else None
    eval_set = (x, y) if kind is not ArgminTreeClusterer and dice.random() < 0.2 else None
    return Problem(kind, options, x, y, weight, eval_set)


def table(dice: random.Random, n: int) -> Any:
    columns: dict[str, list[Any]] = {
        "size": [dice.gauss(0, 1) for _ in range(n)],
        "color": [dice.choice(["red", "blue", None]) for _ in range(n)],
        "count": [dice.randrange(5) for _ in range(n)],
    }
    kind = dice.randrange(3)
    if kind == 0:
        return np.array([columns["size"], columns["count"]], dtype=np.float64).T
    return pd.DataFrame(columns) if kind == 1 else pl.DataFrame(columns)


def targets(dice: random.Random, kind: type, n: int) -> Any:
    if kind is ArgminTreeClassifier:
        labels: list[Any] = dice.choice([["a", "b"], [0, 1, 2], [True, False], ["only"], [0.0, 1.0]])
        return [dice.choice(labels) for _ in range(n)]
    if kind is ArgminTreeRegressor:
        values = [[dice.gauss(0, 1) for _ in range(n)], [7.0] * n, [[dice.gauss(0, 1), 0.0] for _ in range(n)]]
        return dice.choice(values)
    return None


def mistake(dice: random.Random, given: Problem) -> Problem:
    """The same problem with something wrong or odd in it."""
    parts = ["options", "options", "x", "y", "weight"] + ["eval_set"] * (given.kind is not ArgminTreeClusterer)
    part = dice.choice(parts)
    if part == "options":
        return given._replace(options=given.options | odd_option(dice, given.kind))
    if part == "x":
        return given._replace(x=odd_table(dice, given.x))
    if part == "y":
        return given._replace(y=odd_targets(dice, len_of(given.x)))
    if part == "weight":
        return given._replace(weight=odd_weight(dice, len_of(given.x)))
    return given._replace(eval_set=odd_eval_set(dice, given))


def len_of(x: Any) -> int:
    """Number of rows, also of things that are no tables."""
    shape = getattr(x, "shape", None)
    if shape:
        return int(shape[0])
    return len(x) if hasattr(x, "__len__") else 1


def odd_option(dice: random.Random, kind: type) -> dict[str, Any]:
    """One option with a value that is wrong, or right but odd."""
    name = dice.choice(sorted(kind().get_params()))
    own = OWN.get(name)
    if own and dice.random() < 0.5:
        return {name: dice.choice(own)}
    if name not in ("max_epochs", "early_stopping_rounds") and dice.random() < 0.2:  # this many epochs take forever
        return {name: dice.choice(LARGE)}
    if name == "max_epochs":
        return {name: dice.choice([value for value in ANYTHING if not isinstance(value, str)])}
    return {name: dice.choice(ANYTHING)}


OWN: dict[str, list[Any]] = {
    "depth": [12.0, 13, "4", np.int32(2), np.float64(2)],
    "pruning_strength": [1e38, 3.5e38, 1e-320, "1"],
    "split": [
        *("oblique", torch.nn.Linear, lambda *_: None, lambda *_: torch.nn.Identity(), lambda *_: torch.nn.Linear),
        *(lambda n, depth: torch.nn.Linear(n, 2**depth), lambda n, depth: torch.nn.Linear(n, 2**depth - 1)),
    ],
    "leaf": ["tree", "Constant"],
    "hidden_layer_sizes": [
        *(5, "8,8", (0,), (-1,), (1.5,), [[4]], (4, None), np.array([4, 4]), np.array(4), {4}, (2**40,)),
    ],
    "dropout": [1.0, 0.999999, 1e-30, "0.1"],
    "pieces": [64, 65, 3, 2.0],
    "loss": [
        *("cross_entropy", "squared_error", lambda *_: None, lambda *_: 1.0, lambda *_: torch.zeros(0)),
        *(lambda output, _: output.mean() * NAN, lambda output, _: output[:1], lambda output, _: output.sum(1)),
        *(lambda output, _: output.detach().mean(), lambda output, _: 1j * output),
    ],
    "batch_size": [2**31, 10**30, "32", 3.0],
    "learning_rate": [1e-320, 1e30, 1e308, "0.1"],
    "weight_decay": [1e-320, 1e30, 1e308],
    "optimizer": [
        *("adam", torch.optim.SGD, torch.optim.Adagrad, lambda *_, **__: None, lambda *_, **__: 7),
        lambda *_, **__: torch.optim.SGD([torch.zeros(1)], 0.1),
    ],
    "schedule": ["plateau", "constant", "linear"],
    "early_stopping_rounds": [1, 2, 10**30, "1"],
    "validation_fraction": [1e-9, 0.999999, 0.5, 1e-320, 1.0],
    "device": ["cuda", "cuda:99", "meta", "cpu:0", "cpu:99", "xyz", "mps", "a b", torch.device("meta")],
    "random_state": [2**31, 2**32, -1, np.random.default_rng(0), np.random.RandomState(0), np.random, "0"],
    "warm_start": [1, "yes", np.True_],
    "checkpoint": ["", ".", "no/such/folder/c", "a\0b", "c" * 300, Path("here.checkpoint"), b"c"],
    "verbose": [1, 10, -1, True],
    "callbacks": [
        *([lambda _: None], [lambda _: True], (lambda _: np.True_,), [lambda _: "stop"], [lambda _: np.array([1, 2])]),
        *([None], [int], [7], "x", print),
    ],
    "class_weight": [
        *("balanced", {}, {"a": 1.0}, {"a": -1.0}, {"a": NAN}, {0: 0.0, 1: 0.0, 2: 0.0}, {"a": "x"}, {"a": None}, "x"),
        *({"a": 1e308, "b": 1e308}, {0: 1e-320}, [1, 2], {"a": 0.0, "b": 1.0}, {True: 1, False: 0}),
    ],
    "max_leaf_nodes": [1, 2, 10**30, 2.0],
    "n_clusters": [1, 2, 10**30, 2.0],
    "targets": [
        *([0], [-1], [5], ["size"], ["no"], [0, 1], [0, 0], [1.0], [True], [None], np.array(0), np.array([[0]])),
        *([[0]],),
    ],
}
"""Values for one option only: callables that do not do what they must, values at the limits, and names."""


def odd_values(dice: random.Random, n: int) -> list[Any]:
    """A column of values that tables hardly ever hold."""
    number = dice.gauss(0, 1)
    kinds: list[list[Any]] = [
        [NAN] * n,
        [None] * n,
        [INF] + [number] * (n - 1),
        [1e308 * dice.choice([-1, 1]) for _ in range(n)],
        [HUGE] * n,
        [5e-324 * dice.randrange(3) for _ in range(n)],
        [[1, 2]] * n,
        [{"a": 1}] * n,
        [1j] * n,
        [object()] * n,
        [dice.choice(["a", 1, None, 2.5, True]) for _ in range(n)],
        [dice.choice(["", "\0", "\ud800", "a" * 1000]) for _ in range(n)],
        [date(1, 1, 1), *[date(9999, 12, 31)] * (n - 1)],
        [pd.NaT] * n,
        [pd.NA, *[1] * (n - 1)],
        [np.array([1.0])] * n,
        [b"\xff"] * n,
        [(1,)] * n,
        [...] * n,
    ]
    return dice.choice(kinds)[:n]


def odd_table(dice: random.Random, x: Any) -> Any:
    """A table with something odd in it, or no table at all."""
    n = len_of(x)
    odd = odd_values(dice, n)
    columns = pd.Series(odd, dtype=object)
    numbers = np.arange(2.0 * n).reshape(n, 2)
    choices: list[Any] = [
        lambda: pd.DataFrame({"a": columns}),
        lambda: pd.DataFrame({"a": columns, "b": numbers[:, 0]}),
        lambda: np.array([[value, 1] for value in odd], dtype=object) if not isinstance(odd[:1], np.ndarray) else None,
        lambda: [[value, 1.0] for value in odd],
        lambda: pd.DataFrame(numbers, columns=["a", "a"]),
        lambda: pd.DataFrame(numbers, columns=[dice.choice([0, None, NAN, ("a", 1)]), "a"]),
        lambda: pd.DataFrame(numbers, columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])),
        lambda: pd.DataFrame(numbers, columns=["", " "]),
        lambda: pd.DataFrame(numbers, columns=["a\nb", "\ud800"]),
        lambda: pd.DataFrame(
            {"a": pd.Categorical(["x"] * n, categories=["x", "y"]), "b": pd.array([None] * n, dtype="Int64")}
        ),
        lambda: pd.DataFrame({"a": pd.arrays.SparseArray(numbers[:, 0])}),
        lambda: pd.DataFrame({"a": pd.period_range("2020", periods=n, freq="M"), "b": pd.interval_range(0, n)}),
        lambda: pl.DataFrame({"a": [[1]] * n, "b": numbers[:, 0]}),
        lambda: pl.DataFrame({"a": [{"k": 1}] * n}),
        lambda: pl.DataFrame({"a": numbers[:, 0]}).lazy(),
        lambda: pl.DataFrame({"a": [None] * n, "b": numbers[:, 0] * INF}),
        lambda: pd.Series(numbers[:, 0]),
        lambda: numbers[:0],
        lambda: numbers[:, :0],
        lambda: pd.DataFrame(),
        lambda: pl.DataFrame(),
        lambda: numbers[:1],
        lambda: numbers[0] if n else numbers,
        lambda: numbers[None],
        lambda: np.float64(3),
        lambda: csr_array(numbers),
        lambda: torch.from_numpy(numbers),
        lambda: torch.from_numpy(numbers).requires_grad_(),
        lambda: np.ma.masked_array(numbers, mask=numbers > 1),
        lambda: np.zeros(n, dtype=[("a", "f8"), ("b", "i4")]),
        lambda: numbers.astype(np.complex64),
        lambda: numbers.astype(np.longdouble) * np.longdouble("1e4000"),
        lambda: numbers.astype(">f4"),
        lambda: numbers.astype(np.float16) * np.float16(60000),
        lambda: np.full((n, 2), NAN),
        lambda: numbers * 1e308,
        lambda: numbers.astype("M8[ns]"),
        lambda: np.full((n, 1), np.datetime64("NaT")),
        lambda: numbers.astype(str),
        lambda: numbers.astype("S"),
        lambda: [[1.0], [1.0, 2.0]],
        lambda: [[]],
        list,
        lambda: (row for row in numbers),
        lambda: {"a": [1.0] * n},
        lambda: [{"a": 1.0}] * n,
        lambda: {1.0, 2.0},
        lambda: dice.choice(ANYTHING),
        lambda: np.empty((n, 2), dtype=object),
        lambda: memoryview(numbers),  # type: ignore[arg-type]
        lambda: numbers[:, ::-1],
        lambda: np.broadcast_to(np.float32(1), (n, 3)),
    ]
    try:
        return dice.choice(choices)()
    except (pl.exceptions.PolarsError, UnicodeError, ValueError, TypeError, OverflowError):
        return numbers


def odd_targets(dice: random.Random, n: int) -> Any:
    """Targets that no estimator takes, or hardly any."""
    numbers = np.arange(float(n))
    choices: list[Any] = [
        odd_values(dice, n),
        np.where(numbers == 0, dice.choice([NAN, INF, -INF]), numbers),
        numbers * 1e308,
        numbers[:-1],
        np.append(numbers, 1.0),
        [],
        np.zeros((n, 0)),
        np.zeros((n, 2, 2)),
        np.zeros((n, 1)),
        np.zeros((n, 2)),
        [["a", "b"]] * n,
        ["a"] * n,
        [f"label {i}" for i in range(n)],
        [1, "a", None, 2.5][:n] * n,
        [HUGE] * n,
        [b"a"] * n,
        numbers.astype("M8[D]"),
        numbers.astype("m8[s]"),
        numbers + 1j,
        numbers > 1,
        numbers + 0.5,
        pd.Series(numbers, index=numbers[::-1]),
        pd.Series(["a"] * n, dtype="category"),
        pd.Series([None] * n, dtype="Int64"),
        pd.Series([1] * n, dtype="Int64"),
        pd.Series(["a"] * n, dtype="string"),
        pd.DataFrame({"y": numbers}),
        pl.Series("y", numbers),
        pl.Series("y", ["a"] * n),
        pl.DataFrame({"y": numbers, "z": numbers}),
        torch.from_numpy(numbers),
        torch.from_numpy(numbers).requires_grad_(),
        csr_array(numbers[:, None]),
        np.ma.masked_array(numbers, mask=numbers > 0),
        [[1.0], [1.0, 2.0]],
        [{"a": 1}] * n,
        {"a": 1},
        (value for value in numbers),
        dice.choice(ANYTHING),
        ["\ud800", "\0", ""][:n] * n,
    ]
    return dice.choice(choices)


def odd_weight(dice: random.Random, n: int) -> Any:
    """Weights that are wrong or at the limits."""
    ones = np.ones(n)
    odd = [-1.0, NAN, INF, 0.0, 1e308, 5e-324, 1e-300, 1e38]
    choices: list[Any] = [
        ones * dice.choice(odd),
        np.where(np.arange(n) == 0, dice.choice(odd), 1.0),
        np.where(np.arange(n) == 0, dice.choice(odd), 0.0),
        np.where(np.arange(n) == 0, dice.choice(odd), 1e-30),
        ones[:-1],
        np.append(ones, 1.0),
        ones[:, None],
        ones.astype(str),
        ["a"] * n,
        [None] * n,
        [HUGE] * n,
        ones + 1j,
        ones > 0,
        pd.Series(ones),
        pl.Series("w", ones),
        torch.from_numpy(ones),
        [],
        [[1.0], [1.0, 2.0]],
        {"a": 1},
        [{"a": 1}] * n,
        dice.choice(ANYTHING),
    ]
    return dice.choice(choices)


def odd_eval_set(dice: random.Random, given: Problem) -> Any:
    """Validation rows that do not fit the training rows, or are none."""
    x, y, n = given.x, given.y, len_of(given.x)
    choices: list[Any] = [
        (odd_table(dice, x), y),
        (x, odd_targets(dice, n)),
        (x, y, odd_weight(dice, n)),
        (np.zeros((n, 5)), y),
        (pd.DataFrame({"other": np.zeros(n)}), y),
        (x, None),
        (None, y),
        (x,),
        (),
        [],
        [(x, y)],
        [(x, y), (x, y)],
        [x, y],
        (x, y, None, None),
        (x[:0] if hasattr(x, "shape") else [], []),
        dice.choice(ANYTHING),
        {"X": x, "y": y},
    ]
    return dice.choice(choices)
