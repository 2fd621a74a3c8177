"""The run and the span that the host's code is currently in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, replace
from typing import Protocol

from ..delivery.queue import Recorder
from ..inner_class import inner_class
from ..shared import shared
from .open_telemetry import Trace
from .plain import read_safely
from .run_state import OpenCall, RunState
from .usage import RunUsage


@inner_class
class Span:
    span_id: str
    parent_span_id: str | None


@dataclass(eq=False, repr=False)
class Team:
    """The agents that act in one run. Events of the first agent do not name an agent."""

    first: str | None = None
    """Empty if the framework gives it no name."""
    members: set[str] = field(default_factory=set)
    """Agents to which another one handed over."""

    def naming(self, agent: str | None) -> str | None:
        """The name that events of this agent carry."""
        if self.first is None:
            self.first = agent or ""
        return None if agent == self.first else agent or None

    def hand_over(self, giver: str, taker: str) -> None:
        if not self.first:
            self.first = giver
        if len(self.members) < _MEMBERS_MAX:
            self.members.add(taker)


_MEMBERS_MAX = 100


@dataclass(eq=False, repr=False)
class RunScope:
    """State that all events of a run share."""

    run_id: str
    session_id: str | None
    agent_id: str | None
    agent_name: str
    is_sampled: bool
    """Whether all its events are recorded, or only its outcome and policy decisions."""
    json: str
    """The shared event fields, as JSON without braces."""
    span: Span
    """Root span of the run."""
    state: RunState
    approval_client_id: str
    """Client id under which approvals are requested."""
    recorder: Recorder
    annotations: dict[str, object] = field(default_factory=dict)
    """Added to each event payload that lacks the key."""
    prompt_versions: set[str | None] = field(default_factory=set)
    """The first two versions that the run requested."""
    trace: Trace | None = None
    """Trace of events outside a span of OpenTelemetry: that of the request or process in which the run started, or one that
    `traceparent` began.
    """
    is_ended: bool = False
    """The outcome is recorded. The run is no longer current, even in a generator or task that still has its context."""
    is_of_call: bool = False
    """The run began for one guarded call outside a run."""
    entered_at: int | None = None
    """When the host entered it, as Unix time in milliseconds. None after its first event."""
    team: Team = field(default_factory=Team)
    open_streams: dict[object, Callable[[], object]] = field(default_factory=dict)
    """Streams of models that the host still reads or has left. Each function records the part that it read."""

    @property
    def usage(self) -> RunUsage:
        return self.state.usage

    def leave_streams(self) -> None:
        for leave in list(self.open_streams.values()):
            read_safely(leave, None)


@inner_class
class Context:
    owner: object
    """The lineage of the client: clients do not share runs."""
    scope: RunScope
    span: Span
    outer: Context | None
    prompt: tuple[str | None] | None = None
    """The prompt version last requested in this context; tasks and spans do not share it. (None,) means the fallback."""
    continues: OpenCall | None = None
    """The waiting call that a host continues here. Its approval is valid for this call only."""
    agent: str | None = None
    """The agent that acts here, if it is not the run's first one."""


CURRENT: ContextVar[Context | None] = shared("current", lambda: ContextVar("tacho", default=None))


class Owner(Protocol):
    lineage: object


def current_of(owner: Owner) -> Context | None:
    """The innermost run of this client, also inside a run of another one."""
    context = CURRENT.get()
    while context is not None and (context.owner is not owner.lineage or context.scope.is_ended):
        context = context.outer
    return context


def enter(owner: Owner, scope: RunScope, span: Span, prompt: tuple[str | None] | None = None) -> Token[Context | None]:
    """Makes a run and a span the current ones. Within the same run, the prompt and the agent stay."""
    around = current_of(owner)
    agent = None
    if around is not None and around.scope is scope:
        prompt, agent = prompt or around.prompt, around.agent
    return CURRENT.set(Context(owner.lineage, scope, span, CURRENT.get(), prompt, agent=agent))


@contextmanager
def acting(owner: Owner, agent: str | None) -> Iterator[None]:
    """Attributes events inside the block to this agent of the current run. None: the framework does not name it."""
    around = current_of(owner)
    if around is None or agent is None:
        yield
        return
    token = CURRENT.set(replace(around, agent=around.scope.team.naming(agent), outer=CURRENT.get()))
    try:
        yield
    finally:
        CURRENT.reset(token)


def here_in(owner: Owner, scope: RunScope) -> Context | None:
    """The context here, if this run is the innermost."""
    around = current_of(owner)
    return around if around is not None and around.scope is scope else None


def agent_in(owner: Owner, scope: RunScope) -> str | None:
    """The agent that acts in this context, if it is not the run's first."""
    around = here_in(owner, scope)
    return None if around is None else around.agent


@contextmanager
def continuing(owner: Owner, call: OpenCall) -> Iterator[None]:
    """Makes the next guarded call inside the block continue the waiting call."""
    around = current_of(owner)
    token = CURRENT.set(None if around is None else replace(around, continues=call, outer=CURRENT.get()))
    try:
        yield
    finally:
        CURRENT.reset(token)


def use_prompt(owner: Owner, version_id: str | None) -> None:
    """Makes later events of this context name the version."""
    around = current_of(owner)
    if around is None:
        return
    if len(around.scope.prompt_versions) < 2:
        around.scope.prompt_versions.add(version_id)
    if CURRENT.get() is around:
        CURRENT.set(replace(around, prompt=(version_id,)))
    else:
        enter(owner, around.scope, around.span, (version_id,))


def prompt_facts_of(around: Context | None, scope: RunScope) -> dict[str, object] | None:
    """Payload members about the prompt; None if there is none. `around`: the context in the run."""
    used = _prompt_of(around, scope)
    return None if used is None else {"promptFallback": True} if used[0] is None else {"promptVersionId": used[0]}


def prompt_version_of(owner: Owner, scope: RunScope) -> str | None:
    """
    The version of this context. Without one, as in another thread, the run's only version. None if the run has several, because
    a wrong version is worse than none.
    """
    used = _prompt_of(here_in(owner, scope), scope)
    return None if used is None else used[0]


def _prompt_of(around: Context | None, scope: RunScope) -> tuple[str | None] | None:
    if around is not None and around.prompt is not None:
        return around.prompt
    return (next(iter(scope.prompt_versions)),) if len(scope.prompt_versions) == 1 else None
