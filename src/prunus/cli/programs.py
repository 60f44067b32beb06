"""What to paste into other programs, so that they use Prunus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..core.settings import Settings

_PROGRAMS: Final = (
    ("Claude Code", "", "claude mcp add prunus -- prunus mcp"),
    ("Cursor", "", '.cursor/mcp.json: {"mcpServers": {"prunus": {"command": "prunus", "args": ["mcp"]}}}'),
    ("OpenAI's clients", "", "base_url = {server}/v1"),
    ("n8n", "", "an OpenAI credential with the base URL {server}/v1; or the MCP Client Tool with {server}/mcp"),
    ("Open WebUI", "openwebui", "Documents, External: {server}/openwebui; Web Search, external loader: "
     "{server}/openwebui/load; Web Search, external: {server}/openwebui/search"),
    ("Open WebUI, Cohere, Jina", "rerank", "a reranker at {server}/v1/rerank or {server}/v2/rerank"),
    ("Firecrawl's clients", "firecrawl", 'Firecrawl(api_key="KEY", api_url="{server}")'),
    ("Tavily's clients", "tavily", 'TavilyClient("KEY", api_base_url="{server}/tavily")'),
    ("Jina's Reader", "jina", "{server}/r/ADDRESS and {server}/s/QUERY in place of r.jina.ai and s.jina.ai"),
    ("curl", "markdown", "curl '{server}/md?url=ADDRESS'"),
)  # fmt: skip
"""Name, the shape that ``prunus serve`` needs for it, and what to paste."""


def programs(settings: Settings) -> list[dict[str, Any]]:
    """Return what to paste into each program, and whether the settings switch on what it needs.

    The shapes of ``--shapes`` of a server that runs are not known here.
    """
    options: Mapping[str, Any] = settings.serve
    server = f"http://{options.get('host', '127.0.0.1')}:{options.get('port', 8080)}"
    on = set(options.get("shapes", ()))
    return [
        {
            "program": name,
            "paste": line.replace("{server}", server),
            "needs": f"prunus serve --shapes {shape}" if shape and not {shape, "all"} & on else "",
        }
        for name, shape, line in _PROGRAMS
    ]
