/** Generated transcripts for tests. */
import fc from 'fast-check'
import { anyCharacter } from '../../../contract/test/any-character.ts'
import { draftRun, type ImportOptions, type RunDraft } from '../../src/record/transcript/run-draft.ts'
import { readTranscript, type Transcript } from '../../src/record/transcript/transcript.ts'

export const OPTIONS: ImportOptions = {
  agentName: 'Agent',
  agentId: null,
  runPrefix: 'import-',
  sessionField: null,
  outcomeField: 'reward',
  defaultOutcome: null,
}

export function transcriptOf(line: unknown): Transcript {
  const read = readTranscript(Buffer.from(JSON.stringify(line)))
  if (!read.ok) throw new Error(read.problem)
  return read.transcript
}

export function draftOf(line: unknown, options: Partial<ImportOptions> = {}): RunDraft {
  return draftRun(transcriptOf(line), { ...OPTIONS, ...options })
}

export function call(id: string | null, name: string, args: unknown): object {
  return { id, type: 'function', function: { name, arguments: args } }
}

const content = fc.oneof(
  fc.constant(null),
  fc.string({ unit: anyCharacter }),
  fc.array(fc.jsonValue({ maxDepth: 1 }), { maxLength: 3 }),
)
const id = fc.constantFrom('call_1', 'call_2', 'call_3')
const calls = fc.array(
  fc
    .tuple(id, fc.constantFrom('look_up', 'refund'), fc.string({ unit: anyCharacter }))
    .map(([callId, name, args]) => call(callId, name, args)),
  { maxLength: 3 },
)
const time = fc.oneof(
  fc.constant(undefined),
  fc.string(),
  fc.integer(),
  fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
)

const message = fc.oneof(
  fc.record({ role: fc.constantFrom('system', 'developer', 'user'), content, timestamp: time }),
  fc.record({
    role: fc.constant('assistant'),
    content,
    tool_calls: calls,
    usage: fc.jsonValue({ maxDepth: 1 }),
    created_at: time,
  }),
  fc.record({ role: fc.constant('tool'), content, tool_call_id: fc.option(id), name: fc.option(fc.string()) }),
)

/** Any line that is a valid transcript. */
export const anyLine = fc.record({
  messages: fc.array(message, { minLength: 1, maxLength: 40 }),
  reward: fc.constantFrom(undefined, null, 0, 1, true, 'FAILED', 'odd', 0.5),
  task: fc.jsonValue(),
})
