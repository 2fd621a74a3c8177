/**
 * Writes src/endpoints from the contract's tables of routes. The tables hold every schema; a page that calls an endpoint
 * needs its method and path only. Run it after you change a table: `scripts/node packages/client/scripts/endpoints.ts`.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { IDEMPOTENCY_KEY_HEADER } from '@tacho/contract/web/fields.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/web/operator-routes.ts'
import type { Route } from '@tacho/contract/web/route.ts'
import { ROUTES } from '@tacho/contract/web/routes.ts'
import type { Endpoint } from '../src/endpoint.ts'

/** The generated files: content by name. */
export const FILES: ReadonlyMap<string, string> = new Map([
  ['public.ts', sourceOf('PUBLIC_ENDPOINTS', ROUTES)],
  ['operator.ts', sourceOf('OPERATOR_ENDPOINTS', OPERATOR_ROUTES)],
])

export const FOLDER = new URL('../src/endpoints/', import.meta.url)

if (import.meta.main) {
  mkdirSync(FOLDER, { recursive: true })
  for (const [name, source] of FILES) writeFileSync(new URL(name, FOLDER), source)
}

function sourceOf(constant: string, routes: Record<string, Route>): string {
  const rows = Object.entries(routes)
    // Leave out redirects of a browser, which no client calls.
    .filter(([, { status }]) => status !== 303)
    .map(([name, route]) => `  ${name}: ${JSON.stringify(endpointOf(route))},\n`)
  return [
    '// Made from the routes tables of the contract by scripts/endpoints.ts.\n',
    `import type { Endpoint } from '../endpoint.ts'\n\n`,
    `export const ${constant} = {\n`,
    ...rows,
    '} as const satisfies Record<string, Endpoint>\n',
  ].join('')
}

function endpointOf({ method, path, status, replyType, events, headers }: Route): Endpoint {
  return {
    ...(method === 'GET' ? {} : { method }),
    path,
    ...(status === 200 ? {} : { status }),
    ...(events ? { reply: 'events' } : replyType ? { reply: 'bytes' } : {}),
    ...(headers && Object.hasOwn(headers.properties, IDEMPOTENCY_KEY_HEADER) ? { creates: true } : {}),
  }
}
