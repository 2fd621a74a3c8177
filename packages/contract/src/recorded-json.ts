/** JSON whose numbers stay as they were recorded: 9007199254740993 and 1e400 read otherwise as doubles. */

interface RawJson {
  rawJSON?: (text: string) => object
  isRawJSON?: (value: unknown) => boolean
}

/** Absent in browsers of before 2025. */
const { rawJSON, isRawJSON = () => false } = JSON as RawJson

type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown

/** As JSON.parse. A number that would be written otherwise is an object that JSON.stringify writes as it was. */
export function parseRecorded(json: string): unknown {
  const keep: Reviver = (_, value, context) => {
    const source = context?.source
    const isOther = typeof value === 'number' && source !== undefined && source !== String(value)
    return isOther && rawJSON ? rawJSON(source) : value
  }
  return JSON.parse(json, keep as Parameters<typeof JSON.parse>[1])
}

export const isRecordedNumber = (value: unknown): boolean => typeof value === 'number' || isRawJSON(value)
