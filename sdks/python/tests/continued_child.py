"""A process of an agent. Arguments: its role, the service, the key, a file that the tool writes, a handle, an approval."""

from __future__ import annotations

import json
import os
import sys

import tacho_sdk as tacho

act, base_url, api_key, file, handle, approval_id, *_ = [*sys.argv[1:], "{}", ""]
policy = tacho.Policy(policy_id="p", name="p", version="1", condition="true", severity="HIGH", action="REQUIRE_APPROVAL")
guard = tacho.GuardDefaults(policies=[policy], configuration_wait=60, approval_timeout=600)
tacho.configure(api_key=api_key, base_url=base_url, guard=guard, on_diagnostic=lambda _: None)


@tacho.guard(name="refund")
def refund(given: dict[str, object]) -> str:
    # One write, so that two processes write two lines.
    opened = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(opened, f"{given['order']} {given['amount']}\n".encode())
    os.close(opened)
    return "ran"


def say(value: object) -> None:
    print(json.dumps(value), flush=True)


if act == "wait":
    run = tacho.start_run()
    say(run.to_handle())
    with run.within():
        refund({"order": "1007", "amount": 25})
elif act == "pend":
    try:
        tacho.call_guarded("refund", {"order": "1007", "amount": 25}, lambda: None, rules=tacho.Rules(approval_wait=0))
    except tacho.ToolBlockedError as error:
        pending = error.pending.to_json() if error.pending else {}
        say({**pending, "handle": error.to_handle()})
    tacho.shutdown(60)
else:
    run = tacho.resume(json.loads(handle))
    tacho.client().configuration.ready(60)
    say("ready")
    sys.stdin.readline()
    again = {"order": "1007", "amount": 25}
    with run.within():
        try:
            result = refund(again) if act == "again" else tacho.continue_call(approval_id, refund)
        except tacho.ToolBlockedError as error:
            result = error.code
    say({"result": result, "handle": run.to_handle()})
    tacho.shutdown(60)
