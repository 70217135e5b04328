"""Heads: predictions from inputs and routes, compared with plain loops."""

import pytest
import torch
from torch import Tensor, nn

from prunus.errors import InputValueError
from prunus.nn import AdditiveHead, ConstantHead, LinearHead, MLPHead, Whiten
from tests.nn.problems import HEADS, generator, inputs, randomized, routes
from tests.tolerances import assert_same


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_a_constant_head_adds_up_values_of_nodes(depth: int) -> None:
    head = ConstantHead(5, depth, 2)
    randomized(head)
    z = routes(9, depth)
    expected = torch.empty(9, 2)
    for i in range(9):
        for k in range(2):
            of_nodes = [head.weight[k, t] * z[i, t] for t in range(z.shape[1])]
            expected[i, k] = head.bias[k] + sum(of_nodes)
    assert_same(head(inputs(9), z), expected)


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_an_additive_head_adds_one_linear_model_to_values_of_nodes(depth: int) -> None:
    head = AdditiveHead(5, depth, 2)
    randomized(head)
    x, z = inputs(9), routes(9, depth)
    side_by_side = torch.cat((head.slope, head.weight), 1)
    assert_same(head(x, z), torch.cat((x, z), 1) @ side_by_side.T + head.bias)


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_a_linear_head_adds_up_linear_models_of_nodes(depth: int) -> None:
    head = LinearHead(5, depth, 2)
    randomized(head)
    x, z = inputs(9), routes(9, depth)
    nodes = z.shape[1]
    expected = torch.empty(9, 2)
    for i in range(9):
        for k in range(2):
            models = range(k * nodes, (k + 1) * nodes)
            of_nodes = [head.weight[m] @ x[i] + head.offset[m] for m in models]
            expected[i, k] = head.bias[k] + sum(y * z[i, t] for t, y in enumerate(of_nodes))
    assert_same(head(x, z), expected)


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_an_mlp_head_takes_inputs_and_routes_side_by_side(depth: int) -> None:
    head = MLPHead(5, depth, 2, hidden=(8, 4))
    x, z = inputs(9), routes(9, depth)
    out = torch.cat((x, z), 1)
    for layer in (head.hidden[0], head.hidden[2]):
        out = nn.functional.elu(layer(out))
    assert_same(head(x, z), head.out(out))


@pytest.mark.parametrize("head", HEADS.values())
def test_gradients_reach_inputs_routes_and_parameters(head: type[nn.Module]) -> None:
    made = randomized(head(5, 2, 2)).double()
    x, z = inputs(6).double().requires_grad_(), routes(6, 2).double().requires_grad_()
    assert torch.autograd.gradcheck(made, (x, z))
    out: Tensor = made(x, z)
    assert all(grad.any() for grad in torch.autograd.grad(out.square().sum(), list(made.parameters())))


@pytest.mark.parametrize("head", [AdditiveHead, ConstantHead, LinearHead])
def test_node_models_start_at_zero(head: type[nn.Module]) -> None:
    assert not any(p.any() for p in head(5, 2, 2).parameters())


@pytest.mark.parametrize("head", HEADS.values())
def test_a_depth_out_of_range_is_refused(head: type[nn.Module]) -> None:
    with pytest.raises(InputValueError, match="depth must be from 0 to 16, got 17"):
        head(5, 17, 2)


@pytest.mark.parametrize(("features", "outputs"), [(3, 9), (9, 3)])
@pytest.mark.parametrize("limit", [1, 200, 1000])
def test_linear_models_of_many_outputs_are_computed_in_parts(
    monkeypatch: pytest.MonkeyPatch, features: int, outputs: int, limit: int
) -> None:
    torch.manual_seed(0)
    head = LinearHead(features, 3, outputs).double()
    for parameter in head.parameters():
        nn.init.normal_(parameter)
    given = [torch.randn(11, size, dtype=torch.float64, requires_grad=True) for size in (features, 15)]
    results = []
    for most in (1 << 25, limit):
        monkeypatch.setattr("prunus.nn.heads.MAX_PRODUCTS", most)
        monkeypatch.setattr("prunus.nn.heads.FEW_PRODUCTS", most)
        out = head(*given)
        results.append([out, *torch.autograd.grad(out.square().sum(), [*given, *head.parameters()])])
    for whole, parts in zip(*results, strict=True):
        assert_same(parts, whole)  # broke: 1,000 classes needed gigabytes for a batch


CURVED = [1, 4]
PLAIN = [0, 2, 3]


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_a_curved_linear_head_adds_one_linear_model_of_all_inputs(depth: int) -> None:
    head = LinearHead(5, depth, 2, curved=CURVED)
    randomized(head)
    plain = LinearHead(3, depth, 2)
    plain.load_state_dict({name: value for name, value in head.state_dict().items() if name != "shared"})
    x, z = inputs(9), routes(9, depth)
    assert head.shared is not None
    assert_same(head(x, z), plain(x[:, PLAIN], z) + x @ head.shared.T)


@pytest.mark.parametrize("late", [False, True])
def test_the_record_of_a_curved_linear_head(late: bool) -> None:
    head, whiten = LinearHead(5, 2, 2, curved=CURVED), Whiten(5)
    randomized(head)
    is_curved = torch.isin(torch.arange(5), torch.tensor(CURVED))
    whiten.late = is_curved if late else None
    x, z = inputs(50) @ torch.randn(5, 5, generator=generator(3)), routes(50, 2)
    leaves = head.read(whiten.fit(x))
    assert leaves.constant is not None
    assert leaves.slope is not None
    assert leaves.shared is not None
    constant, slope, shared = map(torch.from_numpy, (leaves.constant, leaves.slope, leaves.shared))
    of_nodes = torch.einsum("nd,tkd->ntk", x, slope) + constant
    expected = torch.einsum("nt,ntk->nk", z, of_nodes) + x @ shared.T + torch.from_numpy(leaves.bias)
    assert torch.allclose(head(whiten(x), z), expected, atol=1e-4)
    assert late == (not slope[..., CURVED].any())
    assert shared[:, CURVED].all()


def test_options_of_a_linear_head_create_it_again() -> None:
    assert "curved" not in LinearHead(5, 2, 1).options()
    head = LinearHead(5, 2, 1, curved=[4, 1])
    again = LinearHead(**head.options())
    assert head.curved == again.curved == (1, 4)
    again.load_state_dict(head.state_dict())


@pytest.mark.parametrize("curved", [[5], [-1], [1, 1], [0.0], [True], ["1"], [None]])
def test_curved_inputs_that_do_not_exist_are_refused(curved: list[int]) -> None:
    with pytest.raises(InputValueError, match="curved must be different numbers from 0 to 4, got"):
        LinearHead(5, 2, 1, curved)
