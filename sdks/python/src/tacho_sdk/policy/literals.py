"""Comparisons with a constant text, which most conditions consist of: `tool.name == "pay"`, `"untrusted" in
run.labels`. The same results and steps as the operators, in a third of the time.
"""

from __future__ import annotations

from .operators import equal, is_in
from .position import units
from .syntax import BinaryNode, ListNode, literal_text
from .values import NO_OVERLOAD, Failure, Scope, Step, Unreadable, UnreadableRead, Value


def build_comparison(node: BinaryNode, left: Step, right: Step) -> Step | None:
    """Returns None if neither side is a constant text. `left` and `right`: the built sides."""
    if node.operator in ("==", "!="):
        text = literal_text(node.right)
        return None if text is None else _compares(left, text, node.operator == "==")
    if node.operator != "in":
        return None
    texts = [literal_text(element) for element in node.right.elements] if isinstance(node.right, ListNode) else [None]
    if None not in texts:
        return _is_one_of(left, texts)  # type: ignore[arg-type]
    text = literal_text(node.left)
    return None if text is None else _contains(right, text, node.start)


def _compares(left: Step, text: str, wanted: bool) -> Step:
    def step(scope: Scope) -> Value | Failure:
        value = left(scope)
        if type(value) is str:
            # A step is 32 units; 15 characters have at most 30.
            if len(value) > 15:
                scope.spend(units(value) >> 5)
            return (value == text) is wanted
        return value if isinstance(value, Failure) else equal(value, text, scope) is wanted

    return step


def _is_one_of(left: Step, texts: list[str]) -> Step:
    # Equal texts have the place of the first one.
    places = {text: place for place, text in reversed(list(enumerate(texts, 1)))}

    def step(scope: Scope) -> Value | Failure:
        value = left(scope)
        if type(value) is str and len(value) < 16:
            place = places.get(value)
            scope.spend(len(texts) if place is None else place)
            return place is not None
        return value if isinstance(value, Failure) else is_in(value, texts, scope)  # type: ignore[return-value]

    return step


def _contains(container: Step, text: str, start: int) -> Step:
    cost = 1 + (units(text) >> 5)
    no_overload = Failure(NO_OVERLOAD.reason, start)

    def step(scope: Scope) -> Value | Failure:
        values = container(scope)
        if isinstance(values, list):
            for before, value in enumerate(values):
                if type(value) is str:
                    if value == text:
                        scope.spend(cost * (before + 1))
                        return True
                elif isinstance(value, Unreadable):
                    scope.spend(cost * before + 1)
                    raise UnreadableRead(value.message)
            scope.spend(cost * len(values))
            return False
        if isinstance(values, dict):
            return text in values
        return values if isinstance(values, Failure) else no_overload

    return step
