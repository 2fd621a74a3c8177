import { argon2, randomBytes, timingSafeEqual, type Argon2Parameters } from 'node:crypto'
import { promisify } from 'node:util'

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
  // Keyboards send different code points for equal letters.
  return run('argon2id', { message: password.normalize('NFC'), nonce: salt, tagLength, ...cost })
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '')
}
