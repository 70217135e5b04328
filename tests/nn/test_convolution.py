"""Trees behind a convolution: as the last layer of a network, and with a network as their split function."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from prunus.nn import ConstantHead, LinearHead, LinearSplit, TreeLayer, TreeModel
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

    def solve_masses(self, x: Tensor) -> None:
        self.tree.solve_masses(x)


class SplitByFeatures(nn.Module):
    """A tree of linear splits on the features of a convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.features = convolution(6)
        self.tree = TreeLayer(LinearSplit(24, DEPTH), DEPTH, 0.5)
        self.out = LinearHead(24, DEPTH, 4)

    def forward(self, x: Tensor) -> Tensor:
        features = self.features(x)
        out: Tensor = self.out(features, self.tree(features).z)
        return out

    def solve_masses(self, x: Tensor) -> None:
        self.tree.solve_masses(x, inputs=self.features)


def tree_model() -> TreeModel:
    """The same with what the library brings."""
    return TreeModel(TreeLayer(LinearSplit(24, DEPTH), DEPTH, 0.5), ConstantHead(24, DEPTH, 4), convolution(6))


NETWORKS = [SplitByNetwork, SplitByFeatures, tree_model]


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


@pytest.mark.parametrize("make", NETWORKS)
def test_the_loss_falls(make: type[nn.Module]) -> None:
    losses = train(make(), *images(64))
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("make", NETWORKS)
def test_gradients_reach_the_convolution(make: type[nn.Module]) -> None:
    network = make()
    x, y = images(16)
    train(network, x, y, steps=2)  # node models start at zero
    functional.cross_entropy(network(x), y).backward()  # type: ignore[no-untyped-call]
    kernels = [module.weight.grad for module in network.modules() if isinstance(module, nn.Conv2d)]
    assert all(grad is not None and grad.any() for grad in kernels)
