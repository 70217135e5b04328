"""Routes through a tree with given masses: values, gradients, and the operator as one of torch's own."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from prunus.errors import InputTypeError, InputValueError
from prunus.ops import path_rewards, tree_traverse
from prunus.ops.routes import tree_routes
from tests.ops.conftest import Target
from tests.ops.problems import generator, rewards, scores
from tests.tolerances import FINITE_DIFFERENCE, NEAR_TIE, assert_same

pytestmark = pytest.mark.usefixtures("poisoned_memory")
compiled = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

SIZES = [
    (0, 3, 1.0),
    (1, 0, 1.0),
    (9, 0, 0.1),
    (1, 3, 10.0),
    (63, 4, 0.1),
    (63, 4, 10.0),
    (63, 9, 1.0),
    (500, 6, 0.1),
    (1000, 3, 10.0),
    (5001, 5, 1.0),
    (3, 12, 0.1),
]
"""Samples, depth, and how large scores are: small ones reach all nodes, large ones a single path."""


def masses(depth: int, *, seed: int = 3) -> Tensor:
    """Masses that no data gave: some pruned, some whole, some between."""
    draw = torch.rand(2 ** (depth + 1) - 1, generator=generator(seed), dtype=torch.float64)
    return (1.6 * draw - 0.3).clamp(0.0, 1.0)


def by_definition(s: Tensor, a: Tensor) -> Tensor:
    u = path_rewards(s) + 0.5
    return torch.minimum(u.clamp(min=0.0), a)


@pytest.mark.parametrize(("n", "depth", "scale"), SIZES)
def test_routes_are_rewards_clipped_at_the_masses(n: int, depth: int, scale: float, chosen: Target) -> None:
    s, a = chosen.tensor(scores(n, depth, scale=scale)), chosen.tensor(masses(depth))
    assert torch.equal(tree_routes(s, a), by_definition(s, a))


@pytest.mark.parametrize("lam", [0.0, 1.0, 30.0])
def test_masses_of_a_batch_give_its_routes(lam: float, chosen: Target) -> None:
    s = chosen.tensor(scores(63, 4))
    z, a = tree_traverse(s, lam)
    assert_same(tree_routes(s, a), z.double())


def test_plain_loops_give_the_same(chosen: Target) -> None:
    s, a = scores(9, 2), masses(2)
    expected = torch.zeros(9, 7, dtype=torch.float64)
    for i in range(9):
        q = [1.0] * 7
        for t in range(1, 7):
            score = float(s[i, (t - 1) // 2])
            q[t] = min(q[(t - 1) // 2], -score if t % 2 else score)
        for t in range(7):
            expected[i, t] = min(max(q[t] + 0.5, 0.0), float(a[t]))
    assert_same(tree_routes(chosen.tensor(s), chosen.tensor(a)), expected)


@pytest.mark.parametrize("n", [1, 7, 600])
def test_a_row_is_the_same_bit_for_bit_alone_and_among_others(n: int, chosen: Target) -> None:
    s, a = chosen.tensor(scores(n, 6)), chosen.tensor(masses(6))
    together = tree_routes(s, a)
    assert torch.equal(torch.cat([tree_routes(row, a) for row in torch.split(s, 1)]), together)
    assert torch.equal(tree_routes(s.flip(0), a).flip(0), together)


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """Sets the number of torch's threads, for one test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_the_number_of_threads_does_not_matter(threads: Callable[[int], None], chosen: Target) -> None:
    s, a = chosen.tensor(scores(5001, 5)), chosen.tensor(masses(5))
    alone = tree_routes(s, a)
    threads(3)
    assert torch.equal(tree_routes(s, a), alone)


@pytest.mark.parametrize("split", [0, 1, 2, 5])
def test_a_nan_score_spoils_its_sample_below_the_split(split: int, chosen: Target) -> None:
    s = chosen.tensor(scores(9, 3, scale=0.1))  # so small that every sample reaches every node
    a = chosen.tensor(masses(3))
    clean = tree_routes(s, a)
    s[4, split] = torch.nan
    z = tree_routes(s, a)
    below = [t for t in range(15) if is_below(t, split)]
    assert z[4].isnan().nonzero().flatten().tolist() == below
    clean[4, below] = torch.nan
    assert_same(z, clean.double())


def is_below(node: int, t: int) -> bool:
    while node > t:
        node = (node - 1) // 2
        if node == t:
            return True
    return False


def test_a_nan_score_that_is_out_of_reach_changes_nothing(chosen: Target) -> None:
    s = chosen.tensor(torch.tensor([[0.75, torch.nan, 0.2]]))  # u of the left child is -1/4
    assert not tree_routes(s, chosen.tensor(torch.ones(7))).isnan().any()


