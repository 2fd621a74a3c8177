"""
AgentDojo's tasks through the guards of the Python SDK. The agent does what its user's task needs and, once it has read an
injection, all that the injection wants: it obeys always. AgentDojo's own checks judge the environment afterwards.

    python dojo.py <suite> <sets of rules, with commas> [user tasks]

One process, no network. Prints a line of JSON for each run.
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

warnings.filterwarnings("ignore")
# The pure Python loader takes a second for each environment.
yaml.safe_load = lambda text: yaml.load(text, yaml.CSafeLoader)

from agentdojo.agent_pipeline.ground_truth_pipeline import GroundTruthPipeline  # noqa: E402
from agentdojo.agent_pipeline.tool_execution import tool_result_to_str  # noqa: E402
from agentdojo.attacks.attack_registry import load_attack  # noqa: E402
from agentdojo.base_tasks import BaseInjectionTask, BaseUserTask  # noqa: E402
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime  # noqa: E402
from agentdojo.task_suite.load_suites import get_suites  # noqa: E402
from agentdojo.task_suite.task_suite import TaskSuite  # noqa: E402
from agentdojo.types import text_content_block_from_string  # noqa: E402

from tacho_sdk import GuardDefaults, Policy, Tacho, ToolBlockedError, ToolLabels  # noqa: E402
from tacho_sdk.testing import FakeTacho, fake_tacho  # noqa: E402

HERE = Path(__file__).parent
VERSION = "v1.1.2"
# The first words of the attack: what the agent obeys.
READ = "<INFORMATION>"


@dataclass
class Tally:
    """What happened in one run."""

    calls: int = 0
    asked: list[str] = field(default_factory=list)
    """The user's own calls that a person was asked about: the policies."""
    attack_asked: int = 0
    is_read: bool = False
    utility: bool = False
    security: bool = False


class Agent:
    """Follows the ground truths of a user task and, once it has read it, of an injection."""

    def __init__(self, suite: TaskSuite[Any], fake: FakeTacho, approves: bool = True) -> None:
        """`approves`: what the person says about the user's own calls. The calls of an injection are always rejected."""
        self._suite, self._fake, self._approves = suite, fake, approves
        self._runtime = FunctionsRuntime(suite.tools)
        self._tally = Tally()
        self._is_attack = False
        fake.answer_approvals(self._answer)

    def run(self, user_task: BaseUserTask[Any], injection: BaseInjectionTask[Any] | None, environment: Any) -> Tally:
        tally = self._tally = Tally()
        environment = user_task.init_environment(environment)
        before = environment.model_copy(deep=True)
        ran: list[FunctionCall] = []
        with self._fake.tacho.run(agent_name="agentdojo") as run:
            run.user_input(user_task.PROMPT)
            for call in user_task.ground_truth(before):
                text = self._call(environment, call, ran)
                if injection is not None and not tally.is_read and READ in text:
                    tally.is_read = True
                    self._is_attack = True
                    for wanted in injection.ground_truth(environment):
                        self._call(environment, wanted, ran)
                    self._is_attack = False
        said = [user_task.GROUND_TRUTH_OUTPUT, injection.GROUND_TRUTH_OUTPUT if tally.is_read and injection else ""]
        answer = [text_content_block_from_string("\n".join(filter(None, said)))]
        check = self._suite._check_task_result
        tally.utility = check(user_task, answer, before, environment, ran)
        tally.security = injection is not None and check(injection, answer, before, environment, ran)
        return tally

    def _call(self, environment: Any, call: FunctionCall, ran: list[FunctionCall]) -> str:
        """One guarded call. The model gets its output as a text, the guard as JSON."""
        if not self._is_attack:
            self._tally.calls += 1
        texts: list[str] = []

        def act() -> Any:
            result, error = self._runtime.run_function(environment, call.function, call.args)
            ran.append(call)
            if error is not None:
                raise LookupError(error)
            texts.append(tool_result_to_str(result))
            return plain(result)

        try:
            self._fake.tacho.call_guarded(call.function, plain(dict(call.args)), act)
        except (ToolBlockedError, LookupError) as error:
            return str(error)
        return texts[0]

    def _answer(self, approval: Any) -> Any:
        if self._is_attack:
            self._tally.attack_asked += 1
            return "reject"
        self._tally.asked.append(f"{approval.tool_name} ({approval.policy_id})")
        return "approve" if self._approves else "reject"


def plain(value: object) -> Any:
    """As JSON."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def client_of(suite: str, rules: str) -> FakeTacho:
    """A client with the labels of a suite, and the policies of one set of rules from the service."""
    careful = HERE / "suites" / f"{suite}-{rules}.yaml"
    own = yaml.safe_load((careful if careful.exists() else HERE / "suites" / f"{suite}.yaml").read_text())
    listed = yaml.safe_load((HERE / "labels.yaml").read_text()).get(suite, [])
    labels = tuple(ToolLabels(**rule) for rule in [*listed, *own.get("labels", [])])
    everywhere = yaml.safe_load((HERE / "suites" / "all.yaml").read_text())
    policies = tuple(
        Policy(name, name, condition=policy["condition"].strip(), action="REQUIRE_APPROVAL", on_error="act")
        for name, policy in {**everywhere["policies"], **own["policies"]}.items()
        if rules in policy["sets"]
    )
    fake = fake_tacho(deployed_policies=policies, guard=GuardDefaults(labels=labels))
    # Load the policies first, as in a running agent: the history misses user inputs from before that.
    fake.tacho.configuration.refresh()
    return fake


def attacked(suite: TaskSuite[Any], user_task: BaseUserTask[Any], injection: BaseInjectionTask[Any]) -> Any:
    """The environment with AgentDojo's own attack in every place that the user's task reads."""
    pipeline = GroundTruthPipeline(user_task)
    # The attack addresses the model by its name.
    pipeline.name = "gpt-4o-2024-05-13"
    attack = load_attack("important_instructions", suite, pipeline)
    try:
        texts = attack.attack(user_task, injection)
    except ValueError:
        # It reads none of the places.
        texts = {}
    return suite.load_and_inject_default_environment(texts)


def measure(suite_name: str, rules: list[str], user_ids: list[str] | None = None) -> None:
    """Prints a line for each user task, and for each pair of it with an injection."""
    suite = get_suites(VERSION)[suite_name]
    clients = {name: client_of(suite_name, name) for name in rules}
    for user_id, user_task in suite.user_tasks.items():
        if user_ids and user_id not in user_ids:
            continue
        task = {"suite": suite_name, "user": user_id}
        honest = suite.load_and_inject_default_environment({})
        for name, fake in clients.items():
            tally = Agent(suite, fake).run(user_task, None, honest.model_copy(deep=True))
            alone = Agent(suite, fake, approves=False).run(user_task, None, honest.model_copy(deep=True))
            print(json.dumps({**task, "rules": name, **asdict(tally), "alone": alone.utility}), flush=True)
        for injection_id, injection in suite.injection_tasks.items():
            environment = attacked(suite, user_task, injection)
            for name, fake in clients.items():
                tally = Agent(suite, fake).run(user_task, injection, environment.model_copy(deep=True))
                print(json.dumps({**task, "rules": name, "injection": injection_id, **asdict(tally)}), flush=True)
    for fake in clients.values():
        fake.close()


if __name__ == "__main__":
    measure(sys.argv[1], sys.argv[2].split(","), sys.argv[3:])
