/** Mail through a real mail server: encryption, verification of its certificate, and its refusals. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { smtpServerOf } from '../../../src/domain/messages/mail.ts'
import { createMailSender, type MailSender } from '../../../src/jobs/messages/mail-sender.ts'
import type { Sent } from '../../../src/jobs/messages/webhook-sender.ts'
import { eventually } from '../../setup/eventually.ts'
import { startSmtpSink, type SmtpSink } from '../../setup/smtp-sink.ts'

const MAIL = { id: '0197b0a0-0000-7000-8000-000000000000', to: 'ada@example.com', subject: 'Grüße', text: 'Hello\n.\n' }

function senderTo(smtpUrl: string): MailSender {
  const sender = createMailSender({ smtpUrl, mailFrom: 'tacho@example.org' })
  assert.ok(sender)
  return sender
}

async function sentBy(smtpUrl: string): Promise<Sent> {
  const sent = await senderTo(smtpUrl).send(MAIL, 'w')
  assert.ok(sent !== 'busy')
  return sent
}

test('an address names the server, its port, and how it is encrypted', () => {
  assert.deepEqual(smtpServerOf('smtps://a%40b:p%3Aw@mail.example.com'), {
    host: 'mail.example.com',
    port: 465,
    secure: true,
    auth: { user: 'a@b', pass: 'p:w' },
    isLocal: false,
  })
  assert.deepEqual([smtpServerOf('smtp://[::1]:25')?.host, smtpServerOf('smtp://[::1]:25')?.isLocal], ['::1', true])
  const others = [
    '',
    'mail.example.com',
    'http://x',
    'smtp://',
    'smtp://x/y',
    'smtp://x?a=b',
    'smtp://a@x',
    'smtp://%@x',
  ]
  for (const other of others) assert.equal(smtpServerOf(other), null, other)
  assert.equal(createMailSender({ smtpUrl: null, mailFrom: null }), null)
})

describe('a mail server on this machine', () => {
  let sink: SmtpSink
  let sender: MailSender
  before(async () => {
    sink = await startSmtpSink({ onAuth: ({ username }, _session, done) => done(null, { user: username ?? '' }) })
    sender = senderTo(`smtp://127.0.0.1:${sink.port}`)
  })
  after(() => sink.close())

  test('gets the mail as it is', async () => {
    assert.deepEqual(await sender.send(MAIL, 'w'), { ok: true, status: 250 })
    const [mail] = sink.mails
    assert.deepEqual([mail?.from, mail?.to], ['tacho@example.org', ['ada@example.com']])
    const lines = mail?.raw.split('\r\n') ?? []
    for (const line of [
      'From: Tacho <tacho@example.org>',
      'To: ada@example.com',
      'Subject: =?UTF-8?Q?Gr=C3=BC=C3=9Fe?=',
      `Message-ID: <${MAIL.id}@example.org>`,
      'Auto-Submitted: auto-generated',
    ]) {
      assert.ok(lines.includes(line), `${line} in\n${mail?.raw}`)
    }
    assert.match(mail?.raw ?? '', /\r\n\r\nHello\r\n\.\r\n/)
  })

  test('refuses for a while with 4xx, and for good with 5xx', async () => {
    for (const [code, isFinal] of [
      [421, undefined],
      [450, undefined],
      [550, true],
      [554, true],
    ] as const) {
      sink.refuseWith(code)
      const sent = await sender.send(MAIL, 'w')
      assert.deepEqual(sent, {
        ok: false,
        status: code,
        error: `The mail server answered ${code}`,
        ...(isFinal && { isFinal }),
      })
    }
    sink.refuseWith(null)
  })

  test('gets five mails at once at most', async () => {
    const all = await Promise.all(Array.from({ length: 7 }, (_, index) => sender.send(MAIL, `w${index % 4}`)))
    assert.deepEqual(
      all.map((sent) => (sent === 'busy' ? sent : sent.ok)),
      [true, true, true, true, true, 'busy', 'busy'],
    )
    assert.deepEqual(await sender.send(MAIL, 'w'), { ok: true, status: 250 })
  })

  test('that is not there is tried again', async () => {
    const gone = await startSmtpSink()
    await gone.close()
    const sent = await sentBy(`smtp://127.0.0.1:${gone.port}`)
    assert.deepEqual(sent, { ok: false, status: null, error: 'The connection to the mail server failed' })
  })
})

const isMissing = spawnSync('openssl', ['version']).status !== 0

// 127.0.0.2 is this machine too, but it is not one of the addresses that are allowed without TLS.
describe(
  'a mail server elsewhere',
  { skip: isMissing && 'openssl, which makes the certificate, is not installed' },
  () => {
    const HOST = '127.0.0.2'
    let folder: string
    let certificate: { key: string; cert: string }
    const authorities = getCACertificates()
    before(() => {
      folder = mkdtempSync(path.join(tmpdir(), 'tacho-mail-'))
      const names = ['-subj', '/CN=mail', '-addext', `subjectAltName=IP:${HOST}`]
      const files = ['-keyout', `${folder}/key`, '-out', `${folder}/cert`]
      execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...names, ...files], {
        stdio: 'ignore',
      })
      const read = (name: string) => readFileSync(path.join(folder, name), 'utf8')
      certificate = { key: read('key'), cert: read('cert') }
    })
    after(() => {
      setDefaultCACertificates(authorities)
      rmSync(folder, { recursive: true })
    })

    test('gets no mail without TLS', async () => {
      const sink = await startSmtpSink({}, HOST)
      const sent = await sentBy(`smtp://${HOST}:${sink.port}`)
      assert.deepEqual([sent.ok, sent.ok || sent.error], [false, 'The mail server offers no valid TLS'])
      assert.equal(sink.mails.length, 0)
      await sink.close()
    })

    for (const [scheme, secure] of [
      ['smtps', true],
      ['smtp', false],
    ] as const) {
      test(`gets mail by ${scheme} if its certificate is trusted, after a sign-in`, async () => {
        setDefaultCACertificates(authorities)
        const sink = await startSmtpSink(
          {
            ...certificate,
            secure,
            disabledCommands: [],
            authOptional: false,
            onAuth({ username, password }, _session, done) {
              if (password === 'right') return done(null, { user: username ?? '' })
              done(new Error('wrong'))
            },
          },
          HOST,
        )
        const by = (password: string) => sentBy(`${scheme}://tacho:${password}@${HOST}:${sink.port}`)
        const untrusted = await by('right')
        assert.equal(untrusted.ok, false)
        assert.equal(sink.mails.length, 0)
        setDefaultCACertificates([...authorities, certificate.cert])
        const wrong = await by('wrong')
        // A wrong password is not final, because the operator can correct it. The mail waits.
        assert.deepEqual(
          [wrong.ok, 'isFinal' in wrong, wrong.ok || wrong.error],
          [false, false, 'The mail server refused the sign-in'],
        )
        assert.deepEqual(await by('right'), { ok: true, status: 250 })
        const [mail] = sink.mails
        assert.deepEqual([mail?.isEncrypted, mail?.user], [true, 'tacho'])
        await sink.close()
      })
    }
  },
)

test('mails of one workspace to a mail server that never answers leave room for those of others', async () => {
  const sockets: Socket[] = []
  const silent = createServer((socket) => sockets.push(socket.on('error', () => undefined))).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const sender = senderTo(`smtp://127.0.0.1:${(silent.address() as AddressInfo).port}`)
  const sending = Array.from({ length: 4 }, () => sender.send(MAIL, 'loud'))
  assert.equal(await sending[3], 'busy')
  const other = sender.send(MAIL, 'other')
  await eventually(() => sockets.length === 4, 'the mail of the other workspace')
  for (const socket of sockets) socket.destroy()
  silent.close()
  for (const sent of await Promise.all([...sending.slice(0, 3), other])) {
    assert.ok(sent !== 'busy' && !sent.ok && sent.isFinal !== true)
  }
})
