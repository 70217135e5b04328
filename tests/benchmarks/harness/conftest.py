"""What tests of sets share."""

import dataclasses
from pathlib import Path

import pytest

from benchmarks.harness.sets.sources import SOURCES, Source


@pytest.fixture
def closed_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """No way to the network, and files that need not be the real ones."""
    monkeypatch.setattr(
        "benchmarks.harness.sets.loading.SOURCES", {name: _without_network(source) for name, source in SOURCES.items()}
    )


def _without_network(source: Source) -> Source:
    files = tuple(
        dataclasses.replace(file, url=file.url and f"http://127.0.0.1:9/{Path(file.url).name}", sha256=None)
        for file in source.files
    )
    return dataclasses.replace(source, files=files)
