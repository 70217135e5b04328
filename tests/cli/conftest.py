"""Models that were fitted once, for all tests of the command line."""

from pathlib import Path

import pytest

from prunus.cli import main
from tests.cli.tables import QUICK, SOFT, Shell, csv


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With table.csv, kind.prunus (a classifier), price.prunus (a regressor) and clusters.prunus."""
    made = tmp_path_factory.mktemp("cli")
    data = csv(made / "table.csv")
    for target, without in (("kind", "price"), ("price", "kind")):
        out = ["--target", target, "--drop", without, "--out", str(made / f"{target}.prunus")]
        assert main(["fit", data, *out, *SOFT]) == 0
    assert main(["cluster", data, "--drop", "kind", "--out", str(made / "clusters.prunus"), *QUICK]) == 0
    return made
