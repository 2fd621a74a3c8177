import type { Transporter } from 'nodemailer'
import { smtpServerOf, type MailMessage } from '../../domain/messages/mail.ts'
import { Shares } from '../../domain/tenants/shares.ts'
import type { Sent } from './webhook-sender.ts'

const TIMEOUT_MS = 10_000
/** Timeout for a whole mail, because a batch of deliveries waits for it. */
const SEND_MS = 15_000
/** Limits of mails that are being sent, so that a slow mail server leaves room for other workspaces. */
const AT_ONCE = { most: 5, ofWorkspace: 3, ofCredential: 3 }

export interface MailSender {
  send(message: MailMessage, workspaceId: string): Promise<Sent | 'busy'>
}

type Options = Record<'smtpUrl' | 'mailFrom', string | null>

export function createMailSender({ smtpUrl, mailFrom }: Options): MailSender | null {
  const server = smtpUrl === null ? null : smtpServerOf(smtpUrl)
  if (server === null || mailFrom === null) return null
  const domain = mailFrom.slice(mailFrom.lastIndexOf('@') + 1)
  let opened: Promise<Transporter> | null = null
  const sending = new Shares(AT_ONCE)

  const open = async (): Promise<Transporter> => {
    const { createTransport } = await import('nodemailer')
    const { host, port, secure, auth, isLocal } = server
    return createTransport({
      host,
      port,
      secure,
      dnsTimeout: TIMEOUT_MS,
      connectionTimeout: TIMEOUT_MS,
      greetingTimeout: TIMEOUT_MS,
      socketTimeout: TIMEOUT_MS,
      ...(auth !== null && { auth }),
      requireTLS: !secure && !isLocal,
      disableFileAccess: true,
      disableUrlAccess: true,
    })
  }

  return {
    async send({ id, to, subject, text }, workspaceId) {
      const holder = { workspace: workspaceId, credential: '' }
      if (!sending.take(holder, 1)) return 'busy'
      try {
        const transport = await (opened ??= open())
        const sent = transport.sendMail({
          from: { name: 'Tacho', address: mailFrom },
          to: { name: '', address: to },
          subject,
          text,
          messageId: `<${id}@${domain}>`,
          headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
        })
        const { response } = await within(SEND_MS, sent)
        return { ok: true, status: Number.parseInt(String(response), 10) || 250 }
      } catch (error) {
        return failureOf(error)
      } finally {
        sending.add(holder, -1)
      }
    },
  }
}

async function within<Result>(ms: number, sent: Promise<Result>): Promise<Result> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(Object.assign(new Error(), { code: 'ETIMEDOUT' })), ms)
  try {
    return await Promise.race([sent, promise])
  } finally {
    clearTimeout(timer)
  }
}

const REASONS = new Map([
  ['EAUTH', 'The mail server refused the sign-in'],
  ['ETLS', 'The mail server offers no valid TLS'],
  ['EDNS', 'The host of the mail server does not resolve'],
  ['ETIMEDOUT', 'The mail server did not answer in time'],
])
/** Errors that are final for this mail. The operator can fix others, such as a refused sign-in. */
const OF_THE_MAIL = new Set(['EENVELOPE', 'EMESSAGE'])

/** Leaves out the mail server's words, which may quote addresses. */
function failureOf(error: unknown): Sent {
  const { code = '', responseCode = null } = error as { code?: string; responseCode?: number }
  const isFinal = OF_THE_MAIL.has(code) && responseCode !== null && responseCode >= 500
  const reason =
    REASONS.get(code) ??
    (responseCode === null ? 'The connection to the mail server failed' : `The mail server answered ${responseCode}`)
  return { ok: false, status: responseCode, error: reason, ...(isFinal && { isFinal }) }
}
