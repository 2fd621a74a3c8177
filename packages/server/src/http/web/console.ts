/** Asset names contain a hash of their content, so browsers can cache them forever. */
import { existsSync } from 'node:fs'
import path from 'node:path'
import { OPERATOR_PREFIX } from '@tacho/contract/web/operator-routes.ts'
import { PUBLIC_PREFIX } from '@tacho/contract/web/routes.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ROOT } from '../../program/program.ts'
import { sendFile, serveFile, serveFolder } from './files.ts'

const DIST = path.join(ROOT, 'packages/console/dist')

const PAGE_HEADERS = {
  'cache-control': 'no-cache',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
    "manifest-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'same-origin',
}

const WORKER_HEADERS = {
  'content-security-policy': "default-src 'none'; connect-src 'self'; img-src 'self'",
}

export function hasConsole(dist: string = DIST): boolean {
  return existsSync(path.join(dist, 'index.html'))
}

export function consoleRoutes(app: FastifyInstance, dist: string = DIST): void {
  const caching = 'public, max-age=31536000, immutable'
  serveFolder(app, '/assets', path.join(dist, 'assets'), { caching, preCompressed: true })
  const unhashed = { caching: 'no-cache' }
  serveFolder(app, '/icons', path.join(dist, 'icons'), unhashed)
  serveFile(app, '/manifest.webmanifest', path.join(dist, 'manifest.webmanifest'), unhashed)
  serveFile(app, '/service-worker.js', path.join(dist, 'service-worker.js'), { ...unhashed, headers: WORKER_HEADERS })
}

/** A browser gets the console or the API reference; load balancers and people with curl get a few lines of text. */
export function frontRoute(app: FastifyInstance, { version, docs, console }: FrontOptions): void {
  const lines = [
    `Tacho ${version}`,
    console && 'Console: open this address in a browser',
    docs && 'Docs: /docs/guide, API reference: /docs',
    'Health: /healthz, readiness: /readyz',
  ]
  const text = `${lines.filter(Boolean).join('\n')}\n`
  app.get('/', (request, reply) => {
    if (isNavigation(request) && console) return sendConsolePage(request, reply)
    if (isNavigation(request) && docs) return reply.redirect('./docs')
    return reply.header('vary', 'accept').type('text/plain; charset=utf-8').send(text)
  })
}

interface FrontOptions {
  version: string
  /** Whether the docs and the console are served. */
  docs: boolean
  console: boolean
}

/** Not a route `/*`, which would also match addresses that the router refuses as too long. */
export async function sendConsolePage(
  { url }: FastifyRequest,
  reply: FastifyReply,
  dist: string = DIST,
): Promise<FastifyReply> {
  void reply.code(200).headers(PAGE_HEADERS).type('text/html; charset=utf-8')
  // Relative, because a proxy may have removed part of the path that the browser knows.
  const [address = ''] = url.split('?', 1)
  const base = `./${'../'.repeat(Math.max(0, address.split('/').length - 2))}`
  return sendFile(reply, path.join(dist, 'index.html'), (page) =>
    page.replace('<base href="/" />', `<base href="${base}" />`),
  )
}

export function isNavigation({ method, url, headers }: FastifyRequest): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  const mode = headers['sec-fetch-mode']
  if (mode !== undefined && mode !== 'navigate') return false
  if (!(headers.accept ?? '').includes('text/html')) return false
  return ![PUBLIC_PREFIX, OPERATOR_PREFIX, '/assets'].some((prefix) => url.startsWith(`${prefix}/`))
}
