"""Clients of the SDK that make a guarded call as soon as their configuration changes. Prints a line for each call of its parent."""

import json
import os
import sys
import threading
import time
from functools import partial

import tacho_sdk as tacho

_CHANGES_SECONDS = 20.0
_OPENED_AT_ONCE = 10

clients: list[tacho.Tacho] = []
# Decisions by revision, because a slow client may still use the previous one.
decided: dict[str, list[dict[str, object]]] = {}
arrived = threading.Condition()


def call(client: tacho.Tacho, revision: str = "") -> None:
    is_blocked = False
    try:
        with client.run():
            client.guard(lambda amount: amount, name="refund")(amount=5)
    except tacho.ToolBlockedError:
        is_blocked = True
    with arrived:
        decided.setdefault(revision, []).append({"at": time.time() * 1_000, "isBlocked": is_blocked})
        arrived.notify_all()


def open_one(url: str, key: str, name: str) -> None:
    client = tacho.Tacho(base_url=url, api_key=key, agent_id="support", agent_name="support", client_id=name)
    clients.append(client)
    client.configuration.ready(60.0)
    call(client)
    client.configuration.on_change(
        lambda current, *_: threading.Thread(target=partial(call, client, current.revision)).start()
    )


def opened(url: str, key: str, count: int) -> list[dict[str, object]]:
    for first in range(0, count, _OPENED_AT_ONCE):
        names = [f"python-{os.getpid()}-{first + index}" for index in range(min(_OPENED_AT_ONCE, count - first))]
        threads = [threading.Thread(target=open_one, args=(url, key, name)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    # Waiting begins a second after the first load.
    time.sleep(3)
    return []


def changed(count: int, revision: str) -> list[dict[str, object]]:
    with arrived:
        arrived.wait_for(lambda: len(decided.get(revision, [])) >= count, _CHANGES_SECONDS)
        # After a stop, the revision of before comes again.
        return decided.pop(revision, [])


for line in sys.stdin:
    asked = json.loads(line)
    answer: list[dict[str, object]] = []
    if "open" in asked:
        answer = opened(asked["url"], asked["apiKey"], asked["open"])
    elif "changes" in asked:
        answer = changed(asked["changes"], asked["revision"])
    else:
        for one in clients:
            one.shutdown()
    print(json.dumps({"decided": answer}), flush=True)
