import { createHmac } from 'node:crypto'
import { sameHash } from '../../domain/people/credential.ts'

/** Opaque and authenticated. A cursor is bound to its tenant, list, filter or run, but not to the page size. */
export interface Cursors {
  write(walk: readonly unknown[], position: unknown): string
  read<Position>(walk: readonly unknown[], cursor: string): Position | null
}

/** `secret` is in the store, so every node and restart reads the same cursors. */
export function cursors(secret: string): Cursors {
  const sign = (walk: readonly unknown[], text: string): string =>
    createHmac('sha256', secret)
      .update(`cursor v1\n${JSON.stringify(walk)}\n${text}`)
      .digest('base64url')
  return {
    write(walk, position) {
      const text = Buffer.from(JSON.stringify(position)).toString('base64url')
      return `${text}.${sign(walk, text)}`
    },
    read<Position>(walk: readonly unknown[], cursor: string) {
      const dot = cursor.indexOf('.')
      const text = cursor.slice(0, Math.max(dot, 0))
      if (dot < 0 || !sameHash(cursor.slice(dot + 1), sign(walk, text))) return null
      return JSON.parse(Buffer.from(text, 'base64url').toString()) as Position
    },
  }
}
