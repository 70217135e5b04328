"""Train one tree in several processes that Spark's TorchDistributor starts, and save it.

Install with ``pip install 'prunus[spark]'``, then run ``python examples/spark_train.py --out tree.prunus``. Spark needs
Java.

The processes run on this machine, beside the driver. With ``local_mode=False`` they run as tasks of the executors.
Inside a process group, ``fit`` trains one tree in all processes: each of them is given the same table, computes its
share of every batch, and ends with the same tree.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Train in the processes; the first of them saves the tree."""
    from pyspark.ml.torch.distributor import TorchDistributor
    from pyspark.sql import SparkSession

    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("tree.prunus"), help="file of the tree")
    options = parser.parse_args(arguments)
    spark = SparkSession.builder.master(f"local[{options.processes}]").getOrCreate()
    distributor = TorchDistributor(num_processes=options.processes, local_mode=True, use_gpu=False)
    print(distributor.run(train, str(options.out.absolute())))
    spark.stop()


def train(out: str) -> str:
    """Train in one of the processes; Spark returns what the first one returns."""
    import torch
    from sklearn.datasets import make_friedman1

    import prunus

    torch.distributed.init_process_group("gloo")  # rank, size and address are in the environment
    x, y = make_friedman1(20_000, random_state=0)  # the same table in all processes, in reality read from files
    tree = prunus.ArgminTreeRegressor(leaf="linear", max_epochs=10, random_state=0).fit(x, y)
    size = torch.distributed.get_world_size()
    if torch.distributed.get_rank() == 0:
        prunus.save(tree, out)
    torch.distributed.destroy_process_group()
    return f"{size} processes have trained a tree with R^2 {tree.score(x, y):.3f}"


if __name__ == "__main__":
    main()
