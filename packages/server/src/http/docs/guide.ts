/** Works offline and needs no script. */
import { existsSync, globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'
import { ROOT } from '../../program/root.ts'
import { serveFolder } from '../files.ts'
import { sendInPieces } from '../stalled-readers.ts'
import type { GuidePages } from './render.ts'

const PREFIX = '/docs/guide'
const DOCS = path.join(ROOT, 'docs')
const FRONT = path.join(DOCS, 'README.md')

const HEADERS = {
  'content-security-policy':
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'same-origin',
}

/** Pages outside docs/ have an address of their own. */
function guidePages(): GuidePages {
  const pages = new Map([
    [FRONT, PREFIX],
    [path.join(ROOT, 'packages/policy/README.md'), `${PREFIX}/policy-language`],
  ])
  for (const file of globSync('**/*.md', { cwd: DOCS }).sort()) {
    const name = file.replace(/(^|\/)README\.md$/, '').replace(/\.md$/, '')
    if (name !== '') pages.set(path.join(DOCS, file), `${PREFIX}/${name}`)
  }
  return pages
}

export function guideRoutes(app: FastifyInstance): void {
  if (!existsSync(FRONT)) return
  const pages = guidePages()
  const rendered = new Map<string, Promise<Buffer>>()

  async function render(file: string): Promise<Buffer> {
    // Most servers never show a page.
    const { renderPage } = await import('./render.ts')
    const front = { file: FRONT, text: await readFile(FRONT, 'utf8') }
    return Buffer.from(renderPage(pages, { file, text: await readFile(file, 'utf8') }, front))
  }

  for (const [file, address] of pages) {
    app.get(address, async (_request, reply) => {
      const page = rendered.get(file) ?? render(file)
      rendered.set(file, page)
      page.catch(() => rendered.delete(file))
      return sendInPieces(reply.headers(HEADERS).type('text/html; charset=utf-8'), await page)
    })
  }
  serveFolder(app, `${PREFIX}/pictures`, path.join(DOCS, 'pictures'), { caching: 'public, max-age=86400' })
}
