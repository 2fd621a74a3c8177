/**
 * The MCP server over streamable HTTP. It is outside the prefix of the operator API, and not in its OpenAPI document: MCP clients
 * know it by their own specification.
 */
import Type from 'typebox'
import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from './access.ts'

export const MCP_ROUTE = {
  method: 'POST',
  path: '/mcp',
  summary: 'Read what agents did, with an MCP client',
  tag: 'Runs',
  scopes: [],
  // The operator API checks the roles at each read of a tool.
  access: 'signed-in',
  body: Type.Object({}),
  bodyBytes: LIMITS.operatorBodyBytes,
  status: 200,
  reply: Type.Object({}),
  errors: [],
} as const satisfies OperatorRoute
