/**
 * A tool of an MCP server has two spellings: hooks of coding agents report `mcp__db__drop_table`, a guard of the server
 * reports `drop_table`. For a condition that reads `tool.server`, `tool.name` is always the tool's own name. For any
 * other condition it is the client's spelling, as before `tool.server` existed, so deny-lists and allow-lists keep
 * their meaning.
 */
const OF_SERVER = /^mcp__(.+?)__(.+)$/s

export interface ToolName {
  /** The server; '' if the tool does not belong to an MCP server. */
  readonly server: string
  /** Name without `mcp__server__`. */
  readonly own: string
}

/** @param server the server that the client reports. If given, `name` is the tool's own name. */
export function toolNameOf(name: string, server?: string | null): ToolName {
  if (server) return { server, own: name }
  const [, named, own] = OF_SERVER.exec(name) ?? []
  return named === undefined || own === undefined ? { server: '', own: name } : { server: named, own }
}