@pytest.mark.parametrize("sign", [-1, 1])
def test_an_infinite_score_acts_like_a_very_large_one(sign: int, chosen: Target) -> None:
    s, a = scores(9, 3), chosen.tensor(masses(3))
    s[4, 1] = sign * 1e6
    large = tree_routes(chosen.tensor(s), a)
    s[4, 1] = sign * torch.inf
    assert torch.equal(tree_routes(chosen.tensor(s), a), large)


@pytest.mark.parametrize("layout", ["transposed", "strided", "expanded"])
def test_strided_inputs_are_read_right(layout: str, chosen: Target) -> None:
    s, a = chosen.tensor(scores(9, 3)), chosen.tensor(masses(3))
    if layout == "expanded":
        s = s[:1].expand(9, 7)
    expected = tree_routes(s.contiguous(), a)
    if layout == "transposed":
        s = s.T.contiguous().T
    if layout == "strided":
        s, a = torch.stack((s, s), 2)[:, :, 0], torch.stack((a, a), 1)[:, 0]
    z = tree_routes(s, a)
    assert z.is_contiguous()
    assert torch.equal(z, expected)


def smooth(s: Tensor, a: Tensor) -> bool:
    """Whether no reward is so close to 0 or to a mass that finite differences step over it."""
    u = path_rewards(s) + 0.5
    return bool((u.abs().min() > 1e-4) & ((u - a).abs().min() > 1e-4))


@pytest.mark.usefixtures("chosen_on_cpu")
@pytest.mark.parametrize(("n", "depth"), [(1, 0), (5, 1), (7, 3)])
def test_gradients_are_those_of_finite_differences(n: int, depth: int) -> None:
    s = scores(n, depth, scale=0.4)
    a = 0.1 + 0.8 * torch.rand(2 ** (depth + 1) - 1, generator=generator(3), dtype=torch.float64)
    assert smooth(s, a)
    assert torch.autograd.gradcheck(tree_routes, (s.requires_grad_(), a.requires_grad_()), **FINITE_DIFFERENCE)


@pytest.mark.parametrize(("n", "depth"), [(63, 0), (63, 4), (500, 6), (3, 9)])
def test_gradients_are_those_of_the_definition(n: int, depth: int, chosen: Target) -> None:
    s, a = scores(n, depth), 0.1 + 0.8 * masses(depth)
    u = path_rewards(s) + 0.5
    upstream = rewards(n, depth, seed=5) * ((u - a).abs() > NEAR_TIE[torch.float32])
    expected = gradients(by_definition, s, a, upstream)
    actual = gradients(tree_routes, chosen.tensor(s), chosen.tensor(a), chosen.tensor(upstream))
    for value, truth in zip(actual, expected, strict=True):
        assert_same(value, truth)


def gradients(function: Callable[[Tensor, Tensor], Tensor], s: Tensor, a: Tensor, grad_z: Tensor) -> tuple[Tensor, ...]:
    s, a = s.detach().requires_grad_(), a.detach().requires_grad_()
    return torch.autograd.grad(function(s, a), (s, a), grad_z, materialize_grads=True)


@pytest.mark.usefixtures("chosen_on_cpu")
def test_a_gradient_goes_to_the_masses_alone_where_only_they_can_change() -> None:
    s, a = torch.tensor([[0.25]]), torch.tensor([1.0, 0.5, 0.5])
    grad_s, grad_a = gradients(tree_routes, s, a, torch.tensor([[1.0, 10.0, 100.0]]))
    assert grad_s.tolist() == [[-10.0]]  # u is 1.5, 0.25, 0.75
    assert grad_a.tolist() == [1.0, 0.0, 100.0]


def test_a_nan_score_gives_finite_gradients(chosen: Target) -> None:
    s, a = chosen.tensor(scores(9, 3, scale=0.1)), chosen.tensor(masses(3))
    s[4, 1] = torch.nan
    assert all(grad.isfinite().all() for grad in gradients(tree_routes, s, a, torch.ones_like(tree_routes(s, a))))


def test_gradients_have_no_derivatives() -> None:
    s, a = scores(3, 2).requires_grad_(), masses(2)
    (grad,) = torch.autograd.grad(tree_routes(s, a).sum(), s, create_graph=True)
    with pytest.raises(RuntimeError, match="prunus::tree_routes can be differentiated once only"):
        torch.autograd.grad(grad.sum(), s)


