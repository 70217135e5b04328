"""The operators as torch's own: checked by opcheck, compiled, under autocast, in short dtypes and on threads."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor

from prunus.ops import TreeArgmin, tree_argmin, tree_traverse
from tests.ops.conftest import skip_unless_available
from tests.ops.problems import Evaluation, Operator, evaluate, parents, rewards, scores, weights
from tests.tolerances import assert_same

OPERATORS = [tree_traverse, tree_argmin]
TWO_CASES: list[tuple[Operator, bool, str]] = [(tree_traverse, True, "cpp"), (tree_argmin, False, "reference")]
FOUR_CASES = [*TWO_CASES, (tree_traverse, False, "reference"), (tree_argmin, True, "cpp")]
"""Each operator with weights and without; to torch a backend is only a string."""


def over(cases: list[tuple[Operator, bool, str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("operator", "weighted", "cpu_backend"), cases, indirect=["cpu_backend"])


compiled = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def matrix(operator: Operator, n: int = 9, depth: int = 2, *, seed: int = 0) -> Tensor:
    return scores(n, depth, seed=seed) if operator is tree_traverse else rewards(n, depth, seed=seed)


def assert_evaluations_same(actual: Evaluation, expected: Evaluation) -> None:
    for value, truth in zip(actual, expected, strict=True):
        if truth is not None:
            assert isinstance(value, Tensor)
            assert_same(value, truth)


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """Sets the number of torch's threads, for one test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def forward_arguments(operator: Operator, backend: str, weighted: bool) -> tuple[Any, ...]:
    lam = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)
    weight = (weights(9) + 0.1).requires_grad_() if weighted else None
    return matrix(operator).requires_grad_(), lam, weight, backend


def backward_arguments(operator: Operator, backend: str, weighted: bool) -> tuple[Any, ...]:
    x, lam, weight, _ = (
        y.detach() if isinstance(y, Tensor) else y for y in forward_arguments(operator, backend, weighted)
    )
    _, *saved = getattr(torch.ops.prunus, operator.__name__)(x, lam, weight, backend)
    return rewards(9, 2, seed=1), rewards(1, 2, seed=2)[0], x, *saved, lam, weight, backend


@compiled
@over(FOUR_CASES)
def test_forward_is_a_sound_operator(operator: Operator, weighted: bool, cpu_backend: str) -> None:
    overload = getattr(torch.ops.prunus, operator.__name__).default
    checks = torch.library.opcheck(overload, forward_arguments(operator, cpu_backend, weighted))
    assert set(checks.values()) == {"SUCCESS"}


@compiled
@over(TWO_CASES)
def test_backward_is_a_sound_operator(operator: Operator, weighted: bool, cpu_backend: str) -> None:
    overload = getattr(torch.ops.prunus, f"{operator.__name__}_backward").default
    checks = torch.library.opcheck(overload, backward_arguments(operator, cpu_backend, weighted))
    assert set(checks.values()) == {"SUCCESS"}


def surrounded(operator: Operator) -> Operator:
    """The operator between others, so that there is something to compile."""

    def call(x: Tensor, lam: Tensor, *, sample_weight: Tensor | None, backend: str) -> TreeArgmin:
        z, a = operator(2 * x, lam, sample_weight=sample_weight, backend=backend)
        return TreeArgmin(z + 1, a)

    return call


def compiled_operator(operator: Operator, **options: Any) -> Operator:
    whole: Operator = torch.compile(surrounded(operator), fullgraph=True, **options)
    return whole


@compiled
@pytest.mark.usefixtures("fresh_compiler")
@over(TWO_CASES)
def test_compiled_equals_eager(operator: Operator, weighted: bool, cpu_backend: str) -> None:
    weight = weights(9) if weighted else None
    whole = compiled_operator(operator, backend="aot_eager")
    actual = evaluate(whole, matrix(operator), 1.3, weight, backend=cpu_backend)
    assert_evaluations_same(actual, evaluate(surrounded(operator), matrix(operator), 1.3, weight))


