from __future__ import annotations

import asyncio
from typing import Any

import pytest

from .conftest import Scene
from .model_server import ModelServer

anthropic = pytest.importorskip("anthropic")
QUESTION = {"role": "user", "content": "Refund 1, 2 and 3"}
OPTIONS: dict[str, Any] = {"model": "m", "max_tokens": 100, "system": "Be brief."}


def test_messages(scene: Scene, model: ModelServer) -> None:
    from tacho_sdk.integrations.anthropic import call_tools, record_client

    client = record_client(anthropic.Anthropic(base_url=model.url), scene.tacho)
    with scene.tacho.run():
        first = client.messages.create(messages=[QUESTION], **OPTIONS)
        answers = call_tools(first, [scene.refund], scene.tacho)
        assert [answer.get("is_error") for answer in answers] == [None, True, None]
        following = [QUESTION, {"role": "assistant", "content": first.content}, {"role": "user", "content": answers}]
        last = client.messages.create(messages=following, **OPTIONS)
    scene.check(provider="anthropic", answer=last.content[0].text, messages=answers)


def test_messages_async_streamed(scene: Scene, model: ModelServer) -> None:
    from tacho_sdk.integrations.anthropic import acall_tools, record_client

    async def main() -> Any:
        client = record_client(anthropic.AsyncAnthropic(base_url=model.url), scene.tacho)
        async with scene.tacho.run():
            stream = await client.messages.create(messages=[QUESTION], stream=True, **OPTIONS)
            assert isinstance(stream, anthropic.AsyncStream)
            uses = [event.content_block async for event in stream if event.type == "content_block_start"]
            from .model_server import CALLS

            blocks = [{**use.model_dump(), "input": given} for use, (_, given) in zip(uses, CALLS, strict=True)]
            answers = await acall_tools({"content": blocks}, [scene.refund], scene.tacho)
            following = [QUESTION, {"role": "assistant", "content": blocks}, {"role": "user", "content": answers}]
            last = await client.messages.create(messages=following, stream=True, **OPTIONS)
            text = "".join([event.delta.text async for event in last if event.type == "content_block_delta"])
        return text, answers

    text, answers = asyncio.run(main())
    scene.check(provider="anthropic", answer=text, messages=answers, is_stream=True)
