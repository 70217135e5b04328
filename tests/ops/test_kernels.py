"""Every backend offers all kernels, and those for inference give what the reference and their definitions give."""

import ast
import importlib.util
import inspect
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from prunus.ops import path_rewards, reference
from prunus.ops.backends import BACKENDS, Kernels, kernels, kernels_for
from tests.ops.conftest import Target, skip_unless_available
from tests.ops.problems import generator, weights
from tests.tolerances import ROUNDING, assert_same

if TYPE_CHECKING:  # the type checker compares the types of all arguments and results
    from prunus.ops import cpp, triton

    MODULES: tuple[Kernels, ...] = (cpp, reference, triton)

pytestmark = pytest.mark.usefixtures("poisoned_memory")

FUNCTIONS = sorted(name for name in dir(Kernels) if not name.startswith("_"))
SHAPES = [(0, 3, 5, 2), (1, 0, 3, 1), (1, 3, 1, 3), (63, 0, 7, 2), (63, 4, 9, 1), (500, 2, 17, 3), (3, 7, 8, 2)]
over_backends = pytest.mark.parametrize("backend", BACKENDS)


class Tree(NamedTuple):
    """Inputs, and a tree with linear splits and linear functions at its nodes."""

    x: Tensor  # (n, d)
    weight: Tensor  # (S, d)
    bias: Tensor  # (S,)
    a: Tensor  # (T,)
    slope: Tensor  # (T, k, d)
    constant: Tensor  # (T, k)
    sample_weight: Tensor  # (n,)

    @property
    def scores(self) -> Tensor:
        return self.x @ self.weight.T + self.bias

    def on(self, target: Target) -> "Tree":
        return Tree(*map(target.tensor, self))


def grid_tree(n: int, depth: int, d: int, k: int) -> Tree:
    """Small multiples of 1/8: nothing is rounded. Many u equal a mass, and the first row has scores of exactly 0."""

    def eighths(*size: int, seed: int, most: int = 4) -> Tensor:
        return torch.randint(-most, most + 1, size, generator=generator(seed)).double() / 8

    splits, nodes = 2**depth - 1, 2 ** (depth + 1) - 1
    x, bias = 8 * eighths(n, d, seed=0), eighths(splits, seed=2)
    x[:1], bias[::2] = 0.0, 0.0
    return Tree(
        x,
        eighths(splits, d, seed=1),
        bias,
        falling(eighths(nodes, seed=3, most=8).clamp(min=0.0)),
        eighths(nodes, k, d, seed=4),
        eighths(nodes, k, seed=5),
        8 * eighths(n, seed=6).abs(),
    )


def random_tree(n: int, depth: int, d: int, k: int) -> Tree:
    """Normally distributed numbers, scaled so that samples reach several nodes."""

    def normal(*size: int, seed: int) -> Tensor:
        return torch.randn(size, generator=generator(seed), dtype=torch.float64)

    splits, nodes = 2**depth - 1, 2 ** (depth + 1) - 1
    return Tree(
        normal(n, d, seed=0),
        normal(splits, d, seed=1) / d**0.5,
        normal(splits, seed=2),
        falling(normal(nodes, seed=3).abs().clamp(max=1.0)),
        normal(nodes, k, d, seed=4),
        normal(nodes, k, seed=5),
        weights(n, seed=6),
    )


