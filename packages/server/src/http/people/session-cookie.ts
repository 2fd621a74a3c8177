import type { FastifyReply, FastifyRequest } from 'fastify'

export const COOKIE_PREFIX = 'tacho'
export const SESSION_COOKIE = `${COOKIE_PREFIX}.session_token`
export const SECOND_FACTOR_COOKIE = `${COOKIE_PREFIX}.two_factor`

/** The cookie is the token and the library's signature, which 190 random bits make redundant. */
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
