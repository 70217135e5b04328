"""Train one tree in several workers of Ray Train, and save it.

Install with ``pip install 'prunus[ray]'``, then run ``python examples/ray_train.py --out tree.prunus``.

Ray starts the workers and makes a process group of them. They run on this machine, or on the machines of a cluster if
Ray is connected to one. Inside a process group, ``fit`` trains one tree in all processes: each of them is given the
same table, computes its share of every batch, and ends with the same tree.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Train in the workers; the first of them saves the tree."""
    from ray.train import ScalingConfig
    from ray.train.torch import TorchTrainer

    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("tree.prunus"), help="file of the tree, on the first worker")
    options = parser.parse_args(arguments)
    given, workers = {"out": str(options.out.absolute())}, ScalingConfig(num_workers=options.workers)
    TorchTrainer(train, train_loop_config=given, scaling_config=workers).fit()


def train(config: dict[str, Any]) -> None:
    """Train in one of the workers."""
    from ray.train import get_context
    from sklearn.datasets import make_friedman1

    import prunus

    x, y = make_friedman1(20_000, random_state=0)  # the same table in all workers, in reality read from files
    tree = prunus.ArgminTreeRegressor(leaf="linear", max_epochs=10, random_state=0).fit(x, y)
    context = get_context()
    if context.get_world_rank() == 0:
        prunus.save(tree, config["out"])
        print(f"{context.get_world_size()} processes have trained a tree with R^2 {tree.score(x, y):.3f}")


if __name__ == "__main__":
    main()
