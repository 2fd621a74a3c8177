import { EVENT_TYPE_WORDS, type KnownEventType } from '@tacho/contract/engine/words.ts'
import { Chip, type Tone } from '../web/ui/chip.tsx'

interface Look {
  tone: Tone
  /** CSS class of the bar. */
  fill: string
}

/**
 * Colours of event types. They avoid green, red, amber and the accent, which show outcomes. An error is red because it is a
 * failure.
 */
const TYPE_LOOKS: Record<KnownEventType, Look> = {
  USER_INPUT: { tone: 'cyan', fill: 'fill-cyan bg-cyan' },
  AGENT_STEP: { tone: 'plain', fill: 'fill-edge bg-edge' },
  LLM_CALL: { tone: 'violet', fill: 'fill-violet bg-violet' },
  TOOL_START: { tone: 'plain', fill: 'fill-pink bg-pink' },
  TOOL_CALL: { tone: 'pink', fill: 'fill-pink bg-pink' },
  POLICY_DECISION: { tone: 'olive', fill: 'fill-olive bg-olive' },
  APPROVAL_WITHDRAWN: { tone: 'olive', fill: 'fill-olive bg-olive' },
  WAITING: { tone: 'plain', fill: 'fill-edge bg-edge' },
  HANDOFF: { tone: 'plain', fill: 'fill-edge bg-edge' },
  ERROR: { tone: 'red', fill: 'fill-red bg-red' },
  SCORE: { tone: 'plain', fill: 'fill-soft bg-soft' },
  SESSION_OUTCOME: { tone: 'plain', fill: 'fill-soft bg-soft' },
}
const LOOKS = new Map<string, Look>(Object.entries(TYPE_LOOKS))

export function lookOf(eventType: string): Look & { word: string } {
  const typeLook = LOOKS.get(eventType) ?? { tone: 'plain', fill: 'fill-edge bg-edge' }
  return { word: EVENT_TYPE_WORDS.get(eventType) ?? eventType, ...typeLook }
}

export function EventType({ type }: { type: string }) {
  const { word, tone } = lookOf(type)
  return <Chip tone={tone}>{word}</Chip>
}
