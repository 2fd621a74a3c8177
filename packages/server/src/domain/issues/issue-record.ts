import { IssueRecordInput } from '@tacho/contract/issues/issue-record.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { NewIssueRecord } from '../../storage/issues/issue-records.ts'
import { memberSlices, type JsonSlice } from '../record/json-slices.ts'
import { orNull, pick } from '../web/shown.ts'
import { UNSTORABLE, unstorableField } from '../web/text.ts'

export interface FieldFault {
  field: string
  message: string
}

type Receipt = Pick<NewIssueRecord, 'id' | 'environmentId' | 'receivedAt'>

const FIELDS = Object.keys(IssueRecordInput.properties) as (keyof IssueRecordInput)[]
const OBJECTS = ['payload', 'evidence'] as const

/** `text` is the JSON source of `input`: payload and evidence are stored exactly as sent. */
export function toNewIssueRecord(input: IssueRecordInput, text: string, receipt: Receipt): NewIssueRecord | FieldFault {
  const badText = unstorableField(input, FIELDS)
  if (badText !== null) return { field: badText, message: UNSTORABLE }
  const [payload, evidence] = memberSlices(text, OBJECTS)
  for (const [index, slice] of [payload, evidence].entries()) {
    if (slice && slice.levels > LIMITS.payloadDepthLevels) {
      const message = `is nested more than ${LIMITS.payloadDepthLevels} levels deep`
      return { field: OBJECTS[index] ?? '', message }
    }
  }
  return {
    ...receipt,
    ...pick(input, 'sdkInstanceId', 'clientRecordId', 'recordKind', 'detectionType', 'agentId'),
    ...orNull(input, 'runId', 'sessionId', 'eventId', 'policyId'),
    promptVersionId: input.promptVersionId?.toLowerCase() ?? null,
    // -0 is in range but must not be stored as -0.
    detectedAt: input.detectedAt + 0,
    payload: sliceText(text, input.payload, payload),
    evidence: sliceText(text, input.evidence, evidence),
  }
}

export function isFieldFault(value: object): value is FieldFault {
  return 'field' in value
}

function sliceText(text: string, value: object | null | undefined, slice: JsonSlice | null | undefined): string {
  return value && slice ? text.slice(slice.start, slice.end) : '{}'
}
