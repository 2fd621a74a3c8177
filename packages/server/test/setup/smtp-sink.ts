/** A mail server that stores the mails that it receives. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

export interface ReceivedMail {
  from: string
  to: string[]
  raw: string
  isEncrypted: boolean
  user: string | undefined
}

export interface SmtpSink {
  port: number
  mails: ReceivedMail[]
  /** Refuses the next recipients with this code; null: accepts them. */
  refuseWith(code: number | null): void
  close(): Promise<void>
}

export async function startSmtpSink(options: SMTPServerOptions = {}, host = '127.0.0.1'): Promise<SmtpSink> {
  const mails: ReceivedMail[] = []
  let refusal: number | null = null
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onRcptTo(address, _session, done) {
      if (refusal === null) return done()
      done(Object.assign(new Error(`no mail for ${address.address}`), { responseCode: refusal }))
    },
    onData(stream, session, done) {
      text(stream).then((raw) => {
        const { mailFrom, rcptTo } = session.envelope
        const to = rcptTo.map(({ address }) => address)
        const user = typeof session.user === 'string' ? session.user : undefined
        mails.push({ from: mailFrom ? mailFrom.address : '', to, raw, isEncrypted: session.secure, user })
        done()
      }, done)
    },
    ...options,
  })
  // A client that refuses the certificate is an error of the connection.
  server.on('error', () => undefined)
  const listening = server.listen(0, host)
  await once(listening, 'listening')
  return {
    port: (listening.address() as AddressInfo).port,
    mails,
    refuseWith: (code) => (refusal = code),
    async close() {
      const { promise, resolve } = Promise.withResolvers<void>()
      server.close(() => resolve())
      await promise
    },
  }
}
