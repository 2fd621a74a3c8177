import { existsSync, globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { ROOT } from '../../program/root.ts'
import { serveFolder } from '../files.ts'
import { sendInPieces } from '../unread-replies.ts'
import type { GuidePages } from './render.ts'

const PREFIX = '/docs/guide'
const DOCS = path.join(ROOT, 'docs')
const FRONT = path.join(DOCS, 'README.md')

const HEADERS = {
  'content-security-policy':
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'same-origin',
}

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
    const { renderPage } = await import('./render.ts')
    const front = { file: FRONT, text: await readFile(FRONT, 'utf8') }
    return Buffer.from(renderPage(pages, { file, text: await readFile(file, 'utf8') }, front))
  }

  async function send(reply: FastifyReply, file: string): Promise<FastifyReply> {
    const page = rendered.get(file) ?? render(file)
    rendered.set(file, page)
    page.catch(() => rendered.delete(file))
    return sendInPieces(reply.headers(HEADERS).type('text/html; charset=utf-8'), await page)
  }

  const files = new Map(Array.from(pages, ([file, address]) => [address, file]))
  // One for each page would be more routes than all others, which every start would have to make.
  for (const route of [PREFIX, `${PREFIX}/*`]) {
    app.get(route, (request, reply) => {
      const { '*': name } = request.params as { '*'?: string }
      const file = files.get(name === undefined ? PREFIX : `${PREFIX}/${name}`)
      return file === undefined ? reply.callNotFound() : send(reply, file)
    })
  }
  serveFolder(app, `${PREFIX}/pictures`, path.join(DOCS, 'pictures'), { caching: 'public, max-age=86400' })
}
