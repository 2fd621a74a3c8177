import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { operatorDocument, publicDocument } from '@tacho/contract/web/openapi.ts'
import { OPERATOR_PREFIX } from '@tacho/contract/web/operator-routes.ts'
import { PUBLIC_PREFIX } from '@tacho/contract/web/routes.ts'
import type { FastifyInstance } from 'fastify'
import { serveFile } from './files.ts'
import { sendInPieces } from './connections.ts'
import { ROOT } from '../../program/program.ts'

const FILES = path.join(ROOT, 'packages/server/src/http/web/docs')
/**
 * A packed program contains copies (scripts/pack.mjs), because installing the package of Swagger UI also installs one
 * that reports the installation to its makers.
 */
const COPIES = path.join(FILES, 'swagger-ui')
const ASSETS = existsSync(COPIES)
  ? COPIES
  : path.dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))

// The page works under this policy because it has no inline scripts.
const POLICY = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'"

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Tacho API</title>
<link rel="icon" href="./docs/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="./docs/assets/swagger-ui.css">
<link rel="stylesheet" href="./docs/look.css">
<link rel="stylesheet" href="./docs/reference.css">
</head>
<body>
<header><a class="home" href="./docs">Tacho API</a><nav><a href="./docs/guide">Docs</a><a href="./">Console</a></nav></header>
<div id="api"></div>
<script src="./docs/assets/swagger-ui-bundle.js"></script>
<script src="./docs/assets/swagger-ui-standalone-preset.js"></script>
<script src="./docs/page.js"></script>
</body>
</html>
`

const SCRIPT = `SwaggerUIBundle({
  dom_id: '#api',
  urls: [
    { name: 'Public interface', url: '.${PUBLIC_PREFIX}/openapi.json' },
    { name: 'Operator API', url: '.${OPERATOR_PREFIX}/openapi.json' },
  ],
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
  layout: 'StandaloneLayout',
  validatorUrl: null,
  deepLinking: true,
})
`

const SHOWN = ['swagger-ui.css', 'swagger-ui-bundle.js', 'swagger-ui-standalone-preset.js']

const EXAMPLES_AT = 1_790_000_000_000

const EXAMPLES_MS = 10 * 60_000

/** Old events are rejected, so examples get current times. */
function withTimesOf(now: number, text: string): string {
  return text.replaceAll(/\b17900000\d{5}\b/g, (time) => String(now + Number(time) - EXAMPLES_AT))
}

interface Options {
  version: string
  now: () => number
}

export function documentsRoutes(app: FastifyInstance, { version, now }: Options): void {
  const documents = [
    [PUBLIC_PREFIX, publicDocument],
    [OPERATOR_PREFIX, operatorDocument],
  ] as const
  for (const [prefix, make] of documents) {
    // Built at the first request, because few servers need this half megabyte. Requests within EXAMPLES_MS share the bytes.
    let text: string | null = null
    let made = { at: Number.NEGATIVE_INFINITY, bytes: Buffer.alloc(0) }
    app.get(`${prefix}/openapi.json`, (_request, reply) => {
      const at = now()
      if (Math.abs(at - made.at) >= EXAMPLES_MS) {
        text ??= JSON.stringify(make(version))
        made = { at, bytes: Buffer.from(withTimesOf(at, text)) }
      }
      return sendInPieces(reply.type('application/json; charset=utf-8'), made.bytes)
    })
  }
  app.get('/docs', (_request, reply) =>
    reply.header('content-security-policy', POLICY).type('text/html; charset=utf-8').send(PAGE),
  )
  // Relative, because a proxy may serve us below a path.
  app.get('/docs/', (_request, reply) => reply.redirect('../docs'))
  app.get('/docs/page.js', (_request, reply) => reply.type('text/javascript; charset=utf-8').send(SCRIPT))
  const caching = 'public, max-age=86400'
  for (const file of ['icon.svg', 'look.css', 'reference.css', 'guide.css']) {
    serveFile(app, `/docs/${file}`, path.join(FILES, file), { caching })
  }
  for (const file of SHOWN) serveFile(app, `/docs/assets/${file}`, path.join(ASSETS, file), { caching })
}