@pytest.mark.usefixtures("chosen_on_cpu")
@compiled
def test_forward_is_a_sound_operator() -> None:
    arguments = scores(9, 2).requires_grad_(), (0.1 + 0.8 * masses(2)).requires_grad_()
    checks = torch.library.opcheck(torch.ops.prunus.tree_routes.default, arguments)
    assert set(checks.values()) == {"SUCCESS"}


@compiled
def test_backward_is_a_sound_operator() -> None:
    arguments = rewards(9, 2, seed=1), scores(9, 2), masses(2)
    checks = torch.library.opcheck(torch.ops.prunus.tree_routes_backward.default, arguments)
    assert set(checks.values()) == {"SUCCESS"}


@pytest.mark.usefixtures("chosen_on_cpu")
@compiled
@pytest.mark.usefixtures("fresh_compiler")
def test_compiled_equals_eager() -> None:

    def surrounded(s: Tensor, a: Tensor) -> Tensor:
        return tree_routes(2 * s, a) + 1

    whole = torch.compile(surrounded, fullgraph=True, backend="aot_eager", dynamic=True)
    for n in (9, 17, 63):
        s, a, upstream = scores(n, 2), masses(2), rewards(n, 2, seed=1)
        assert torch.equal(whole(s, a), surrounded(s, a))
        expected = gradients(surrounded, s, a, upstream)
        assert all(map(torch.equal, gradients(whole, s, a, upstream), expected))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_shapes_are_known_without_data(dtype: torch.dtype) -> None:
    z = tree_routes(torch.empty(5, 7, dtype=dtype, device="meta"), torch.empty(15, dtype=dtype, device="meta"))
    assert (z.shape, z.dtype, z.device.type) == ((5, 15), dtype, "meta")


@pytest.mark.usefixtures("chosen_on_cpu")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_short_dtypes_are_solved_in_single_precision(dtype: torch.dtype) -> None:
    s, a = scores(63, 3).to(dtype), masses(3).to(dtype)
    z = tree_routes(s, a)
    assert z.dtype == dtype
    assert torch.equal(z, tree_routes(s.float(), a.float()).to(dtype))
    assert all(grad.dtype == dtype for grad in gradients(tree_routes, s, a, torch.ones_like(z)))


def test_masses_may_have_another_precision() -> None:
    s, a = scores(63, 3), masses(3).float()
    assert torch.equal(tree_routes(s, a), tree_routes(s, a.double()))


def test_autocast_gives_single_precision() -> None:
    s, a = scores(63, 3).bfloat16(), masses(3).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = tree_routes(s, a)
    assert torch.equal(z, tree_routes(s.float(), a))


def test_inputs_stay_as_they_are(chosen: Target) -> None:
    s, a = chosen.tensor(scores(9, 3)), chosen.tensor(masses(3))
    tree_routes(s, a)
    assert torch.equal(s, chosen.tensor(scores(9, 3)))
    assert torch.equal(a, chosen.tensor(masses(3)))


@pytest.mark.parametrize("splits", [2, 6, 8])
def test_a_number_of_scores_of_no_tree_is_refused(splits: int) -> None:
    with pytest.raises(InputValueError, match=rf"must be 2\*\*depth - 1 .*, got {splits}"):
        tree_routes(torch.zeros(3, splits), torch.ones(15))


@pytest.mark.parametrize("shape", [(14,), (16,), (7,), (15, 1), ()])
def test_a_wrong_number_of_masses_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputValueError, match=r"a must have one entry for each of the 15 nodes, got a.shape=\("):
        tree_routes(torch.zeros(3, 7), torch.ones(shape))


@pytest.mark.parametrize("shape", [(7,), (2, 3, 7)])
def test_scores_that_are_no_matrix_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputValueError, match="s must have two dimensions"):
        tree_routes(torch.zeros(shape), torch.ones(15))


@pytest.mark.parametrize("s", [[[1.0]], None, torch.zeros(3, 7, dtype=torch.int64)])
def test_what_holds_no_scores_is_refused(s: Any) -> None:
    with pytest.raises(InputTypeError, match="s must"):
        tree_routes(s, torch.ones(15))


@pytest.mark.parametrize("a", [[1.0, 1.0, 1.0], 1.0, None])
def test_masses_that_are_no_tensor_are_refused(a: Any) -> None:
    with pytest.raises(InputTypeError, match=r"a must be a torch\.Tensor, got"):
        tree_routes(torch.zeros(3, 1), a)


def test_masses_on_another_device_are_refused() -> None:
    with pytest.raises(InputValueError, match=r"a must be on the same device as s, got a.device=meta, s.device=cpu"):
        tree_routes(torch.zeros(3, 1), torch.ones(3, device="meta"))
