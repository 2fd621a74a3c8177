"""Honest traffic through the same guards: recorded runs of tau-bench's airline, and the tasks of tau2's shop and telephone company."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from dojo import client_of, plain

from tacho_sdk import ToolBlockedError
from tacho_sdk.testing import FakeTacho

# A user's text, or a call: its tool, its input and what gives its output.
Step = str | tuple[str, dict[str, Any], Callable[[], Any]]
TELECOM_STEP = 20
"""Of 2,285 tasks, which differ little."""


def main(rules: list[str]) -> None:
    clients = {name: client_of("service", name) for name in rules}
    for suite, make in (("tau-airline", airline), ("tau2-retail", retail), ("tau2-telecom", telecom)):
        for user, steps in enumerate(make()):
            kept = list(steps)
            for name, fake in clients.items():
                calls, asked = run(fake, kept)
                shown = {"suite": suite, "rules": name, "user": f"task_{user}", "calls": calls, "asked": asked}
                print(json.dumps(shown), flush=True)
    for fake in clients.values():
        fake.close()


def run(fake: FakeTacho, steps: list[Step]) -> tuple[int, list[str]]:
    asked: list[str] = []

    def answer(approval: Any) -> Any:
        asked.append(f"{approval.tool_name} ({approval.policy_id})")
        return "approve"

    fake.answer_approvals(answer)
    calls = 0
    with fake.tacho.run(agent_name="service") as one:
        for step in steps:
            if isinstance(step, str):
                one.user_input(step)
                continue
            calls += 1
            try:
                fake.tacho.call_guarded(*step)
            except (ToolBlockedError, ValueError):
                pass
    return calls, asked


def airline() -> Iterator[list[Step]]:
    """The recorded conversations, with the outputs that the tools had."""
    file = Path(os.environ.get("TEST_TRANSCRIPTS", ""))
    for line in file.read_text().splitlines() if file.is_file() else ():
        messages = json.loads(line)["messages"]
        outputs = {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}
        steps: list[Step] = []
        for message in messages:
            if message["role"] == "user":
                steps.append(message["content"])
            for call in message.get("tool_calls") or ():
                output = outputs.get(call["id"], "")
                steps.append(
                    (call["function"]["name"], json.loads(call["function"]["arguments"]), lambda output=output: output)
                )
        yield steps


def retail() -> Iterator[list[Step]]:
    """What the user knows and wants, and the calls that solve the task."""
    from tau2.domains.retail.data_model import RetailDB
    from tau2.domains.retail.tools import RetailTools
    from tau2.domains.retail.utils import RETAIL_DB_PATH

    for task in _tasks("retail"):
        tools = RetailTools(RetailDB.load(RETAIL_DB_PATH))
        yield [*_words(task), *(_call(tools, action) for action in _actions(task))]


def telecom() -> Iterator[list[Step]]:
    """The tasks list changes only; before them, the agent looks the customer up, as its manual says."""
    from tau2.domains.telecom.data_model import TelecomDB
    from tau2.domains.telecom.tools import TelecomTools
    from tau2.domains.telecom.utils import TELECOM_DB_PATH

    tools = TelecomTools(TelecomDB.load(TELECOM_DB_PATH))
    for task in _tasks("telecom")[::TELECOM_STEP]:
        actions = [action for action in _actions(task) if action.get("requestor") != "user"]
        ids = {action["arguments"]["customer_id"] for action in actions if "customer_id" in action["arguments"]}
        look_up = [{"name": "get_customer_by_id", "arguments": {"customer_id": one}} for one in ids]
        yield [*_words(task), task["ticket"], *(_call(tools, action) for action in [*look_up, *actions])]


def _tasks(domain: str) -> list[Any]:
    tasks: list[Any] = json.loads((files("tau2") / f"data/tau2/domains/{domain}/tasks.json").read_text())
    return tasks


def _actions(task: Any) -> list[Any]:
    return (task["evaluation_criteria"] or {}).get("actions") or []


def _words(task: Any) -> list[str]:
    said = task["user_scenario"]["instructions"]
    return [said[name] for name in ("reason_for_call", "known_info", "task_instructions") if said.get(name)]


def _call(tools: Any, action: Any) -> Step:
    return action["name"], action["arguments"], lambda: plain(tools.use_tool(action["name"], **action["arguments"]))


if __name__ == "__main__":
    main(sys.argv[1].split(","))
