import { isObject, type Json, type Message } from './message.ts'

/** The tool ran and failed, or its answer never came. Recorded as the call's error. */
export class ToolFailure extends Error {
  override readonly name = 'ToolFailure'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
    // A stack would not show where the tool failed.
    delete this.stack
  }
}

/** Returns the result that the event records. @throws ToolFailure with the tool's error text if it failed. */
export function resultOf({ result, error }: Message): unknown {
  if (isObject(error)) throw new ToolFailure(scalar(error['code']), scalar(error['message']))
  if (isObject(result) && result['isError'] === true) throw new ToolFailure('tool_error', textOf(result))
  return result
}

function scalar(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

function textOf({ content }: Json): string {
  const parts = Array.isArray(content) ? content.filter(isObject) : []
  return parts.map(({ text }) => (typeof text === 'string' ? text : '')).join('\n')
}
