"""Trees behind a convolution: as the last layer of a network, and with a network as their split function."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from prunus.nn import LinearHead, LinearSplit, TreeLayer, TreeModel
from tests.nn.problems import generator

DEPTH = 2


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    with torch.random.fork_rng([]):
        torch.default_generator.manual_seed(0)
        yield


def images(n: int) -> tuple[Tensor, Tensor]:
    """Noise with a bright stripe, (n, 1, 6, 6), and which of four ways it runs, (n,)."""
    source = generator(0)
    x, y = 0.3 * torch.randn(n, 1, 6, 6, generator=source), torch.randint(4, (n,), generator=source)
    for image, way in zip(x[:, 0], y.tolist(), strict=True):
        place = int(torch.randint(6, (), generator=source))
        row = (image, image.T, image, image.T)[way]
        row[place] += 1.0 if way < 2 else -1.0
    return x, y


def convolution(channels: int) -> nn.Sequential:
    """Small features of an image, (n, 4 * channels)."""
    return nn.Sequential(
        nn.Conv2d(1, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(), nn.MaxPool2d(3), nn.Flatten()
    )


class SplitByNetwork(nn.Module):
    """The whole network is the split function; the head sees routes alone."""

    def __init__(self) -> None:
        super().__init__()
        network = nn.Sequential(convolution(6), nn.Linear(24, 2**DEPTH - 1))
        self.tree = TreeLayer(network, DEPTH, 0.5)
        self.out = nn.Linear(2 ** (DEPTH + 1) - 1, 4)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(self.tree(x).z)
        return out


def tree_model() -> TreeModel:
    """A tree of linear splits on the features of a convolution."""
    return TreeModel(TreeLayer(LinearSplit(24, DEPTH), DEPTH, 0.5), LinearHead(24, DEPTH, 4), convolution(6))


def train(network: nn.Module, x: Tensor, y: Tensor, steps: int = 60) -> list[float]:
    optimizer = torch.optim.Adam(network.parameters(), lr=0.03)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = functional.cross_entropy(network(x), y)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("make", [SplitByNetwork, tree_model])
def test_the_loss_falls_and_gradients_reach_the_convolution(make: type[nn.Module]) -> None:
    network = make()
    train(network, *images(16), steps=2)  # node models start at zero
    kernels = [module.weight.grad for module in network.modules() if isinstance(module, nn.Conv2d)]
    assert all(grad is not None and grad.any() for grad in kernels)
    losses = train(network, *images(64))
    assert losses[-1] < 0.5 * losses[0]
