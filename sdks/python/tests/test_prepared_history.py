"""A run's history is prepared when a call ends: it stays cheap with many policies, and an interrupt adds no call twice."""

from __future__ import annotations

import pytest

from tacho_sdk.policy.compile import Condition, compile_condition, evaluate
from tacho_sdk.policy.facts import Facts
from tacho_sdk.policy.history.call_index import CallIndex
from tacho_sdk.policy.history.run_history import HistoryCall, RunHistory
from tacho_sdk.policy.loops_of_calls import Judged, PastLoop

_OTHERS = " && ".join(f'c.tool != "t{number}"' for number in range(150))


def _compiled(source: str) -> Condition:
    condition = compile_condition(source)
    assert isinstance(condition, Condition), condition
    return condition


def _end(history: RunHistory, *conditions: Condition, **made_input: object) -> None:
    history.ended(HistoryCall("pay", made_input, True, "ALLOW", (), (), "o"))
    for prepare in (prepare for one in conditions for prepare in one.preparations):
        prepare(history)


@pytest.mark.parametrize(
    "source",
    [
        f"run.calls.exists(c, {_OTHERS} && !c.ok)",
        'run.calls.exists(c, has(c.input.text) && c.input.text.split("").exists(x, x == "c"))',
    ],
)
def test_a_loop_that_runs_out_of_steps_is_walked_once(monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    condition = _compiled(source)
    prepared, plain = RunHistory(), RunHistory()
    for _ in range(300):
        _end(prepared, condition, text="ab" * 200)
        _end(plain, text="ab" * 200)
    walked = evaluate(condition, Facts("pay", {}, 0, run_history=plain))
    assert walked.matched is None
    monkeypatch.setattr(PastLoop, "_judge", lambda *_: pytest.fail("walked again"))
    _end(prepared, condition, text="ab")
    assert evaluate(condition, Facts("pay", {}, 0, run_history=prepared)) == walked


def test_more_loops_than_a_history_remembers_are_not_all_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    conditions = [_compiled(f'run.calls.filter(c, c.tool != "t{number}").size() == 20') for number in range(300)]
    whole: list[PastLoop] = []
    judge = PastLoop._judge

    def counted(self: PastLoop, known: Judged, *others: object) -> Judged:
        if known.calls == 0:
            whole.append(self)
        return judge(self, known, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(PastLoop, "_judge", counted)
    history = RunHistory()
    for _ in range(20):
        _end(history, *conditions)
    assert len(whole) == len(set(whole)), "in preparations"
    for _ in range(3):
        whole.clear()
        for condition in conditions:
            assert evaluate(condition, Facts("pay", {}, 0, run_history=history)).matched
        assert len(whole) < 200


def test_an_interrupt_of_a_preparation_leaves_no_call_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    condition = _compiled("run.calls.filter(c, has(c.input) && c.input.id == tool.input.id).size() == 3")
    history = RunHistory()
    for _ in range(2):
        _end(history, id="a")
    add = CallIndex._add

    def interrupted(self: CallIndex, call: dict[str, object], place: int) -> None:
        add(self, call, place)
        if place == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CallIndex, "_add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _end(history, condition, id="a")
    assert evaluate(condition, Facts("pay", {"id": "a"}, 0, run_history=history)).matched
