/** Makes tapes from given steps or from the events of a client. */
import { writeFileSync } from 'node:fs'
import { readTape, tapeText, type Tape, type TapeHead } from '../../src/record/tape/tape.ts'

/** The head of a run that can be replayed. */
export function madeHead(facts: Partial<TapeHead> = {}): TapeHead {
  return {
    tape: 1,
    run: 'recorded',
    agent: 'A',
    recordedBy: 'sdk',
    outcome: 'COMPLETED',
    // `writeTape` computes it.
    checksum: '',
    replayable: true,
    prompts: [],
    policies: [],
    ...facts,
  }
}

export function madeTape(steps: Tape['steps'], facts: Partial<TapeHead> = {}): Tape {
  return { head: madeHead(facts), steps }
}

/** Returns the tape as a reader of its file gets it, without members that the format does not store. */
export function readBack(tape: Tape): Tape {
  return readTape(Buffer.from(tapeText(tape)))
}

/** @returns the checksum of the tape. */
export function writeTape(file: string, tape: Tape): string {
  const text = tapeText(tape)
  writeFileSync(file, text)
  return readTape(Buffer.from(text)).head.checksum
}
