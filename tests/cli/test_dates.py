"""The order of day and month is that of training, in every command that reads a table for a model."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import prunus
from prunus.cli import columns
from prunus.estimators import format as estimators_format
from tests.cli.tables import QUICK, SOFT, Shell, csv, write

EPOCHS = ("--kind", "soft", "--max-epochs", "30", "--quiet")


def days(order: str) -> pd.DataFrame:
    """Dates of 2021 whose order the values tell, and whether they are in the first half of the year."""
    found = pd.date_range("2021-01-01", "2021-12-31", freq="3D")
    text = found.strftime("%d/%m/%Y" if order == "day-first" else "%m/%d/%Y")
    halves = ["early" if day.month <= 6 else "late" for day in found]
    return pd.DataFrame({"when": text, "n": range(len(text)), "y": halves})


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model for each order of day and month."""
    folder = tmp_path_factory.mktemp("dates")
    found = {}
    for order in columns.ORDERS:
        data, found[order] = csv(folder / f"{order}.csv", days(order)), folder / f"{order}.prunus"
        assert prunus.cli.main(["fit", data, "--target", "y", "--drop", "n", "--out", str(found[order]), *EPOCHS]) == 0
    return found


@pytest.mark.parametrize(("order", "half"), [("day-first", "late"), ("month-first", "early")])
def test_a_single_date_is_read_as_in_training(
    shell: Shell, models: dict[str, Path], tmp_path: Path, order: str, half: str
) -> None:
    one = write(tmp_path / "one.csv", f"when,y\n02/12/2021,{half}\n")
    assert shell("predict", models[order], one) == f"prediction\n{half}\n"  # broke: the order was unclear
    assert shell.json("evaluate", models[order], one)["accuracy"] == 1
    shell("show", models[order], "--data", one, "--html", tmp_path / "t.html", "--quiet")


def test_values_that_would_tell_another_order_are_refused(
    shell: Shell, models: dict[str, Path], tmp_path: Path
) -> None:
    command = ("predict", models["day-first"], write(tmp_path / "t.csv", "when\n01/02/2021\n12/25/2021\n"))
    assert shell.mistake(*command) == (  # broke: both rows were read month-first
        f"prunus predict: {tmp_path / 't.csv'}, line 3: column 'when' must contain dates that are day-first, as in "
        "training, got '12/25/2021'; correct it, or use --dates month-first"
    )
    assert shell(*command, "--dates", "month-first") == "prediction\nearly\nlate\n"
    said = shell.mistake(*command, "--dates", "day-first")
    assert "line 3: column 'when' must contain dates that are day-first, as --dates says, got '12/25/2021'" in said


@pytest.mark.parametrize("text", ["2021-12-02", "2021/12/02", "2021-12-02 10:30"])
def test_dates_that_begin_with_the_year_need_no_order(
    shell: Shell, models: dict[str, Path], tmp_path: Path, text: str
) -> None:
    for model in models.values():
        assert shell("predict", model, write(tmp_path / "one.csv", f"when\n{text}\n")) == "prediction\nlate\n"


@pytest.mark.parametrize(
    ("texts", "orders"),
    [
        (["13/02/2021", "01/02/2021"], {"when": "day-first"}),
        (["02.13.2021", "01.02.2021"], {"when": "month-first"}),
        (["01/01/2021", "02/02/2021"], {}),  # the day is the month: either order will do
        (["2021/13/02", "2021/01/02"], {}),
        (["2021-02-13", "2021-01-02"], {}),
        (["01/02/2021", "02/01/2021"], {}),  # the order is unclear
        (["a", "b"], {}),
    ],
)
def test_only_an_order_that_was_found_is_kept(
    shell: Shell, tmp_path: Path, texts: list[str], orders: dict[str, str]
) -> None:
    table = pd.DataFrame({"when": texts * 10, "x": [0.5, 1.5] * 10, "y": ["a", "b"] * 10, "also": ["13/02/2021"] * 20})
    shell("fit", csv(tmp_path / "t.csv", table), "--target", "y", "--out", tmp_path / "m.prunus", *SOFT)
    assert prunus.load(tmp_path / "m.prunus").date_orders_ == orders  # the constant column is no feature


@pytest.mark.parametrize("command", [("tune", "--target", "y", "--trials", "1"), ("cluster", "--drop", "y")])
def test_searches_and_clusters_keep_the_order(shell: Shell, tmp_path: Path, command: tuple[str, ...]) -> None:
    data, out = csv(tmp_path / "t.csv", days("day-first")), tmp_path / "m.prunus"
    shell(command[0], data, *command[1:], "--out", out, *QUICK)
    assert prunus.load(out).date_orders_ == {"when": "day-first"}
    assert shell("predict", out, write(tmp_path / "one.csv", "when,n\n01/02/2021,3\n")).count("\n") == 2


def test_a_model_without_an_order_asks_for_it(shell: Shell, models: dict[str, Path], tmp_path: Path) -> None:
    tree = prunus.load(models["day-first"])
    del tree.date_orders_
    prunus.save(tree, tmp_path / "m.prunus")
    command = ("predict", tmp_path / "m.prunus", write(tmp_path / "one.csv", "when\n02/12/2021\n"))
    assert "line 2: column 'when' must contain dates, as in training, got '02/12/2021'" in shell.mistake(*command)
    assert shell(*command, "--dates", "day-first") == "prediction\nlate\n"


def test_another_fit_forgets_what_a_file_said(models: dict[str, Path]) -> None:
    tree = prunus.load(models["day-first"])
    tree.fit(pd.DataFrame({"when": [0.0, 1.0, 2.0, 3.0]}), ["a", "b", "a", "b"])
    assert not hasattr(tree, "date_orders_")
    assert not hasattr(tree, "target_name_")


def test_dates_in_another_order_than_asked_for_are_noted(shell: Shell, tmp_path: Path) -> None:
    data = csv(tmp_path / "t.csv", days("day-first"))
    command = ("fit", data, "--target", "y", "--out", tmp_path / "m.prunus", "--dates", "month-first")
    said = shell(*command, "--keep", "n", *SOFT)
    assert "'when' holds dates, but is read as text: they are not month-first, as --dates says" in said


def test_the_words_for_orders_are_those_of_the_files() -> None:
    words: Any = estimators_format.DATE_ORDERS
    assert words == columns.ORDERS
