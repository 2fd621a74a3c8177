import { EVENT_TYPE_WORDS } from '@tacho/contract/words.ts'
import { Chip, type Tone } from '../ui/chip.tsx'

interface Look {
  tone: Tone
  /** Class of the bar. */
  fill: string
}

const LOOKS = new Map<string, Look>([
  ['USER_INPUT', { tone: 'green', fill: 'fill-green bg-green' }],
  ['AGENT_STEP', { tone: 'plain', fill: 'fill-edge bg-edge' }],
  ['LLM_CALL', { tone: 'violet', fill: 'fill-violet bg-violet' }],
  ['TOOL_START', { tone: 'plain', fill: 'fill-accent bg-accent' }],
  ['TOOL_CALL', { tone: 'accent', fill: 'fill-accent bg-accent' }],
  ['POLICY_DECISION', { tone: 'amber', fill: 'fill-amber bg-amber' }],
  ['ERROR', { tone: 'red', fill: 'fill-red bg-red' }],
  ['SCORE', { tone: 'plain', fill: 'fill-soft bg-soft' }],
  ['SESSION_OUTCOME', { tone: 'plain', fill: 'fill-soft bg-soft' }],
])

export function lookOf(eventType: string): Look & { word: string } {
  const look = LOOKS.get(eventType) ?? { tone: 'plain', fill: 'fill-edge bg-edge' }
  return { word: EVENT_TYPE_WORDS.get(eventType) ?? eventType, ...look }
}

export function EventType({ type }: { type: string }) {
  const { word, tone } = lookOf(type)
  return <Chip tone={tone}>{word}</Chip>
}
