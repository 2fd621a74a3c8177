/** The text that the agent and its user read when a call is refused: who refused it, which call, and why. */
import type { ToolBlockedError } from '@tacho/sdk'
import { textOf } from './record.ts'
import type { ToolCall } from './tool-call.ts'

const CALL_CHARS = 100
const POLICY = /^policy "([^"]*)"/
/** Codes of calls that needed the approval of a person and did not get it. */
const BY_PERSON: ReadonlySet<string> = new Set([
  'approval_rejected',
  'approval_expired',
  'approval_timeout',
  'approval_pending',
  'approval_unavailable',
])

/** `Tacho: policy X denied `cat .env`: message. The tool Bash was not run. …` */
export function denialText(error: ToolBlockedError, call: ToolCall): string {
  const { code, reason, policyIds, policyMessage, modelText } = error
  const policy = POLICY.exec(reason ?? '')?.[1] ?? policyIds[0]
  const shown = callInShort(call)
  if (policy === undefined) return `Tacho did not allow ${shown}. ${modelText}`
  const did = BY_PERSON.has(code) ? 'asks a person before' : 'denied'
  // The message is what people read first, so do not repeat it.
  const policyText = policyMessage === null ? '.' : `: ${endedBy(policyMessage)}`
  const withoutPolicy =
    policyMessage === null ? modelText : modelText.replace(` The policy says: ${policyMessage}`, () => '')
  return `Tacho: policy ${visible(policy)} ${did} ${shown}${policyText} ${withoutPolicy}`
}

/** The command, the file, or the beginning of the input. */
export function callInShort({ toolName, input }: Pick<ToolCall, 'toolName' | 'input'>): string {
  const inputFields = typeof input === 'object' && input !== null ? (input as Record<string, unknown>) : {}
  const named = ['command', 'file_path', 'filePath', 'path'].map((name) => textOf(inputFields[name])).find(Boolean)
  const text = named ?? `${toolName} ${typeof input === 'string' ? input : (JSON.stringify(input) ?? '')}`
  return `\`${visible(text.length > CALL_CHARS ? `${text.slice(0, CALL_CHARS)}…` : text)}\``
}

const HIDDEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/** Removes characters that move a terminal's cursor, hide text or change its direction. */
function visible(text: string): string {
  return text.toWellFormed().replace(HIDDEN, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
}

const endedBy = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`)
