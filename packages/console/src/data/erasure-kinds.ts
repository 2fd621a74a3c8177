import type { ErasureKind } from '@tacho/contract/data/erasure.ts'

export const KIND_WORDS: Record<ErasureKind, string> = {
  run: 'Run',
  session: 'Session',
  agent: 'Agent',
  client: 'Client',
  user: 'User',
}

/** What goes, after “This erases”. */
export const KIND_NOTES: Record<ErasureKind, string> = {
  run: 'this run',
  session: 'every run of this session',
  agent: 'every run of this agent',
  client: 'every run with an event that this client sent',
  user: 'every run of the session with this id, and with a field, every run whose payloads have the id there',
}