@compiled
@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize(
    ("operator", "cpu_backend"), [(tree_traverse, "cpp"), (tree_argmin, "reference")], indirect=["cpu_backend"]
)
def test_compiled_takes_any_number_of_samples_without_recompiling(operator: Operator, cpu_backend: str) -> None:
    whole = compiled_operator(operator, backend="aot_eager", dynamic=True)
    evaluate(whole, matrix(operator, 5), 1.3, backend=cpu_backend)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for n in (6, 17, 63):
            actual = evaluate(whole, matrix(operator, n), 1.3, backend=cpu_backend)
            assert_evaluations_same(actual, evaluate(surrounded(operator), matrix(operator, n), 1.3))


@compiled
@pytest.mark.slow  # inductor compiles C++; test_compiled_equals_eager shows that what it is given is right
@pytest.mark.usefixtures("fresh_compiler")
def test_compiled_by_inductor_equals_eager() -> None:
    whole = compiled_operator(tree_traverse)
    actual = evaluate(whole, scores(9, 2), 1.3, weights(9), backend="auto")
    assert_evaluations_same(actual, evaluate(surrounded(tree_traverse), scores(9, 2), 1.3, weights(9)))


@compiled
@pytest.mark.usefixtures("fresh_compiler")
def test_compiled_checks_the_values_it_is_given() -> None:
    whole = torch.compile(lambda s, lam: tree_traverse(s, lam).z, fullgraph=True, backend="aot_eager")
    with pytest.raises(ValueError, match=r"lam must be at least 0, got lam=-1\.0"):
        whole(scores(9, 2), torch.tensor(-1.0))


@compiled
@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize(("autocast", "cpu_backend"), [(False, "cpp"), (True, "reference")], indirect=["cpu_backend"])
def test_compiled_keeps_the_dtypes(autocast: bool, cpu_backend: str) -> None:
    whole = torch.compile(lambda s: tree_traverse(s, 1.3, backend=cpu_backend), fullgraph=True, backend="aot_eager")
    s = scores(9, 2).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        z, a = whole(s)
    assert z.dtype == a.dtype == (torch.float32 if autocast else torch.bfloat16)


