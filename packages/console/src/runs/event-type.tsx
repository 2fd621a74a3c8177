import { Chip, type Tone } from '../ui/chip.tsx'

interface Look {
  word: string
  tone: Tone
  /** Of its bar. */
  fill: string
}

const LOOKS = new Map<string, Look>([
  ['USER_INPUT', { word: 'User', tone: 'green', fill: 'fill-green bg-green' }],
  ['AGENT_STEP', { word: 'Step', tone: 'plain', fill: 'fill-edge bg-edge' }],
  ['LLM_CALL', { word: 'Model', tone: 'violet', fill: 'fill-violet bg-violet' }],
  ['TOOL_CALL', { word: 'Tool', tone: 'accent', fill: 'fill-accent bg-accent' }],
  ['POLICY_DECISION', { word: 'Policy', tone: 'amber', fill: 'fill-amber bg-amber' }],
  ['ERROR', { word: 'Error', tone: 'red', fill: 'fill-red bg-red' }],
  ['SESSION_OUTCOME', { word: 'Outcome', tone: 'plain', fill: 'fill-soft bg-soft' }],
])

/** Any text is a type: one that is not known shows as it is. */
export function lookOf(eventType: string): Look {
  return LOOKS.get(eventType) ?? { word: eventType, tone: 'plain', fill: 'fill-edge bg-edge' }
}

export function EventType({ type }: { type: string }) {
  const { word, tone } = lookOf(type)
  return <Chip tone={tone}>{word}</Chip>
}
