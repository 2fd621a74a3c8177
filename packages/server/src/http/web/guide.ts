/** Serves the docs of the running version, also offline. Renders a page when it is first read, so the docs need no build. */
import { existsSync, readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { ROOT } from '../../program/program.ts'
import { serveFolder } from './files.ts'
import { sendInPieces } from './connections.ts'
import type { GuidePages, Hit, Source } from './guide-page.ts'

const PREFIX = '/docs/guide'
const DOCS = path.join(ROOT, 'docs')
const QUERY_CHARS = 200
const WORDS_MAX = 10
const LINE_CHARS = 300
const HITS_MAX = 20
const FRONT = path.join(DOCS, 'README.md')

const HEADERS = {
  'content-security-policy':
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'referrer-policy': 'same-origin',
}

function guidePages(): GuidePages {
  const pages = new Map([
    [FRONT, PREFIX],
    [path.join(ROOT, 'packages/policy/README.md'), `${PREFIX}/policy-language`],
  ])
  const files = readdirSync(DOCS, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'))
  for (const file of files.sort()) {
    const name = file.replace(/(^|\/)README\.md$/, '').replace(/\.md$/, '')
    if (name !== '') pages.set(path.join(DOCS, file), `${PREFIX}/${name}`)
  }
  return pages
}

export function guideRoutes(app: FastifyInstance): void {
  if (!existsSync(FRONT)) return
  const pages = guidePages()
  const rendered = new Map<string, Promise<Buffer>>()

  // A megabyte, read only at the first search.
  let texts: Promise<Source[]> | null = null

  async function render(file: string): Promise<Buffer> {
    const { renderPage } = await import('./guide-page.ts')
    return Buffer.from(renderPage(pages, await sourceOf(file), await sourceOf(FRONT)))
  }

  async function search(query: string): Promise<Buffer> {
    const { renderHits, titleOf } = await import('./guide-page.ts')
    texts ??= Promise.all([...pages.keys()].map(sourceOf))
    texts.catch(() => (texts = null))
    const guideHits = hitsOf(await texts, query).map(({ source: { file, text }, line }): Hit => {
      return { address: pages.get(file) ?? '', title: titleOf(text), line }
    })
    return Buffer.from(renderHits(pages, query, guideHits, await sourceOf(FRONT)))
  }

  async function send(reply: FastifyReply, file: string): Promise<FastifyReply> {
    const page = rendered.get(file) ?? render(file)
    rendered.set(file, page)
    page.catch(() => rendered.delete(file))
    return sendInPieces(reply.headers(HEADERS).type('text/html; charset=utf-8'), await page)
  }

  const files = new Map(Array.from(pages, ([file, address]) => [address, file]))
  // One wildcard route: a route for each page would outnumber all others, and every start would have to create them.
  for (const route of [PREFIX, `${PREFIX}/*`]) {
    app.get(route, async (request, reply) => {
      const { '*': name } = request.params as { '*'?: string }
      const { q: query } = request.query as { q?: unknown }
      if (name === undefined && typeof query === 'string' && query.trim() !== '') {
        const page = await search(query.trim().slice(0, QUERY_CHARS))
        return sendInPieces(reply.headers(HEADERS).type('text/html; charset=utf-8'), page)
      }
      const address = name === undefined ? PREFIX : `${PREFIX}/${name}`
      const file = files.get(address)
      if (file !== undefined) return send(reply, file)
      const closed = address.slice(0, -1)
      if (!address.endsWith('/') || !files.has(closed)) return reply.callNotFound()
      return reply.redirect(`../${path.posix.basename(closed)}${new URL(request.url, 'http://x').search}`)
    })
  }
  serveFolder(app, `${PREFIX}/pictures`, path.join(DOCS, 'pictures'), { caching: 'public, max-age=86400' })
}

async function sourceOf(file: string): Promise<Source> {
  return { file, text: await readFile(file, 'utf8') }
}

/** Pages with all words: those with a word in a heading first, then those that have the words more often. */
function hitsOf(sources: readonly Source[], query: string): { source: Source; line: string }[] {
  const words = query.toLowerCase().split(/\s+/).slice(0, WORDS_MAX)
  const hits = sources.flatMap((source) => {
    const text = source.text.toLowerCase()
    if (!words.every((word) => text.includes(word))) return []
    const lines = source.text.split('\n')
    const ranked = lines.map((line) => ({
      line,
      words: words.filter((word) => line.toLowerCase().includes(word)).length,
    }))
    const [best] = ranked.toSorted((a, b) => b.words - a.words)
    const headings = ranked.filter(({ line, words: count }) => count > 0 && line.startsWith('#')).length
    const score = 20 * headings + ranked.reduce((sum, { words: count }) => sum + count, 0)
    return [{ source, line: (best?.line ?? '').replace(/^[#|\s-]+/, '').slice(0, LINE_CHARS), score }]
  })
  return hits.toSorted((a, b) => b.score - a.score).slice(0, HITS_MAX)
}
