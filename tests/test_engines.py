"""The examples train, and the code of the page on engines predicts, on the engines that are installed."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

import prunus
from tests.engines import ENGINES, engine_of
from tests.printed import blocks

ROOT = Path(__file__).parents[1]
EXTRAS = {"dask": "dask", "pyspark": "spark", "ray": "ray"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "example", "workers"),
    [("ray", "ray_train.py", "--workers"), ("pyspark", "spark_train.py", "--processes")],
)
def test_example_trains_in_two_processes_and_saves_the_tree(
    engine: str, example: str, workers: str, tmp_path: Path
) -> None:
    _need(engine)
    printed = _run([str(ROOT / "examples" / example), workers, "2", "--out", "tree.prunus"], tmp_path)
    assert "2 processes have trained a tree" in printed
    x, y = make_friedman1(20_000, random_state=0)
    tree = prunus.load(tmp_path / "tree.prunus")
    assert isinstance(tree, prunus.ArgminTreeRegressor)
    assert tree.score(x, y) > 0.99


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_engine_predicts_as_one_process_does(engine: str, tmp_path: Path) -> None:
    _need(engine)
    page = [code for code, _ in blocks(ROOT / "docs/guide/engines.md", "python")]
    code = [block for block in page if engine_of(block) in (None, engine)]
    compare = f"""
predicted = pd.read_parquet("by_{EXTRAS[engine]}").sort_values("x0")
print(abs(predicted["prediction"].to_numpy() - predict(table.sort_values("x0"))["prediction"].to_numpy()).max())
"""
    printed = _run(["-c", "\n".join([*code, compare])], tmp_path)
    np.testing.assert_allclose(float(printed.splitlines()[-1]), 0.0, atol=1e-5)


def test_a_block_for_each_engine_is_on_the_page() -> None:
    found = [engine_of(code) for code, _ in blocks(ROOT / "docs/guide/engines.md", "python")]
    assert sorted(filter(None, found)) == list(ENGINES)


def _need(engine: str) -> None:
    if find_spec(engine) is None:
        pytest.skip(f"needs {engine}: pip install '.[{EXTRAS[engine]}]'")
    if engine == "pyspark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java")


def _run(arguments: list[str], folder: Path) -> str:
    """What Python prints in a process of its own; engines write to the folder instead of the user's."""
    environment = os.environ | {
        "HOME": str(folder),
        "PYSPARK_PYTHON": sys.executable,
        "RAY_USAGE_STATS_ENABLED": "0",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [sys.executable, *arguments]
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout
