"""Small tables in files, and the command line run on them."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from prunus.cli import main
from prunus.fitting.training_options import TrainingOptions

QUICK = ("--max-epochs", "2", "--quiet")
SOFT = ("--kind", "soft", *QUICK)
"""Options of a quick fit of a soft tree."""


def options_of(estimator: Any) -> set[str]:
    """The names of the options of an estimator, also of those that tune its training."""
    own = set(estimator.get_params(deep=False))
    return own | ({option.name for option in fields(TrainingOptions)} if "training" in own else set())


def frame(n: int = 60, seed: int = 0) -> pd.DataFrame:
    """A number, a category, an identifier and a constant; a class and a number to predict."""
    random = np.random.default_rng(seed)
    size, color = random.normal(size=n).round(3), random.choice(["red", "green", "blue"], n)
    return pd.DataFrame(
        {
            "id": np.arange(1, n + 1),
            "size": size,
            "color": color,
            "unit": "kg",
            "kind": np.where(size + (color == "red") > 0, "large", "small"),
            "price": (2 * size + (color == "blue")).round(3),
        }
    )


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def csv(path: Path, table: pd.DataFrame | None = None, **options: Any) -> str:
    (frame() if table is None else table).to_csv(path, index=False, **options)
    return str(path)


class Shell:
    """Runs commands, and keeps what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys
        self.err = ""

    def __call__(self, *arguments: object) -> str:
        """What a command that succeeds prints."""
        code = main([str(word) for word in arguments])
        out, self.err = self.capsys.readouterr()
        assert code == 0, self.err
        return out

    def json(self, *arguments: object) -> dict[str, Any]:
        record: dict[str, Any] = json.loads(self(*arguments, "--json"))
        return record

    def mistake(self, *arguments: object) -> str:
        """The one line that a command that fails prints."""
        code = main([str(word) for word in arguments])
        out, self.err = self.capsys.readouterr()
        assert (code, out, self.err.count("\n")) == (1, "", 1)
        return self.err.strip()
