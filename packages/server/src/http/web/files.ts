/** Files are read once and sent from one shared buffer, so that unread answers hold neither copies nor open files. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { sendInPieces } from './connections.ts'

interface Content {
  bytes: Buffer
  tag: string
}

const ENCODINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const

const TYPES = new Map([
  ['.css', 'text/css; charset=utf-8'],
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.json', 'application/json; charset=utf-8'],
  ['.map', 'application/json; charset=utf-8'],
  ['.png', 'image/png'],
  ['.svg', 'image/svg+xml'],
  ['.txt', 'text/plain; charset=utf-8'],
  ['.webmanifest', 'application/manifest+json; charset=utf-8'],
  ['.woff2', 'font/woff2'],
])

const loaded = new Map<string, Promise<Content>>()

function load(file: string): Promise<Content> {
  const known = loaded.get(file)
  if (known) return known
  const loading = readFile(file).then((bytes) => ({ bytes, tag: tagOf(bytes) }))
  loaded.set(file, loading)
  loading.catch(() => loaded.delete(file))
  return loading
}

const changeTimes = new Map<string, number>()

/**
 * Loads a file that keeps its name when a build replaces it while the server runs. During the replacement, returns the
 * former one.
 */
async function loadNewest(file: string): Promise<Content> {
  const stats = await stat(file).catch(() => null)
  if (stats !== null && changeTimes.get(file) !== stats.mtimeMs) {
    changeTimes.set(file, stats.mtimeMs)
    loaded.delete(file)
  }
  return load(file)
}

const tagOf = (bytes: Buffer): string => `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`

interface FileOptions {
  caching: string
  preCompressed?: boolean
  headers?: Record<string, string>
}

export function serveFile(app: FastifyInstance, address: string, file: string, options: FileOptions): void {
  const send = sender(file, options)
  app.get(address, send)
}

export function serveFolder(app: FastifyInstance, prefix: string, folder: string, options: FileOptions): void {
  let folderTime = 0
  let senders = new Map<string, ReturnType<typeof sender>>()
  /** Lists the folder again if a build replaced it. */
  const relist = () => {
    const time = statSync(folder, { throwIfNoEntry: false })?.mtimeMs
    if (time === undefined || time === folderTime) return
    folderTime = time
    // A glob takes 30 ms of the start: Node loads its code first.
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => path.extname(name) !== '')
    senders = new Map(files.map((file) => [file.split(path.sep).join('/'), sender(path.join(folder, file), options)]))
  }
  relist()
  app.get(`${prefix}/*`, (request, reply) => {
    const name = (request.params as { '*': string })['*']
    if (!senders.has(name)) relist()
    const send = senders.get(name)
    return send ? send(request, reply) : reply.callNotFound()
  })
}

function sender(file: string, { caching, preCompressed = false, headers = {} }: FileOptions) {
  const encodings = preCompressed ? ENCODINGS.filter(([, suffix]) => existsSync(file + suffix)) : []
  const loadFile = caching === 'no-cache' ? loadNewest : load
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const [encoding, suffix] = encodings.find(([name]) => accepts(request, name)) ?? ['', '']
    const content = await loadFile(file + suffix).catch(nullIfAbsent)
    // The page is from an earlier build whose files no longer exist.
    if (content === null) {
      reply.callNotFound()
      return reply
    }
    const { bytes, tag } = content
    void reply.headers({ ...headers, 'cache-control': caching, etag: tag })
    if (encodings.length > 0) void reply.header('vary', 'accept-encoding')
    if (matchesTag(request.headers['if-none-match'], tag)) return reply.code(304).send()
    if (encoding !== '') void reply.header('content-encoding', encoding)
    return sendInPieces(reply.type(TYPES.get(path.extname(file)) ?? 'application/octet-stream'), bytes)
  }
}

export async function sendFile(
  reply: FastifyReply,
  file: string,
  change: (text: string) => string,
): Promise<FastifyReply> {
  return sendInPieces(reply, Buffer.from(change((await loadNewest(file)).bytes.toString())))
}

function nullIfAbsent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}

function accepts({ headers }: FastifyRequest, encoding: string): boolean {
  const acceptedText = String(headers['accept-encoding'] ?? '')
  return acceptedText.split(',').some((each) => {
    const [name = '', ...parameters] = each.split(';').map((codingPart) => codingPart.trim().toLowerCase())
    return name === encoding && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
  })
}

// RFC 9110 8.8.3: a tag can contain commas between its quotes.
const TAG = /(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g

/** Weak comparison (RFC 9110 13.1.2), because caches weaken strong tags and some clients drop the mark. */
export function matchesTag(ifNoneMatch: string | undefined, tag: string): boolean {
  if (ifNoneMatch === undefined) return false
  if (ifNoneMatch === tag || ifNoneMatch.trim() === '*') return true
  const opaque = tag.replace(/^W\//, '')
  for (const [, given] of ifNoneMatch.matchAll(TAG)) if (given === opaque) return true
  return false
}
