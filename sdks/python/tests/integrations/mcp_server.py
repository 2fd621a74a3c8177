"""The smallest MCP server that the frameworks' clients accept. It runs on loopback, and its tools take any object."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SCHEMA = {"type": "object", "properties": {"amount": {"type": "number"}}}


@contextmanager
def mcp_server(tools: dict[str, Callable[..., str]]) -> Iterator[str]:
    """Starts a server and returns its address. `tools` get the arguments by name."""

    def result_of(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if method == "initialize":
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "shop", "version": "1"}}
            return {"protocolVersion": params["protocolVersion"], **about}
        if method == "tools/list":
            return {"tools": [{"name": name, "inputSchema": SCHEMA} for name in tools]}
        if method == "tools/call":
            said = tools[params["name"]](**params["arguments"])
            return {"content": [{"type": "text", "text": said}]}
        return None

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if "id" not in message:
                return self.reply(202, b"")
            result = result_of(message["method"], message.get("params", {}))
            answer = {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
            self.reply(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}).encode())

        def do_GET(self) -> None:
            self.reply(405, b"")

        do_DELETE = do_GET

        def reply(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        server.server_close()
