"""The twin of refund-agent.ts: the same tools and the same requests, so that one tape serves both."""

import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid
from typing import Any

import tacho_sdk as tacho

prompt, twist, proof = (*sys.argv[1:4], "", "", "")[:3]
base = os.environ.get("OPENAI_BASE_URL", "")
client = tacho.Tacho(agent_name="Refunds")


def ran(name: str, order: int) -> None:
    if proof:
        with open(proof, "a") as file:
            file.write(f"{name} {order}\n")


@client.guard(name="get_order")
def get_order(order: int, requestId: str) -> dict[str, Any]:
    ran("get_order", order)
    return {"order": order, "paid": 30}


@client.guard(name="refund")
def refund(order: int, amount: int) -> dict[str, Any]:
    ran("refund", order)
    return {"refunded": amount}


def act(call: dict[str, Any]) -> str:
    given = json.loads(call["function"]["arguments"])
    try:
        if call["function"]["name"] == "get_order":
            return json.dumps(get_order(**given, requestId=str(uuid.uuid4())))
        if twist == "amount":
            given["amount"] += 1
        return json.dumps(refund(**given))
    except Exception as error:
        return str(getattr(error, "model_text", error))


with client.run() as run:
    run.user_input(prompt)
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be very kind." if twist == "prompt" else "Be brief."},
        {"role": "user", "content": prompt},
    ]
    while True:
        begun = time.time()
        body = json.dumps({"model": "gpt-5", "messages": messages}).encode()
        request = urllib.request.Request(f"{base}/chat/completions", body, {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request) as reply:
                choice = json.load(reply)["choices"][0]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from None
        message = choice["message"]
        run.llm_call(model="gpt-5", messages=list(messages), output=message, started_at=begun)
        messages.append(message)
        calls = message.get("tool_calls") or []
        if not calls:
            break
        for call in reversed(calls) if twist == "order" else calls:
            messages.append({"role": "tool", "content": act(call), "tool_call_id": call["id"]})
