"""The classes of the native engine refuse arrays and numbers that do not fit: none reads or writes beyond an array."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

core: Any = pytest.importorskip("prunus._core")

N, D, L, K, DEPTH, BATCH = 11, 3, 9, 2, 2, 4
"""Rows, inputs of the splits and of the leaves, outputs, depth, rows of a batch. Slopes of nodes use 8 inputs."""
S, T = 2**DEPTH - 1, 2 ** (DEPTH + 1) - 1
STEPS = 3
SIZE = S * 8 + S + T * K + T * K * 8 + K * 16 + K
"""Of the parameters: inputs are padded to multiples of 8."""
MANY = 2**62

Arguments = dict[str, Any]


def floats(*shape: int) -> Tensor:
    return torch.zeros(shape)


EXAMPLES: Arguments = {
    "split_inputs": floats(N, D),
    "leaf_inputs": floats(N, L),
    "target": floats(N, K),
    "offset": floats(N, K),
    "weight": torch.ones(N),
    "outputs": K,
}
MOMENTS: Arguments = {name: floats(SIZE) for name in ("theta", "average", "m", "v", "grad")}
COLUMNS: Arguments = {"owner": torch.arange(D, dtype=torch.int32), "used": torch.ones(S, D)}
ENGINE: Arguments = {
    "depth": DEPTH,
    "split_columns": D,
    "slope_columns": 8,
    "leaf_columns": L,
    "outputs": K,
    "leaf_slopes": True,
    "shared_slopes": True,
    "hidden": None,
    "loss": "squared",
    "parameter": 0.5,
    "strength": 1.0,
    "meant_for": 0,
    "threads": 1,
}
NO_SLOPES: Arguments = {"leaf_slopes": False, "shared_slopes": False}
CALLS: dict[str, Arguments] = {
    "train": {
        "order": torch.arange(N),
        "batch_size": BATCH,
        "first": 0,
        "loss_before": 0.0,
        "steps_before": 0,
        "plan": torch.full((3, STEPS), 0.5, dtype=torch.float64),
        "most_columns": torch.full((STEPS,), 2),
        "weight_decay": 0.1,
        "clip": 1.0,
        "has_decay": torch.ones(6, dtype=torch.uint8),
        "seconds": 1.0,
    },
    "gradient": {"order": torch.arange(N), "scale": 1.0, "theta": floats(SIZE), "grad": floats(SIZE)},
    "masses": {"step": 1, "scale": 1.0, "theta": floats(SIZE), "mass": floats(T)},
    "evaluate": {"scale": 1.0, "theta": floats(SIZE), "mass": floats(T)},
    "linear_masses": {
        "x": floats(N, D),
        "weight": floats(S, D),
        "bias": floats(S),
        "sample_weight": torch.ones(N),
        "lam": 1.0,
        "mass": floats(T),
        "threads": 1,
    },
}
PARTS = {"examples": EXAMPLES, "moments": MOMENTS, "columns": COLUMNS}
NEEDS = {"train": ("examples", "moments", "columns"), "gradient": ("examples", "columns")}
"""The objects that each method is called with; the others take examples alone."""


def given(changes: Arguments, defaults: Arguments, dtype: torch.dtype) -> Arguments:
    """The default arguments in a precision, with the changes that have the names of some of them."""
    cast = {n: v.to(dtype) if isinstance(v, Tensor) and v.dtype == torch.float32 else v for n, v in defaults.items()}
    return cast | {name: value for name, value in changes.items() if name in defaults}


def call(name: str, dtype: torch.dtype = torch.float32, /, engine: Arguments | None = None, **changes: Any) -> Any:
    """Call a method with arguments that fit, but for some changes: to those of the method and of its objects."""
    suffix = "32" if dtype == torch.float32 else "64"
    own = given(changes, CALLS[name], dtype)
    if name == "linear_masses":
        return core.linear_masses(**own)
    used = NEEDS.get(name, ("examples",))
    for part in used:
        kind = getattr(core, part.capitalize() + suffix)
        own[part] = (
            changes[part] if part in changes else kind(**given(changes.get("of_" + part, {}), PARTS[part], dtype))
        )
    made = getattr(core, "Engine" + suffix)(**(ENGINE | (engine or {})))
    return getattr(made, name)(**own)


def arrays(name: str) -> list[tuple[str, str, Tensor]]:
    """The part, the name and the value of each array that a method is given, itself or in one of its objects."""
    parts = () if name == "linear_masses" else NEEDS.get(name, ("examples",))
    listed = [("", CALLS[name]), *((part, PARTS[part]) for part in parts)]
    return [(part, n, v) for part, values in listed for n, v in values.items() if isinstance(v, Tensor)]


def changed(part: str, argument: str, value: Any) -> Arguments:
    return {"of_" + part: {argument: value}} if part else {argument: value}


def resized(tensor: Tensor, dimension: int, change: int) -> Tensor:
    shape = list(tensor.shape)
    shape[dimension] += change
    return torch.zeros(shape, dtype=tensor.dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", CALLS)
def test_sizes_that_fit_are_taken(name: str, dtype: torch.dtype) -> None:
    call(name, dtype)


@pytest.mark.parametrize("name", CALLS)
def test_an_array_of_another_size_is_refused(name: str) -> None:
    for part, argument, array in arrays(name):
        for dimension, change in product(range(array.ndim), (-1, 1)):
            if argument != "order":  # its length is that of the epoch or of the batch
                with pytest.raises(ValueError, match="must"):
                    call(name, **changed(part, argument, resized(array, dimension, change)))


OF_ANOTHER_KIND: dict[str, Callable[[Tensor], Any]] = {
    "dtype": lambda array: array.double() if array.dtype != torch.float64 else array.float(),
    "dimension": lambda array: array.unsqueeze(0),
    "strides": lambda array: array.repeat_interleave(2, -1)[..., ::2],
    "list": lambda array: array.tolist(),
    "number": lambda _: 1.0,
}


@pytest.mark.parametrize("kind", OF_ANOTHER_KIND)
@pytest.mark.parametrize("name", CALLS)
def test_an_array_of_another_kind_is_refused(name: str, kind: str) -> None:
    for part, argument, array in arrays(name):
        with pytest.raises(TypeError, match="incompatible"):
            call(name, **changed(part, argument, OF_ANOTHER_KIND[kind](array)))


@pytest.mark.parametrize("name", [name for name in CALLS if name != "linear_masses"])
def test_objects_of_another_precision_are_refused(name: str) -> None:
    for part in NEEDS.get(name, ("examples",)):
        other = getattr(core, part.capitalize() + "64")(**given({}, PARTS[part], torch.float64))
        for wrong in (other, "examples", 1):
            with pytest.raises(TypeError, match="incompatible"):
                call(name, **dict[str, Any]({part: wrong}))


LABELS: Arguments = {"target": floats(N, 1), "outputs": K}
METHODS = ("train", "gradient", "masses", "evaluate")


def with_value(array: Tensor, place: int, value: float) -> Tensor:
    array = array.clone()
    array.view(-1)[place] = value
    return array


def refused(values: Sequence[Any], change: Callable[[Any], Arguments], methods: Sequence[str]) -> list[Any]:
    return [(method, change(value)) for method in methods for value in values]


REFUSALS: dict[str, list[tuple[str, Arguments]]] = {
    "order must name rows of the examples": refused(
        [-1, N, 2**40, -MANY], lambda row: {"order": with_value(torch.arange(N), -1, row)}, ["train", "gradient"]
    ),
    "plan must have size": refused(
        [BATCH, 2 * BATCH, N + 2], lambda rows: {"order": torch.zeros(rows, dtype=torch.int64)}, ["train"]
    ),
    "first must be the first row of a batch": [
        *refused([-BATCH, 1, N, N + 1, MANY], lambda row: {"first": row}, ["train"]),
        *refused([0, -1], lambda size: {"batch_size": size}, ["train"]),
        ("train", {"order": torch.arange(0)}),
    ],
    "targets must be numbers of classes": refused(
        [-1.0, float(K), 1e30, float("nan"), float("inf"), float("-inf")],
        lambda label: {
            "engine": {"loss": "label"},
            "of_examples": LABELS | {"target": with_value(floats(N, 1), N // 2, label)},
        },
        METHODS,
    ),
    "owner must name a column for each input": refused(
        [-1, D, 2**31 - 1, -(2**31)],
        lambda owner: {"of_columns": {"owner": torch.tensor([0, owner, 0], dtype=torch.int32)}},
        ["train", "gradient"],
    ),
    "most_columns must be at least 1": refused(
        [0, -1, -MANY], lambda most: {"most_columns": torch.tensor([1, most, 1])}, ["train"]
    ),
    "most_columns must be given with columns": [("train", {"most_columns": None})],
    "examples must have the inputs, targets and outputs of the engine": refused(
        [
            {"leaf_inputs": None},
            {"outputs": K + 1, "offset": None},
            LABELS,
            {"split_inputs": floats(N, D + 1)},
            {"split_inputs": floats(N, 0)},
        ],
        lambda of_examples: {"of_examples": of_examples},
        METHODS,
    ),
    "examples must have at least one row": refused(
        [{part: value[:0] for part, value in EXAMPLES.items() if isinstance(value, Tensor)}],
        lambda of_examples: {"of_examples": of_examples},
        METHODS,
    ),
    "the rows of a batch must be from 1 to": [("gradient", {"order": torch.arange(0)})],
    "step must be from 1 to 11": refused([0, -1, N + 1, 2**63 - 1], lambda step: {"step": step}, ["masses"]),
    "steps_before must be from 0 to": refused([-1, 2**63 - 1], lambda steps: {"steps_before": steps}, ["train"]),
    r"the number of splits must be 2\*\*depth - 1": refused(
        [2, 4, 6],
        lambda s: {"weight": floats(s, D), "bias": floats(s), "mass": floats(2 * s + 1)},
        ["linear_masses"],
    ),
    "the number of columns must be from 0 to": [  # an array without rows may have as many columns as it likes
        (
            "linear_masses",
            {"x": floats(0, MANY), "weight": floats(0, MANY), "bias": floats(0), "mass": floats(1)}
            | {"sample_weight": None},
        )
    ],
}


@pytest.mark.parametrize("message", REFUSALS)
def test_what_does_not_fit_is_refused(message: str) -> None:
    for method, changes in REFUSALS[message]:
        with pytest.raises(ValueError, match=message):
            call(method, **changes)


@pytest.mark.parametrize("name", METHODS)
def test_labels_are_taken(name: str) -> None:
    call(name, engine={"loss": "label"}, of_examples=LABELS)


def test_a_batch_may_be_larger_than_the_examples() -> None:
    one: Arguments = {"plan": torch.full((3, 1), 0.5, dtype=torch.float64), "most_columns": torch.tensor([1])}
    for size in (N, N + 1, 2**63 - 1):
        assert call("train", batch_size=size, **one)[0] == N


@pytest.mark.parametrize("most", [D, D + 1, MANY])
def test_splits_that_may_use_more_columns_than_there_are_use_all(most: int) -> None:
    used = torch.ones(S, D)
    call("train", most_columns=torch.full((STEPS,), most), of_columns={"used": used})
    assert bool((used == 1).all())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": "hinge"}, "unknown loss hinge"),
        ({"depth": -1}, "depth must be from 0 to 24, got -1"),
        ({"depth": 25}, "depth must be from 0 to 24, got 25"),
        ({"outputs": 0}, "outputs must be from 1 to"),
        ({"outputs": -1}, "outputs must be from 1 to"),
        ({"outputs": MANY}, "outputs must be from 1 to"),
        ({"split_columns": -1}, "split_columns must be from 0 to"),
        ({"split_columns": MANY}, "split_columns must be from 0 to"),
        ({"leaf_columns": -1}, "leaf_columns must be from 0 to"),
        ({"leaf_columns": 2**63 - 1}, "leaf_columns must be from 0 to"),
        ({"slope_columns": -1}, "slope_columns must be from 0 to 9, got -1"),
        ({"slope_columns": 16}, "slope_columns must be from 0 to 9, got 16"),
        ({"slope_columns": MANY}, "slope_columns must be from 0 to 9"),
        ({"slope_columns": 7}, "slope_columns must be all leaf_columns, or whole lanes of them"),
        ({"depth": 24, "leaf_columns": 2**31 - 1, "outputs": 2**31 - 1}, "the tree must have fewer parameters"),
        ({"depth": 24, "split_columns": 2**31 - 1}, "the tree must have fewer parameters"),
        ({"meant_for": -1}, "meant_for must be from 0 to"),
        ({"hidden": [5]}, "hidden must be None with slopes"),
        (NO_SLOPES | {"hidden": [5, 0]}, "hidden must be from 1 to"),
        (NO_SLOPES | {"hidden": [MANY]}, "hidden must be from 1 to"),
        (NO_SLOPES | {"hidden": [2**31 - 1, 2**31 - 1]}, "the network must have fewer parameters"),
    ],
)
def test_an_engine_that_cannot_be_is_refused(changes: Arguments, message: str) -> None:
    for kind in (core.Engine32, core.Engine64):
        with pytest.raises(ValueError, match=message):
            kind(**(ENGINE | changes))


def test_an_engine_of_other_types_is_refused() -> None:
    wrong: list[tuple[str, Any]] = [("depth", 2**40), ("depth", 2.5), ("outputs", None), ("loss", 3), ("strength", "1")]
    for name, value in [*wrong, ("threads", 2**40), ("hidden", 3), ("hidden", [2.5])]:
        with pytest.raises(TypeError, match="incompatible"):
            core.Engine32(**(ENGINE | {name: value}))


@pytest.mark.parametrize("outputs", [0, -1, 2**31, -MANY])
def test_examples_have_at_least_one_output(outputs: int) -> None:
    for offset in (EXAMPLES["offset"], None):
        with pytest.raises(ValueError, match="outputs must be from 1 to"):
            core.Examples32(**(EXAMPLES | {"outputs": outputs, "offset": offset}))


@pytest.mark.parametrize("name", ["gradient", "evaluate"])
def test_inputs_of_splits_and_leaves_may_share_memory_in_part(name: str) -> None:
    """They were once taken for one matrix then, which is wider than the slopes of the leaves."""
    x = torch.randn(1, 40, generator=torch.Generator().manual_seed(0))
    engine = {"split_columns": 40, "slope_columns": 2, "leaf_columns": 2, "depth": 0}
    size = {"theta": torch.ones(2 + 16 + 16 + 2), "grad": floats(36), "mass": torch.ones(1), "order": torch.arange(1)}
    rest = {part: value[:1] for part, value in EXAMPLES.items() if isinstance(value, Tensor)}
    found = [
        call(name, engine=engine, columns=None, of_examples=rest | {"split_inputs": x, "leaf_inputs": leaf}, **size)
        for leaf in (x[:, :2], x[:, :2].clone())
    ]
    assert found[0] == found[1]


def test_more_parts_than_rows() -> None:
    """A wide batch of few rows is divided into more parts than it has rows."""
    d = 200_000
    rest = {part: value[:2] for part, value in EXAMPLES.items() if isinstance(value, Tensor)}
    examples = rest | {"split_inputs": torch.ones(2, d), "leaf_inputs": None}
    size = d + 1 + 3 * K + K
    engine = {"split_columns": d, "leaf_columns": d, "depth": 1, "leaf_slopes": False, "shared_slopes": False}
    for threads in (1, 3):
        grad = floats(size)
        call(
            "gradient",
            engine=engine | {"threads": threads},
            columns=None,
            of_examples=examples,
            order=torch.arange(2),
            theta=torch.ones(size),
            grad=grad,
        )
        assert bool(grad.isfinite().all())


SIZES = list(product([1, 5, 600], [0, 1, 9], [0, 1, 17], [1, 3], [0, 1, 5]))
"""Numbers of rows, of inputs of splits and of leaves, of outputs, and depths."""
ODD = [float("nan"), float("inf"), -float("inf"), 0.0, -0.5, 0.5]


def odd_numbers(source: torch.Generator, dtype: torch.dtype, *shape: int) -> Tensor:
    numbers = torch.randn(shape, generator=source, dtype=dtype)
    rare = torch.rand(shape, generator=source) < 0.02
    numbers[rare] = torch.tensor(ODD, dtype=dtype)[torch.randint(len(ODD), (int(rare.sum()),), generator=source)]
    return numbers


def problem(source: torch.Generator, dtype: torch.dtype, engine: Arguments, n: int, few: bool) -> Arguments:
    """Arguments for all methods of an engine, with odd numbers among them."""

    def numbers(*shape: int) -> Tensor:
        return odd_numbers(source, dtype, *shape)

    depth, d, k, steps = engine["depth"], engine["split_columns"], engine["outputs"], -(-n // BATCH)
    sizes = (core.Engine32 if dtype == torch.float32 else core.Engine64)(**engine).sizes
    size = sum(sizes)
    examples = {"split_inputs": numbers(n, d), "leaf_inputs": numbers(n, engine["leaf_columns"]), "outputs": k}
    examples |= {"target": numbers(n, k), "offset": numbers(n, k), "weight": numbers(n).abs()}
    columns = {"owner": torch.arange(d, dtype=torch.int32) // 2, "used": torch.ones(2**depth - 1, d, dtype=dtype)}
    return {
        "engine": engine,
        "of_examples": examples,
        "of_moments": {name: numbers(size) for name in MOMENTS},
        "order": torch.randint(n, (n,), generator=source),
        "plan": torch.full((3, steps), 0.5, dtype=torch.float64),
        "has_decay": torch.ones(len(sizes), dtype=torch.uint8),
        "most_columns": torch.ones(steps, dtype=torch.int64) if few else None,
        "theta": numbers(size),
        "grad": numbers(size),
        "mass": numbers(2 ** (depth + 1) - 1),
    } | ({"of_columns": columns} if few else {"columns": None})


@pytest.mark.parametrize("threads", [-1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("few", [False, True])
def test_all_sizes_that_fit_are_taken(few: bool, dtype: torch.dtype, threads: int) -> None:
    """Under a sanitizer this shows that no access is out of bounds; elsewhere that nothing crashes."""
    source = torch.Generator().manual_seed(0)
    for n, d, leaf_d, k, depth in SIZES:
        shape = {"depth": depth, "split_columns": d, "leaf_columns": leaf_d, "outputs": k, "threads": threads}
        slope_d = leaf_d if depth == 1 else min(leaf_d, 8 * k) // 8 * 8
        slopes = {"slope_columns": slope_d, "leaf_slopes": bool(n % 2), "shared_slopes": d > 0}
        for leaves in (slopes, NO_SLOPES | {"slope_columns": leaf_d, "hidden": [[], [1], [25, 8]][(n + leaf_d) % 3]}):
            arguments = problem(source, dtype, ENGINE | shape | leaves, n, few)
            for name in ("train", "gradient", "masses", "evaluate"):
                call(name, dtype, **arguments)
