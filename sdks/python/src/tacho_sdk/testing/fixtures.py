"""A fixture of pytest: `pytest_plugins = ["tacho_sdk.testing.fixtures"]` in the `conftest.py` of your tests' root folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .fake import FakeTacho
from .fake import fake_tacho as make_fake


@pytest.fixture
def fake_tacho() -> Iterator[FakeTacho]:
    """A new fake for each test. The functions of the module `tacho` record on it."""
    with make_fake() as fake:
        yield fake
