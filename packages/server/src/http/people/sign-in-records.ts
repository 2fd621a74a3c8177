/** The library has no transactions here, so steps that belong together are acts of our own. */
import type { CustomAdapter, Where } from 'better-auth/adapters'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { sessionCredential } from '../../domain/people/credential.ts'
import { uuidv7 } from '../../storage/engine/uuid.ts'
import type { SignInCondition, SignInModel, SignInRecord } from '../../storage/people/operators.ts'
import type { Storage } from '../../storage/storage.ts'

type Value = string | number | boolean | Date | null | undefined
type Given = Record<string, Value>

const TIMES = ['createdAt', 'updatedAt', 'expiresAt', 'lockedUntil']
const FLAGS = ['emailVerified', 'twoFactorEnabled', 'verified']
const MODELS = ['user', 'session', 'account', 'verification', 'twoFactor']
const MANY = 10_000

export const newRecordId = (): string => uuidv7(Date.now())

/** The store has only hashes of session tokens. So the library gets back the tokens that it passed. */
export function signInRecords(
  storage: Pick<Storage, 'findSignIn' | 'createSignIn' | 'updateSignIn' | 'deleteSignIn'>,
): CustomAdapter {
  async function find(model: string, where: Where[] | undefined, limit: number, newestFirst = false) {
    const tokens = new Map<string, string>()
    const records = await storage.findSignIn(modelOf(model), {
      where: conditions(model, where, tokens),
      limit,
      newestFirst,
    })
    return records.map((record) => fromRecord(model, record, tokens))
  }

  return {
    async create<T extends Record<string, unknown>>({ model, data }: { model: string; data: T }) {
      const tokens = new Map<string, string>()
      const record = toRecord(model, data as Given, tokens)
      return fromRecord(model, await storage.createSignIn(modelOf(model), record), tokens) as T
    },
    async findOne<T>({ model, where }: { model: string; where: Where[] }) {
      return ((await find(model, where, 1))[0] ?? null) as T | null
    },
    async findMany<T>({ model, where, limit, sortBy, offset }: FindMany) {
      if (offset) throw new Error('Paging of records is not supported')
      if (sortBy && (sortBy.field !== 'createdAt' || sortBy.direction !== 'desc')) {
        throw new Error(`Sorting of records by ${sortBy.field} is not supported`)
      }
      return (await find(model, where, limit, sortBy !== undefined)) as T[]
    },
    async count({ model, where }) {
      return (await find(model, where, MANY)).length
    },
    async update<T>({ model, where, update }: { model: string; where: Where[]; update: T }) {
      return (await change(model, where, update as Given, {}))[0] as T | null
    },
    async updateMany({ model, where, update }) {
      return (await change(model, where, update as Given, {})).length
    },
    async incrementOne<T>({ model, where, increment, set }: IncrementOne) {
      return ((await change(model, where, (set ?? {}) as Given, increment))[0] ?? null) as T | null
    },
    async delete({ model, where }) {
      await storage.deleteSignIn(modelOf(model), conditions(model, where, new Map()), false)
    },
    async deleteMany({ model, where }) {
      return (await storage.deleteSignIn(modelOf(model), conditions(model, where, new Map()), false)).length
    },
    async consumeOne<T>({ model, where }: { model: string; where: Where[] }) {
      const tokens = new Map<string, string>()
      const [record] = await storage.deleteSignIn(modelOf(model), conditions(model, where, tokens), true)
      return (record ? fromRecord(model, record, tokens) : null) as T | null
    },
  }

  async function change(model: string, where: Where[], set: Given, increment: Record<string, number>) {
    const tokens = new Map<string, string>()
    const record = toRecord(model, set, tokens)
    const rows = await storage.updateSignIn(modelOf(model), conditions(model, where, tokens), record, increment)
    return rows.map((row) => fromRecord(model, row, tokens))
  }
}

interface FindMany {
  model: string
  where?: Where[] | undefined
  limit: number
  sortBy?: { field: string; direction: 'asc' | 'desc' } | undefined
  offset?: number | undefined
}

interface IncrementOne {
  model: string
  where: Where[]
  increment: Record<string, number>
  set?: Record<string, unknown> | undefined
}