def falling(a: Tensor) -> Tensor:
    """Masses that are at most their parent's."""
    for t in range(1, len(a)):
        a[t] = torch.minimum(a[t], a[(t - 1) // 2])
    return a


@over_backends
def test_every_backend_names_all_kernels(backend: str) -> None:
    found = importlib.util.find_spec(BACKENDS[backend].module)  # which imports nothing that may be missing
    assert found is not None
    assert found.origin is not None
    body = ast.parse(Path(found.origin).read_text()).body
    names = next(
        line.value for line in body if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__all__"
    )
    assert set(FUNCTIONS) <= set(ast.literal_eval(names))


@over_backends
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_backend_takes_the_same_arguments(name: str, backend: str) -> None:
    skip_unless_available(backend)
    promised = list(inspect.signature(getattr(Kernels, name)).parameters)
    assert list(inspect.signature(getattr(kernels(backend), name)).parameters) == promised[1:]  # without self


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_kernels_for_a_tensor_are_the_fastest(dtype: torch.dtype) -> None:
    skip_unless_available("cpp")
    assert kernels_for(torch.zeros(1, dtype=dtype)) is kernels("cpp")
    assert kernels_for(torch.zeros(1, dtype=dtype, device="meta")) is reference


def test_routes_are_those_of_the_reference(target: Target) -> None:
    for n, depth, d, k in SHAPES:
        tree = grid_tree(n, depth, d, k)
        z = kernels(target.backend).routes(target.tensor(tree.scores), target.tensor(tree.a))
        assert z.dtype == target.dtype
        assert_same(z, reference.routes(tree.scores, tree.a))


def test_sums_above_are_those_of_the_reference(target: Target) -> None:
    for n, depth, d, k in SHAPES:
        for tree, weighted in itertools.product(
            (grid_tree(n, depth, d, k), random_tree(n, depth, d, k)), (False, True)
        ):
            s, a = target.tensor(tree.scores), target.tensor(tree.a)
            weight = target.tensor(tree.sample_weight) if weighted else None
            actual = kernels(target.backend).sums_above(s, weight, a)
            same_numbers = s.double().cpu(), None if weight is None else weight.double().cpu(), a.double().cpu()
            for value, truth in zip(actual, reference.sums_above(*same_numbers), strict=True):
                assert value.dtype == torch.float64
                assert_same(value, truth, ROUNDING[target.dtype])


def test_sums_above_are_those_of_their_definition(target: Target) -> None:
    tree = grid_tree(63, 3, 5, 1)
    u, w = path_rewards(tree.scores) + 0.5, tree.sample_weight
    assert (u == tree.a).any()  # which is not above
    total, active_weight = kernels(target.backend).sums_above(*map(target.tensor, (tree.scores, w, tree.a)))
    for t in range(15):
        above = [i for i in range(63) if u[i, t] > tree.a[t]]
        assert float(active_weight[t]) == sum(float(w[i]) for i in above)
        assert float(total[t]) == sum(float(w[i] * u[i, t]) for i in above)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_sums_above_leave_out_a_sample_whose_weight_is_not_valid(bad: float, target: Target) -> None:
    tree = grid_tree(63, 3, 5, 1)
    w, others = tree.sample_weight.clone(), torch.arange(63) != 4
    w[4] = bad
    actual = kernels(target.backend).sums_above(*map(target.tensor, (tree.scores, w, tree.a)))
    expected = reference.sums_above(tree.scores[others], w[others], tree.a)
    for value, truth in zip(actual, expected, strict=True):
        assert_same(value, truth)


def test_leaves_of_linear_splits_are_those_of_the_reference(target: Target) -> None:
    for n, depth, d, k in SHAPES:
        tree = grid_tree(n, depth, d, k)
        assert n == 0 or depth == 0 or (tree.scores == 0).any()  # such a score goes right
        leaf = kernels(target.backend).linear_leaves(*tree.on(target)[:3])
        assert leaf.dtype == torch.int64
        assert leaf.tolist() == reference.leaves(tree.scores).tolist()


class Table(NamedTuple):
    """A table, and how its columns are scaled, such that the scaled numbers are multiples of 1/2."""

    x: np.ndarray[tuple[int, ...], np.dtype[np.float64]]
    scaling: np.ndarray[tuple[int, ...], np.dtype[np.float64]]

    def scaled(self) -> Tensor:
        center, scale, low, high = self.scaling
        return torch.from_numpy(np.clip((self.x - center) / scale, low, high))


def table(x: Tensor) -> Table:
    d = x.shape[1]
    return Table(x.numpy(), np.stack((np.arange(d) % 3 - 1.0, np.full(d, 2.0), np.full(d, -1.5), np.full(d, 1.0))))


def test_leaves_of_a_table_are_those_of_its_scaled_rows(target: Target) -> None:
    for n, depth, d, k in SHAPES:
        tree = grid_tree(n, depth, d, k)
        x, scaling = table(tree.x)
        weight, bias = (value.float().to(target.device) for value in (tree.weight, tree.bias))
        for dtype in (np.float32, np.float64):
            leaf = kernels(target.backend).table_leaves(x.astype(dtype), scaling, weight, bias)
            assert leaf is not None
            assert leaf.dtype == torch.int32
            assert leaf.tolist() == reference.leaves(table(tree.x).scaled() @ tree.weight.T + tree.bias).tolist()


@pytest.mark.parametrize(("row", "bad"), [(0, np.nan), (62, np.inf), (7, -np.inf)])
def test_leaves_of_a_table_with_a_value_that_is_not_finite_are_none(row: int, bad: float, target: Target) -> None:
    tree = grid_tree(63, 3, 5, 1)
    x, scaling = table(tree.x)
    x[row, 3] = bad
    weight, bias = (value.float().to(target.device) for value in (tree.weight, tree.bias))
    assert kernels(target.backend).table_leaves(x, scaling, weight, bias) is None


def test_a_table_may_be_read_only(target: Target) -> None:
    tree = grid_tree(63, 3, 5, 1)
    x, scaling = table(tree.x)
    weight, bias = (value.float().to(target.device) for value in (tree.weight, tree.bias))
    leaf = kernels(target.backend).table_leaves(x, scaling, weight, bias)
    x.flags.writeable = scaling.flags.writeable = False
    again = kernels(target.backend).table_leaves(x, scaling, weight, bias)
    assert leaf is not None
    assert again is not None
    assert torch.equal(again, leaf)


def test_predictions_are_those_of_the_reference(target: Target) -> None:
    for n, depth, d, k in SHAPES:
        for tree, linear in itertools.product((grid_tree(n, depth, d, k), random_tree(n, depth, d, k)), (False, True)):
            given = tree.on(target)
            same = Tree(*(value.double().cpu() for value in given))
            out = predict(kernels(target.backend), given, linear)
            assert out.dtype == target.dtype
            assert out.device == given.x.device
            assert_same(out, predict(reference, same, linear))


def predict(functions: Kernels, tree: Tree, linear: bool) -> Tensor:
    return functions.predict(tree.x, tree.weight, tree.bias, tree.a, tree.slope if linear else None, tree.constant)


@pytest.mark.parametrize("linear", [False, True])
def test_predictions_are_those_of_their_definition(linear: bool, target: Target) -> None:
    tree = grid_tree(9, 2, 5, 2)
    assert (tree.scores == 0).any()
    expected = torch.zeros(9, 2, dtype=torch.float64)
    for i in range(9):
        q = [1.0] * 7
        for t in range(7):
            if t > 0:
                score = float(tree.scores[i, (t - 1) // 2])
                q[t] = min(q[(t - 1) // 2], -score if t % 2 else score)
            z = min(max(q[t] + 0.5, 0.0), float(tree.a[t]))
            value = tree.constant[t] + (tree.slope[t] @ tree.x[i] if linear else 0.0)
            expected[i] += z * value
    assert_same(predict(kernels(target.backend), tree.on(target), linear), expected)


def inference(functions: Kernels) -> dict[str, Callable[[Tree], Tensor]]:
    """The functions whose result has one row for each row of x."""

    def table_leaves(tree: Tree) -> Tensor:
        x, scaling = table(tree.x.cpu())
        leaf = functions.table_leaves(x, scaling, tree.weight.float(), tree.bias.float())
        assert leaf is not None
        return leaf

    return {
        "routes": lambda tree: functions.routes(tree.scores, tree.a),
        "linear_leaves": lambda tree: functions.linear_leaves(tree.x, tree.weight, tree.bias),
        "table_leaves": table_leaves,
        "predict": lambda tree: predict(functions, tree, linear=True),
        "predict constants": lambda tree: predict(functions, tree, linear=False),
    }


@pytest.mark.parametrize("name", ["linear_leaves", "table_leaves", "predict", "predict constants"])
def test_a_row_has_the_same_bits_alone_and_among_others(name: str, target: Target) -> None:
    function = inference(kernels(target.backend))[name]
    tree = random_tree(2100, 4, 9, 2)  # more rows than a chunk has
    tree = tree._replace(bias=-(tree.weight @ tree.x[0])).on(target)  # row 0 is on all boundaries but for rounding
    together = function(tree)
    for i in (0, 1, 2047, 2048, 2099):
        assert torch.equal(function(tree._replace(x=tree.x[i : i + 1])), together[i : i + 1])
    assert torch.equal(function(tree._replace(x=tree.x.flip(0))).flip(0), together)


@pytest.mark.parametrize("name", list(inference(reference)))
def test_strided_arguments_are_read_right(name: str, target: Target) -> None:
    function = inference(kernels(target.backend))[name]
    tree = grid_tree(63, 3, 5, 2).on(target)
    strided = Tree(*(torch.stack((value, value), value.ndim)[..., 0] for value in tree))
    assert not strided.weight.is_contiguous()
    if name == "table_leaves":  # a table is an array with contiguous rows
        strided = strided._replace(x=tree.x)
    result = function(strided)
    assert result.is_contiguous()
    assert torch.equal(result, function(tree))
