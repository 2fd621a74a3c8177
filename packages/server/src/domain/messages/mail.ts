import { printable } from '@tacho/contract/engine/shown-text.ts'
import { isEmail, lowerCase } from '../people/identity.ts'
import { ABOUT_CHARS, FACT_CHARS, OPEN, toTold, withoutLinks, type WebhookNews } from './webhook-formats.ts'
import { attempt, cut } from '../web/text.ts'

export interface MailMessage {
  /** The same id in each attempt, so that a mail server can drop a duplicate. */
  id: string
  to: string
  subject: string
  text: string
}

const SUBJECT_CHARS = 140
const SCHEME = 'mailto:'

export function mailAddressOf(url: string): string | null {
  const address = url.toLowerCase().startsWith(SCHEME) ? url.slice(SCHEME.length) : ''
  return isEmail(address) ? lowerCase(address) : null
}

export function mailMessage(news: WebhookNews, to: string): MailMessage {
  const { title, about, facts, url } = toTold(news)
  const parts = [
    withoutLinks(title),
    ...(about === null ? [] : [withoutLinks(cut(about, ABOUT_CHARS))]),
    facts.map(({ label, text }) => `${label}: ${withoutLinks(cut(text, FACT_CHARS))}`).join('\n'),
    ...(url === null ? [] : [`${OPEN}:\n${url}`]),
    `An admin chose this address for ${withoutLinks(printable(news.place?.environment ?? 'an environment'))}. The link decides nothing: you sign in first.`,
  ]
  return {
    id: news.id,
    to,
    subject: cut(withoutLinks(about === null ? title : `${title}: ${about}`), SUBJECT_CHARS),
    text: `${parts.filter((mailPart) => mailPart !== '').join('\n\n')}\n`,
  }
}

interface SmtpServer {
  host: string
  port: number
  /** True: TLS from the first byte. False: STARTTLS. */
  secure: boolean
  auth: { user: string; pass: string } | null
  /** The server is on this machine, so mail may go without TLS. */
  isLocal: boolean
}

const PORTS = new Map([
  ['smtp:', 587],
  ['smtps:', 465],
])
const LOCAL = new Set(['localhost', '127.0.0.1', '[::1]'])

export function smtpServerOf(serverText: string): SmtpServer | null {
  const url = URL.parse(serverText)
  const port = PORTS.get(url?.protocol ?? '')
  if (url === null || port === undefined || url.hostname === '' || serverText.length > 1_024) return null
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