function modelOf(model: string): SignInModel {
  if (!MODELS.includes(model)) throw new Error(`There are no records of ${model}`)
  return model as SignInModel
}

function toRecord(model: string, data: Given, tokens: Map<string, string>): SignInRecord {
  const entries = Object.entries(data).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries.map(([field, value]) => [field, stored(model, field, value, tokens)]))
}

function stored(model: string, field: string, value: Value, tokens: Map<string, string>): string | number | null {
  if (value === null || value === undefined) return null
  if (value instanceof Date) return value.getTime()
  if (typeof value === 'boolean') return value ? 1 : 0
  return model === 'session' && field === 'token' ? hashed(String(value), tokens) : value
}

function hashed(token: string, tokens: Map<string, string>): string {
  const { hash } = sessionCredential(token)
  tokens.set(hash, token)
  return hash
}

function fromRecord(model: string, record: SignInRecord, tokens: Map<string, string>): Record<string, unknown> {
  const entries = Object.entries(record).map(([field, value]) => {
    if (value === null) return [field, null]
    if (TIMES.includes(field)) return [field, new Date(Number(value))]
    if (FLAGS.includes(field)) return [field, value === 1]
    if (model === 'session' && field === 'token') return [field, tokens.get(String(value)) ?? '']
    return [field, value]
  })
  return Object.fromEntries(entries) as Record<string, unknown>
}

function conditions(model: string, where: Where[] | undefined, tokens: Map<string, string>): SignInCondition[] {
  return (where ?? []).map(({ field, operator = 'eq', value, connector, mode }) => {
    if (connector === 'OR' || mode === 'insensitive')
      throw new Error('Only AND conditions with exact case are supported')
    if (operator === 'not_in' || operator === 'contains' || operator === 'starts_with' || operator === 'ends_with') {
      throw new Error(`The operator ${operator} is not supported`)
    }
    const keptRecords = Array.isArray(value)
      ? value.map((one) => String(stored(model, field, one, tokens)))
      : stored(model, field, value, tokens)
    return { field, operator, value: keptRecords }
  })
}

export const COOKIE_PREFIX = 'tacho'
export const SESSION_COOKIE = `${COOKIE_PREFIX}.session_token`
export const SECOND_FACTOR_COOKIE = `${COOKIE_PREFIX}.two_factor`

/** The cookie is the token and the library's signature. The signature is not checked: the token has 190 random bits. */
export function sessionTokenOf(request: FastifyRequest): string | null {
  const value = cookiesOf(request).get(SESSION_COOKIE)
  return value === undefined ? null : tokenIn(value)
}

export function sessionTokenIn(setCookies: string[]): string | null {
  for (const line of setCookies) {
    const [pair = ''] = line.split(';', 1)
    const at = pair.indexOf('=')
    if (pair.slice(0, at) === SESSION_COOKIE && at !== pair.length - 1) return tokenIn(pair.slice(at + 1))
  }
  return null
}

function tokenIn(value: string): string | null {
  try {
    return /^([0-9A-Za-z_-]{16,128})\./.exec(decodeURIComponent(value))?.[1] ?? null
  } catch {
    return null
  }
}

export function cookieHeader(request: FastifyRequest, isWanted: (name: string) => boolean): string {
  return [...cookiesOf(request)].flatMap(([name, value]) => (isWanted(name) ? [`${name}=${value}`] : [])).join('; ')
}

export function setCookies(
  request: FastifyRequest,
  reply: FastifyReply,
  lines: string[],
  publicUrl: string | null,
): void {
  const overTls = request.protocol === 'https' || publicUrl?.startsWith('https:')
  const secure = overTls ? '; Secure' : ''
  for (const line of lines) void reply.header('set-cookie', line + secure)
}

export function expireSessionCookie(request: FastifyRequest, reply: FastifyReply, publicUrl: string | null): void {
  setCookies(request, reply, [`${SESSION_COOKIE}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0`], publicUrl)
}

function cookiesOf({ headers }: FastifyRequest): Map<string, string> {
  const cookies = new Map<string, string>()
  for (const pair of (headers.cookie ?? '').split(';')) {
    const at = pair.indexOf('=')
    const name = pair.slice(0, at).trim()
    if (at > 0 && !cookies.has(name)) cookies.set(name, pair.slice(at + 1).trim())
  }
  return cookies
}
