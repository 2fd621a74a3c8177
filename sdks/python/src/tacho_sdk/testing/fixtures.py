"""
Fixtures of pytest. Where this package is installed, pytest finds them by its entry point; elsewhere write
`pytest_plugins = ["tacho_sdk.testing.fixtures"]` in the `conftest.py` of your tests' root folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .fake import FakeTacho


@pytest.fixture
def fake_tacho() -> Iterator[FakeTacho]:
    """A new fake for each test. The functions of the module `tacho` record on it."""
    from .fake import fake_tacho as make_fake

    with make_fake() as fake:
        yield fake


@pytest.fixture
def replay_tape(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """`replay` for tapes whose paths start at the root folder of the tests."""
    from .replay import replay

    def replayed(tape: str | os.PathLike[str], agent: Callable[[Any], Any], **options: Any) -> Any:
        return replay(request.config.rootpath / tape, agent, **options)

    return replayed
