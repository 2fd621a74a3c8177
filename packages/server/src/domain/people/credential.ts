import { hash, timingSafeEqual, argon2, randomBytes, type Argon2Parameters } from 'node:crypto'
import { promisify } from 'node:util'
import type { Random } from '../../storage/engine/uuid.ts'

export interface Credential {
  id: string
  hash: string
}

export interface NewCredential extends Credential {
  text: string
}

const ID_BYTES = 8
const SECRET_BYTES = 32

export const { create: newApiKey, parse: parseApiKey, form: API_KEY_FORM } = credentials('tacho')
export const {
  create: newOperatorToken,
  parse: parseOperatorToken,
  form: OPERATOR_TOKEN_FORM,
} = credentials('tacho-operator')
export const { create: newInvitation, parse: parseInvitation } = credentials('tacho-invitation')
export const { create: newSlackCode } = credentials('tacho-slack')

function credentials(prefix: string) {
  // Neither part has an underscore, so a text has only one reading. Installations can set keys of other lengths than
  // ours.
  const pattern = new RegExp(`^${prefix}_([0-9A-Za-z]{8,64})_[0-9A-Za-z]{32,128}$`)
  return {
    form: `${prefix}_<id>_<secret>, id of 8 to 64 and secret of 32 to 128 letters and digits`,
    create(random: Random): NewCredential {
      const id = Buffer.from(random(ID_BYTES)).toString('hex')
      const text = `${prefix}_${id}_${Buffer.from(random(SECRET_BYTES)).toString('hex')}`
      return { id, text, hash: hash('sha256', text) }
    },
    parse(text: string): Credential | null {
      const id = pattern.exec(text)?.[1]
      return id === undefined ? null : { id, hash: hash('sha256', text) }
    },
  }
}

export function sessionCredential(token: string): Credential {
  const digest = hash('sha256', token)
  return { id: digest, hash: digest }
}

/**
 * Compares in constant time. Compares texts, because decoders of hex and base64url accept other texts for the same
 * bytes.
 */
export function sameHash(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** The credential follows the #, which browsers never send to a server. */
export function invitationLink(base: string, text: string): string {
  return `${base}/invitation#${text}`
}

/** OWASP's second recommendation: 19 MiB and two passes, about 30 ms. */
const MEMORY_KIB = 19_456
const PASSES = 2
const LANES = 1
const HASH_BYTES = 32
const SALT_BYTES = 16

const PHC = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/

const run = promisify<'argon2id', Argon2Parameters, Buffer>(argon2)

export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES)
  const hash = await derive(password, salt, { memory: MEMORY_KIB, passes: PASSES, parallelism: LANES }, HASH_BYTES)
  return `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=${LANES}$${unpadded(salt)}$${unpadded(hash)}`
}

/** A malformed hash matches no password and takes the same time. */
export async function verifyPassword(password: string, phc: string | null): Promise<boolean> {
  const [, memory, passes, parallelism, salt = '', hash = ''] = PHC.exec(phc ?? '') ?? []
  if (memory === undefined) {
    await hashPassword(password)
    return false
  }
  const cost = { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) }
  const expected = Buffer.from(hash, 'base64')
  return timingSafeEqual(await derive(password, Buffer.from(salt, 'base64'), cost, expected.length), expected)
}

type Cost = Pick<Argon2Parameters, 'memory' | 'passes' | 'parallelism'>

function derive(password: string, salt: Buffer, cost: Cost, tagLength: number): Promise<Buffer> {
  // Normalized, because keyboards send different code points for the same letter.
  return run('argon2id', { message: password.normalize('NFC'), nonce: salt, tagLength, ...cost })
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '')
}
