"""Compiles and evaluates conditions."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from ..inner_class import inner_class
from .build import TopNames, build
from .check import check_types
from .constants import check_constants
from .facts import FactReader, Facts, OwnNameReader
from .limits import CACHED_CONDITIONS, EVALUATION_STEPS, SOURCE_CHARS
from .loops_of_calls import Preparation
from .parse import parse
from .position import Fault, Position, in_order, position_at, units
from .rules import check_rules
from .syntax import Node, children_of, dotted_name, is_of_history, tools_of
from .tokens import SyntaxFault
from .types import is_dynamic, show_type
from .values import Failure, OutOfSteps, Scope, Step, Unreadable, UnreadableRead, Value


@inner_class
class Condition:
    """A checked condition, ready to evaluate. Stateless: any number of evaluations can share it."""

    source: str
    run: Step
    reads_server: bool
    """Whether it reads `tool.server`: then `tool.name` is the tool's own name."""
    reads_history: bool = False
    """Whether it needs the past of the run."""
    preparations: tuple[Preparation, ...] = ()
    """Prepare it for the next decision when a call has ended."""
    tools: tuple[str, ...] = ()
    """The only tools for which the condition can be true. It is false for all others without reading facts. Empty: any tool."""


@inner_class
class NotACondition:
    """Faults in source order, at least one."""

    faults: list[Fault]


def compile_condition(source: object, of_labels: bool = False) -> Condition | NotACondition:
    """
    Parses a condition and checks it against the profile: names, types, patterns, limits, and a boolean result. Never
    raises. What this SDK cannot evaluate exactly is a fault. `of_labels`: may read `tool.output`.
    """
    try:
        return _compile(source, of_labels)
    except RecursionError:
        return NotACondition([Fault("the condition is nested too deeply", Position(0, 1, 1))])
    except Exception:
        return NotACondition([Fault("the condition cannot be compiled", Position(0, 1, 1))])


def _compile(source: object, of_labels: bool) -> Condition | NotACondition:
    if not isinstance(source, str):
        return NotACondition([Fault("the condition must be a string", Position(0, 1, 1))])

    def refuse(message: str, start: int = 0, end: int | None = None) -> NotACondition:
        return NotACondition([Fault(message, position_at(source, start, end))])

    if units(source) > SOURCE_CHARS:
        return refuse(f"the condition must have at most {SOURCE_CHARS} characters", SOURCE_CHARS, len(source))
    try:
        source.encode()
    except UnicodeEncodeError:
        return refuse("the condition must be well-formed Unicode")
    try:
        root = parse(source)
    except SyntaxFault as fault:
        return refuse(fault.message, fault.start, fault.end)
    wrong = check_rules(root, source, of_labels)
    if wrong:
        return NotACondition(wrong)

    faults: list[Fault] = []

    def add_fault(node: Node, message: str) -> None:
        faults.append(Fault(message, position_at(source, node.start, node.end)))

    type_ = check_types(root, add_fault)
    if not faults:
        check_constants(root, add_fault)
    if faults:
        return NotACondition(in_order(faults))
    if type_.name != "bool":
        hint = "compare it with a value, for example == true" if is_dynamic(type_) else f"this is {show_type(type_)}"
        return refuse(f"a condition must be true or false; {hint}", 0, len(source))
    reads_server = _reads_server(root)
    names = TopNames()
    run = build(root, names)
    tools = () if reads_server else tools_of(root)
    return Condition(source, run, reads_server, _reads_history(root), tuple(names.preparations), tools)


def _reads_server(node: Node) -> bool:
    return dotted_name(node) == "tool.server" or any(map(_reads_server, children_of(node)))


def _reads_history(node: Node) -> bool:
    is_read = is_of_history(node) or dotted_name(node) in ("run.labels", "run.calls")
    return is_read or any(map(_reads_history, children_of(node)))


@dataclass(frozen=True)
class Evaluation:
    """`matched` None: the condition failed, and `message` has the reason, without any fact."""

    matched: bool | None
    message: str = ""
    is_unreadable: bool = False
    """Failed because the input cannot be read, or is too large to read in the allowed steps."""


_MATCHED, _NOT_MATCHED = Evaluation(True), Evaluation(False)


def evaluate(condition: Condition, facts: Facts) -> Evaluation:
    """Never raises, keeps no state, and does a bounded amount of work."""
    return evaluate_in(condition, scope_of(facts))


def scope_of(facts: Facts) -> Scope:
    """A scope for any number of conditions, one after another."""
    return Scope(FactReader(facts), facts.run_history)


def evaluate_in(condition: Condition, scope: Scope) -> Evaluation:
    """The same, with facts that several conditions share."""
    scope.left = EVALUATION_STEPS
    try:
        result = condition.run(Scope(OwnNameReader(scope.fact), scope.history) if condition.reads_server else scope)
        # Most conditions are false, so this result is shared.
        return _NOT_MATCHED if result is False else _evaluation_of(condition, result)
    except (OutOfSteps, UnreadableRead) as error:
        # Only a large input needs so many steps: padding must not disable a policy.
        return Evaluation(None, str(error), True)
    except Exception:
        return Evaluation(None, "the condition could not be evaluated")


def _evaluation_of(condition: Condition, result: Value | Failure) -> Evaluation:
    if result is True:
        return _MATCHED
    if not isinstance(result, Failure):
        return Evaluation(None, "the condition must be true or false")
    if result.offset < 0:
        return Evaluation(None, result.message, type(result) is Unreadable)
    place = position_at(condition.source, result.offset)
    return Evaluation(None, f"line {place.line}, column {place.column}: {result.message}")


known_conditions: dict[str, Condition | NotACondition] = {}
_cache_of_labels: dict[str, Condition | NotACondition] = {}
_cache_lock = threading.Lock()


def compiled(source: str, of_labels: bool = False) -> Condition | NotACondition:
    """`compile_condition` with a cache by source. Faults are cached too."""
    cache = _cache_of_labels if of_labels else known_conditions
    known = cache.get(source)
    if known is not None:
        return known
    result = compile_condition(source, of_labels)
    with _cache_lock:
        if len(cache) >= CACHED_CONDITIONS:
            del cache[next(iter(cache))]
        cache[source] = result
    return result


def forget_lock() -> None:
    """A forked process needs a new lock: its parent may have held the old one."""
    global _cache_lock
    _cache_lock = threading.Lock()
