/**
 * One tool, two spellings: hooks of coding agents say `mcp__db__drop_table`, a guard of the server says `drop_table`. A condition
 * that reads `tool.server` means the server and the tool's own name, whoever calls it. Any other condition sees the name as the
 * client says it, as before `tool.server` existed: its deny-lists and allow-lists keep their meaning.
 */
const OF_SERVER = /^mcp__(.+?)__(.+)$/s

export interface ToolName {
  /** '' for a tool that is not of an MCP server. */
  readonly server: string
  /** Name without `mcp__server__`. */
  readonly own: string
}

/** @param server the server that the client reports; then the name is the tool's own. */
export function toolNameOf(name: string, server?: string | null): ToolName {
  if (server) return { server, own: name }
  const [, named, own] = OF_SERVER.exec(name) ?? []
  return named === undefined || own === undefined ? { server: '', own: name } : { server: named, own }
}
