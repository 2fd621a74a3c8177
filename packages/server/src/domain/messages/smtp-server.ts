import { attempt } from '../web/attempt.ts'

export interface SmtpServer {
  host: string
  port: number
  /** TLS from the first byte; otherwise STARTTLS. */
  secure: boolean
  auth: { user: string; pass: string } | null
  /** On this machine, mail may go without TLS. */
  isLocal: boolean
}

const PORTS = new Map([
  ['smtp:', 587],
  ['smtps:', 465],
])
const LOCAL = new Set(['localhost', '127.0.0.1', '[::1]'])

export function smtpServerOf(given: string): SmtpServer | null {
  const url = URL.parse(given)
  const port = PORTS.get(url?.protocol ?? '')
  if (url === null || port === undefined || url.hostname === '' || given.length > 1_024) return null
  if (!['', '/'].includes(url.pathname) || url.search !== '' || url.hash !== '') return null
  const [user, pass] = [url.username, url.password].map((text) => attempt(() => decodeURIComponent(text)))
  if (user === undefined || pass === undefined || (user === '') !== (pass === '')) return null
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? port : Number(url.port),
    secure: url.protocol === 'smtps:',
    auth: user === '' ? null : { user, pass },
    isLocal: LOCAL.has(url.hostname),
  }
}
