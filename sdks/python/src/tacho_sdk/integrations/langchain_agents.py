"""
Which agent of a graph acts, and when one hands over to another. The name of an agent is its own (`create_agent`),
or that of its graph, node or tool. A node or a tool hands over if it returns a `Command`. So does a tool that runs
another agent, and a node with a model whose conditional edge leads to another node with a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from uuid import UUID

from ..core import Core
from ..recording.context import CURRENT, Context, RunScope, current_of
from .messages import fields_of

_UNNAMED = "LangGraph"
# Bounds the chains whose end LangChain never reports.
_OPEN_MAX = 10_000

Kind = Literal["chain", "node", "tool"]


@dataclass
class _Place:
    """A chain, a node or a tool that runs now."""

    kind: Kind
    name: str
    around: _Place | None
    agent: str | None
    call_id: object = None
    entered: Context | None = None
    """Names the agent for what runs inside."""
    is_told: bool = True
    """No other handler records this agent."""
    is_announced: bool = False
    answer: object = None
    """Result of the last tool inside this place."""
    step: object = None
    """Set for a node: the number that its graph gives it."""
    acts_as: str | None = None
    """The agent's name, set for a node that called a model."""
    is_edge: bool = False
    has_chosen: bool = False
    """A node's conditional edge chose the next node of its graph."""
    chosen_by: str | None = None
    """The agent whose conditional edge led to this node."""
    choice: tuple[str, object] | None = None
    """Set for a graph: the agent that chose last, and the step for which it did."""


class Places:
    """The running chains, nodes and tools by LangChain's id."""

    def __init__(self) -> None:
        self._places: dict[UUID, _Place] = {}

    def agent_of(self, run_id: UUID | None) -> str | None:
        place = None if run_id is None else self._places.get(run_id)
        return place.agent if place else None

    def enter(
        self,
        core: Core,
        scope: RunScope,
        run_id: UUID,
        parent_run_id: UUID | None,
        kind: Kind,
        more: Mapping[str, Any],
        is_told: bool,
    ) -> None:
        around = None if parent_run_id is None else self._places.get(parent_run_id)
        name, agent_name = str(more.get("name")), fields_of(more.get("metadata")).get("lc_agent_name")
        agent = agent_name if isinstance(agent_name, str) else around.agent if around else None
        if kind == "node" and around is not None and not isinstance(agent_name, str):
            agent = name if name in scope.team.members else _agent_of_graph(around) or agent
        step = fields_of(more.get("metadata")).get("langgraph_step")
        place = _Place(kind, name, around, agent, more.get("tool_call_id"), is_told=is_told, step=step)
        if kind == "node" and around is not None and around.choice is not None and around.choice[1] == step:
            place.chosen_by = around.choice[0]
        # An edge is the second part of its node, or a later one.
        place.is_edge = kind == "chain" and around is not None and around.kind == "node" and _is_part(more.get("tags"))
        if len(self._places) >= _OPEN_MAX:
            del self._places[next(iter(self._places))]
        self._places[run_id] = place
        if kind == "node" and agent is not None and is_told:
            _announce(core, scope, place, agent)
            self._act(core, scope, place, agent)

    def _act(self, core: Core, scope: RunScope, place: _Place, agent: str) -> None:
        current = current_of(core)
        if current is not None and current.scope is scope:
            place.entered = replace(current, agent=scope.team.naming(agent), outer=CURRENT.get())
            CURRENT.set(place.entered)

    def call_model(self, core: Core, scope: RunScope, run_id: UUID | None) -> None:
        """Marks the nodes around a model call as agents. A node that a conditional edge led to took over from another agent."""
        place = None if run_id is None else self._places.get(run_id)
        agent = place.agent if place else None
        is_inner = True
        while place is not None and place.kind != "tool":
            if place.kind == "node":
                place.acts_as = name = place.name if is_inner else agent or place.name
                giver, place.chosen_by = place.chosen_by, None
                if giver not in (None, name) and place.is_told:
                    core.hand_over(scope, str(giver), name)
                    if is_inner and place.agent != name:
                        place.agent = name
                        self._act(core, scope, place, name)
                is_inner = False
            place = place.around

    def leave(self, core: Core, scope: RunScope | None, run_id: UUID, answer: object) -> None:
        place = self._places.pop(run_id, None)
        if place is None:
            return
        if place.entered is not None and CURRENT.get() is place.entered:
            CURRENT.set(place.entered.outer)
        graph = place.around
        if place.is_edge and graph is not None:
            graph.has_chosen = _is_choice(answer)
        if place.has_chosen and place.acts_as is not None and graph is not None and isinstance(place.step, int):
            graph.choice = place.acts_as, place.step + 1
        if scope is None or place.kind == "chain" or (place.kind == "node" and answer is place.answer):
            return
        if place.kind == "tool" and place.around is not None:
            place.around.answer = answer
        if not place.is_told:
            return
        giver = place.agent or (place.name if place.kind == "node" else scope.team.first) or scope.agent_name
        for taker in _targets_of(answer):
            if taker not in ("__end__", giver):
                core.hand_over(scope, giver, taker, place.call_id)


def _agent_of_graph(graph: _Place) -> str | None:
    """Only a nested graph, or one with a name, is an agent."""
    if graph.name != _UNNAMED:
        return graph.name
    outer = graph.around
    while outer is not None and outer.kind == "chain":
        outer = outer.around
    return outer.name if outer else None


def _announce(core: Core, scope: RunScope, node: _Place, agent: str) -> None:
    """Records a hand-over if a tool of one agent runs another agent."""
    graph = node.around
    if graph is None or graph.is_announced:
        return
    graph.is_announced = True
    outer = graph.around
    while outer is not None and outer.kind == "chain":
        outer = outer.around
    if outer is not None and outer.kind == "tool" and outer.agent != agent:
        core.hand_over(scope, outer.agent or scope.team.first or scope.agent_name, agent, outer.call_id)


def _is_part(tags: object) -> bool:
    return isinstance(tags, list) and any(isinstance(tag, str) and tag.startswith("seq:step:") for tag in tags)


def _is_choice(answer: object) -> bool:
    """Whether an edge's answer chooses nodes: by their names, by names of edges, or by `Send`."""
    chosen = answer if isinstance(answer, (list, tuple)) else [answer]
    return bool(chosen) and all(isinstance(one, (str, bool)) or type(one).__name__ == "Send" for one in chosen)


def _targets_of(answer: object) -> list[str]:
    """The nodes at which a graph continues after a `Command`."""
    commands = answer if isinstance(answer, (list, tuple)) else [answer]
    targets: list[str] = []
    for command in commands:
        goto = getattr(command, "goto", None) if type(command).__name__ == "Command" else None
        for one in goto if isinstance(goto, (list, tuple)) else [goto]:
            taker = getattr(one, "node", one)
            if isinstance(taker, str) and taker:
                targets.append(taker)
    return targets