@compiled
@pytest.mark.usefixtures("fresh_compiler")
def test_compiled_takes_any_number_as_lam() -> None:
    whole = torch.compile(lambda s, lam: tree_traverse(s, lam).a, fullgraph=True, backend="aot_eager")
    for lam in (1.3, 2.5, 3):
        assert torch.equal(whole(scores(9, 2), lam), tree_traverse(scores(9, 2), lam).a)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("backend", ["auto", "reference", "cpp"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_shapes_are_known_without_data(operator: Operator, backend: str, dtype: torch.dtype) -> None:
    z, a = operator(torch.empty(5, 7, dtype=dtype, device="meta"), 1.0, backend=backend)
    assert z.dtype == a.dtype == dtype
    assert z.device.type == a.device.type == "meta"
    assert a.shape == (15 if operator is tree_traverse else 7,)
    assert z.shape == (5, *a.shape)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("operator", OPERATORS)
def test_short_dtypes_are_solved_in_single_precision(operator: Operator, dtype: torch.dtype, cpu_backend: str) -> None:
    x = matrix(operator, 63, 3).to(dtype)
    z, a = operator(x, 1.3, backend=cpu_backend)
    expected = operator(x.float(), 1.3, backend=cpu_backend)
    assert torch.equal(z, expected.z.to(dtype))
    assert torch.equal(a, expected.a.to(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("operator", OPERATORS)
def test_short_dtypes_get_gradients_of_their_own(operator: Operator, dtype: torch.dtype, cpu_backend: str) -> None:
    x, w = matrix(operator, 63, 3).to(dtype), weights(63).to(dtype)
    actual = evaluate(operator, x, 1.25, w, backend=cpu_backend)
    assert actual.grad_weight is not None
    assert actual.grad_x.dtype == actual.grad_lam.dtype == actual.grad_weight.dtype == dtype
    assert_same(actual.grad_x, evaluate(operator, x.float(), 1.25, w.float(), backend=cpu_backend).grad_x)


@pytest.mark.parametrize("operator", OPERATORS)
def test_double_precision_is_kept(operator: Operator, cpu_backend: str) -> None:
    z, a = operator(matrix(operator), 1.3, backend=cpu_backend)
    assert z.dtype == a.dtype == torch.float64


@pytest.mark.parametrize("operator", OPERATORS)
def test_autocast_gives_single_precision(operator: Operator, cpu_backend: str) -> None:
    x = matrix(operator, 63, 3).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z, a = operator(x, 1.3, backend=cpu_backend)
    expected = operator(x.float(), 1.3, backend=cpu_backend)
    assert torch.equal(z, expected.z)
    assert torch.equal(a, expected.a)


def test_autocast_trains_a_linear_split(cpu_backend: str) -> None:
    linear = torch.nn.Linear(5, 7)
    x = scores(63, 3)[:, :5].float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z, _ = tree_traverse(linear(x), 1.3, backend=cpu_backend)
        grad, _ = torch.autograd.grad((z**2).sum(), tuple(linear.parameters()))
    assert z.dtype == grad.dtype == torch.float32
    assert grad.isfinite().all()
    assert grad.any()


@pytest.mark.parametrize("operator", OPERATORS)
def test_autocast_keeps_double_precision(operator: Operator, cpu_backend: str) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z, a = operator(matrix(operator), 1.3, backend=cpu_backend)
    assert z.dtype == a.dtype == torch.float64


@pytest.mark.parametrize(("count", "cpu_backend"), [(2, "cpp"), (7, "cpp"), (3, "reference")], indirect=["cpu_backend"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_number_of_threads_does_not_matter(
    operator: Operator, count: int, threads: Callable[[int], None], cpu_backend: str
) -> None:
    x, w = matrix(operator, 600, 6), weights(600)  # which C++ divides into four parts
    alone = evaluate(operator, x, 1.3, w, backend=cpu_backend)
    threads(count)
    assert_evaluations_same(evaluate(operator, x, 1.3, w, backend=cpu_backend), alone)


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_same_threads_give_the_same_bits(operator: Operator, threads: Callable[[int], None]) -> None:
    skip_unless_available("cpp")
    threads(2)
    x, w = matrix(operator, 600, 6).float(), weights(600).float()
    first, second = (evaluate(operator, x, 1.3, w, backend="cpp") for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None)


@pytest.mark.parametrize("operator", OPERATORS)
def test_two_callers_at_once_do_not_disturb_each_other(operator: Operator, cpu_backend: str) -> None:
    def call(seed: int) -> Evaluation:
        return evaluate(
            operator, matrix(operator, 500, 5, seed=seed), 1.3, weights(500, seed=seed), backend=cpu_backend
        )

    expected = [call(seed) for seed in range(6)]
    with ThreadPoolExecutor(2) as pool:
        for actual, alone in zip(pool.map(call, range(6)), expected, strict=True):
            assert_evaluations_same(actual, alone)


def test_result_is_a_named_pair(cpu_backend: str) -> None:
    result = tree_traverse(scores(5, 2), 1.0, backend=cpu_backend)
    assert isinstance(result, TreeArgmin)
    assert result._fields == ("z", "a")


@pytest.mark.parametrize("operator", OPERATORS)
def test_outputs_for_a_transposed_input_are_contiguous(operator: Operator, cpu_backend: str) -> None:
    transposed = matrix(operator).t().contiguous().t()
    z, a = operator(transposed, 1.0, backend=cpu_backend)
    assert z.is_contiguous()
    assert a.is_contiguous()


@pytest.mark.parametrize("operator", OPERATORS)
def test_gradient_for_a_transposed_input_is_contiguous(operator: Operator, cpu_backend: str) -> None:
    arguments = list(backward_arguments(operator, cpu_backend, weighted=True))
    arguments[2] = arguments[2].t().contiguous().t()
    grads = getattr(torch.ops.prunus, f"{operator.__name__}_backward")(*arguments)
    assert all(grad.is_contiguous() for grad in grads)


def test_group_names_the_topmost_node_of_equal_masses(cpu_backend: str) -> None:
    q = rewards(9, 4)
    lam = torch.tensor(30.0, dtype=torch.float64)
    _, a, group = torch.ops.prunus.tree_argmin(q, lam, None, cpu_backend)
    joined = group != torch.arange(31)
    assert joined.any()
    assert torch.equal(a, a[group])
    assert torch.equal(group[joined], group[parents(31)][joined])
