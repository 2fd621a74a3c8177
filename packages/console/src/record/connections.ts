/** How to connect each kind of agent. README.md has the same ways, with both languages of a framework in one row. */
interface Connection {
  name: string
  /** The setting or the code that connects it. */
  line: string
  /** Whether policies and approvals apply to its tools. */
  guardsTools: boolean
  /** The page that explains it, in the repository. */
  page: string
}

export const CONNECTIONS: readonly Connection[] = [
  connection('TypeScript', 'await tacho.run(async (run) => …)', true, 'docs/sdk/README.md'),
  connection('Python', 'with tacho.run(): …', true, 'docs/sdk/python.md'),
  connection(
    'Vercel AI SDK',
    'recordModel(model, tacho), guardTools(tools, tacho)',
    true,
    'docs/integrations/vercel-ai-sdk.md',
  ),
  connection('OpenAI client', 'recordClient(new OpenAI(), tacho)', true, 'docs/integrations/openai.md'),
  connection('Anthropic client', 'recordClient(new Anthropic(), tacho)', true, 'docs/integrations/anthropic.md'),
  connection('LangChain, LangGraph', 'callbacks: [recordCalls(tacho)]', true, 'docs/integrations/langchain.md'),
  connection('OpenAI Agents', 'addTraceProcessor(recordTraces(tacho))', true, 'docs/integrations/openai-agents.md'),
  connection('Claude Agent SDK', 'guardQuery(query, tacho)', true, 'docs/integrations/claude-agent-sdk.md'),
  connection('Mastra', 'recordModel(model, tacho), guardTools(tools, tacho)', true, 'docs/integrations/mastra.md'),
  connection(
    'OpenAI client, Python',
    'record_client(OpenAI()), call_tools(answer, tools)',
    true,
    'docs/integrations/python-openai.md',
  ),
  connection(
    'Anthropic client, Python',
    'record_client(Anthropic()), call_tools(answer, tools)',
    true,
    'docs/integrations/python-anthropic.md',
  ),
  connection(
    'OpenAI Agents, Python',
    'guard_agent(agent), hooks=TachoHooks()',
    true,
    'docs/integrations/python-openai-agents.md',
  ),
  connection(
    'LangChain, LangGraph, Python',
    'guard_tools(tools), {"callbacks": [TachoHandler()]}',
    true,
    'docs/integrations/python-langchain.md',
  ),
  connection(
    'Pydantic AI',
    'record_model(model), guard_toolset(toolset)',
    true,
    'docs/integrations/python-pydantic-ai.md',
  ),
  connection('CrewAI', 'TachoListener(), guard_tools(tools)', true, 'docs/integrations/python-crewai.md'),
  connection('OpenTelemetry', 'OTEL_EXPORTER_OTLP_ENDPOINT=…/openapi/v1/otlp', false, 'docs/otlp.md'),
  connection(
    'Claude Code, Codex, Gemini CLI, Copilot CLI, Cursor, OpenCode, Qwen Code, pi',
    'tacho hook install claude-code',
    true,
    'docs/coding-agents.md',
  ),
  connection(
    'Claude Code, Codex: tokens and cost',
    'OTEL_LOGS_EXPORTER=otlp, or [otel] in config.toml',
    false,
    'docs/integrations/coding-agents.md',
  ),
  connection('MCP server', 'tacho mcp-guard -- <server command>', true, 'docs/mcp-guard.md'),
  connection('Anything that speaks HTTP', 'POST /openapi/v1/events/batch', false, 'README.md'),
]

function connection(name: string, line: string, guardsTools: boolean, page: string): Connection {
  return { name, line, guardsTools, page }
}
