import { existsSync } from 'node:fs'
import path from 'node:path'

/** 150 real agent runs from outside the project: TEST_TRANSCRIPTS, or a folder beside the checkout. */
export const REAL_TRANSCRIPTS =
  process.env['TEST_TRANSCRIPTS'] ?? path.resolve(import.meta.dirname, '../../../../shared/data/tau-airline/runs.jsonl')

/** The reason to skip tests that need them, or false. */
export const withoutRealTranscripts = existsSync(REAL_TRANSCRIPTS) ? false : 'there are no real transcripts here'
