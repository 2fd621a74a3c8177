"""Two copies of the SDK in one process: two wheels, modules imported anew, `importlib.reload`."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

import tacho_sdk
from tacho_sdk.recording.context import CURRENT
from tacho_sdk.testing import fake_tacho

NO_REFUNDS = tacho_sdk.Policy(
    policy_id="no-refunds",
    name="No refunds",
    version="1",
    condition='tool.name == "refund"',
    severity="HIGH",
    action="BLOCK",
)


def import_anew() -> ModuleType:
    """Imports the modules again, as tools that reload modules do, or from a second wheel."""
    for name in [name for name in sys.modules if name == "tacho_sdk" or name.startswith("tacho_sdk.")]:
        del sys.modules[name]
    importlib.import_module("tacho_sdk.testing")
    return importlib.import_module("tacho_sdk")


@pytest.fixture
def other() -> Iterator[ModuleType]:
    before = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "tacho_sdk"}
    yield import_anew()
    for name in [name for name in sys.modules if name.split(".")[0] == "tacho_sdk"]:
        del sys.modules[name]
    sys.modules.update(before)


def test_a_client_of_one_copy_and_integrations_of_another(other: ModuleType) -> None:
    assert other is not tacho_sdk and other.Tacho is not tacho_sdk.Tacho
    openai = importlib.import_module("tacho_sdk.integrations.openai")
    assert openai.Tacho is other.Tacho
    fake = fake_tacho()
    tacho = fake.tacho

    class Completions:
        def create(self, **given: object) -> dict[str, object]:
            return {"model": "gpt", "choices": [{"message": {"role": "assistant", "content": "Hello"}}], **given}

    class Client:
        def __init__(self) -> None:
            self.chat = type("Chat", (), {"completions": Completions()})()

    client = openai.record_client(Client(), tacho)
    with tacho.run(run_id="one"):
        assert client.chat.completions.create(messages=[])["model"] == "gpt"
    recorded = fake.events()
    assert {event.run_id for event in recorded} == {"one"}
    assert "LLM_CALL" in {event.event_type for event in recorded}
    fake.close()


def test_the_error_of_another_copy_is_caught(other: ModuleType) -> None:
    assert other.ToolBlockedError is tacho_sdk.ToolBlockedError
    fake = fake_tacho(deployed_policies=[NO_REFUNDS])

    @fake.tacho.guard
    def refund(amount: int) -> int:
        return amount

    with fake.tacho.run(), pytest.raises(tacho_sdk.ToolBlockedError) as raised:
        refund(5)
    assert isinstance(raised.value, other.ToolBlockedError)
    fake.close()


def test_clients_of_two_copies_do_not_share_runs_but_keep_their_order(other: ModuleType) -> None:
    first, second = tacho_sdk.Tacho(enabled=False), other.Tacho(enabled=False)
    with first.run(run_id="outer"):
        with second.run(run_id="inner"):
            around = CURRENT.get()
            assert around is not None and around.scope.run_id == "inner"
            assert around.outer is not None and around.outer.scope.run_id == "outer"
        assert CURRENT.get() is around.outer
    assert CURRENT.get() is None


RELOADED = """
import importlib
import tacho_sdk
made = tacho_sdk.configure(enabled=False)
with tacho_sdk.run(run_id="one"):
    importlib.reload(tacho_sdk)
    assert tacho_sdk.client() is made
    assert tacho_sdk.current_run() is None or tacho_sdk.current_run().run_id == "one"
try:
    raise tacho_sdk.ToolBlockedError("policy", "refund")
except tacho_sdk.guarding.blocked.ToolBlockedError:
    print("caught")
"""


def test_a_reload_keeps_the_client_and_its_runs() -> None:
    done = subprocess.run([sys.executable, "-c", RELOADED], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("caught\n", "")
