import type { StoreCheck } from './store.ts'

const MIB = 1_048_576
/** Reading a larger store would take too much of the disk or database from the service. */
export const CHECKED_BYTES = 1_024 * MIB

export function mib(bytes: number): string {
  return `${Math.round(bytes / MIB).toLocaleString('en')} MiB`
}

const HOW =
  'Check a copy: `tacho backup verify <file>` on a backup; of a database, doctor at a server of a restored copy'

export function tooLargeToCheck(name: string, bytes: number): StoreCheck {
  return {
    name,
    ok: true,
    detail: `Not checked: ${mib(bytes)} is more than ${mib(CHECKED_BYTES)}, and reading it all would slow the service. ${HOW}`,
  }
}

export function queueCheck({ queuedBytes, queueBytes }: Record<'queuedBytes' | 'queueBytes', number>, where = '') {
  const detail = `${mib(queuedBytes)} of at most ${mib(queueBytes)} of events wait for a commit${where}`
  return { name: 'queue', ok: queuedBytes < queueBytes / 2, detail }
}
