/** Caches the configuration for hosts that start while the service is down. */
import { readFileSync, statSync, utimesSync } from 'node:fs'

export interface KeptConfiguration {
  readonly etag: string | null
  /** Unix time in milliseconds. */
  readonly confirmedAt: number
  /** The body as the service sent it. It is checked again when it is read. */
  readonly body: unknown
}

/** Twice the size of the largest reply that is accepted. */
const FILE_BYTES_MAX = 64 * 1_048_576

export interface ConfigurationCache {
  /** Undefined if there is no usable file. */
  read(): Promise<KeptConfiguration | undefined>
  /** Replaces the whole file. Never rejects. */
  write(kept: KeptConfiguration): Promise<void>
  /** Notes that the service confirmed the file's content now. Never rejects. */
  confirm(): Promise<void>
}

/**
 * The file is signed, because a 304 confirms only its tag: otherwise another program could change the policies and keep
 * the tag.
 * @param sign MAC of a text under the API key and the address. A file with another signature is ignored.
 * @param warn receives a message if the file cannot be written.
 */
export function createDiskCache(
  file: string,
  sign: (text: string) => Promise<string>,
  warn: (message: string) => void,
): ConfigurationCache {
  // The times are not signed: confirmations change them.
  const signatureOf = (etag: unknown, body: unknown) => sign(JSON.stringify([etag, body]))
  return {
    async read() {
      try {
        // Synchronous: node:fs/promises would load much of Node for one file.
        const stats = statSync(file)
        // A pipe or a device could be read forever.
        if (!stats.isFile() || stats.size > FILE_BYTES_MAX) return undefined
        const storedConfiguration = JSON.parse(readFileSync(file, 'utf8')) as Partial<KeptConfiguration> & {
          signature?: unknown
        }
        const { etag = null, confirmedAt, body, signature } = storedConfiguration
        if (signature !== (await signatureOf(etag, body)) || typeof confirmedAt !== 'number') return undefined
        return { etag, confirmedAt: Math.max(confirmedAt, stats.mtimeMs), body }
      } catch {
        return undefined
      }
    },
    async confirm() {
      try {
        const now = new Date()
        utimesSync(file, now, now)
      } catch {
        // Ignore the failure: only the age after a restart is wrong.
      }
    },
    async write(newConfiguration) {
      try {
        const { rename, writeFile } = await import('node:fs/promises')
        const temporary = `${file}.${crypto.randomUUID()}`
        const signature = await signatureOf(newConfiguration.etag, newConfiguration.body)
        await writeFile(temporary, JSON.stringify({ signature, ...newConfiguration }), { mode: 0o600, flag: 'wx' })
        await rename(temporary, file)
      } catch (error) {
        const code = (error as { code?: unknown }).code
        warn(`The configuration could not be saved to its file (${typeof code === 'string' ? code : 'unknown'}).`)
      }
    },
  }
}
