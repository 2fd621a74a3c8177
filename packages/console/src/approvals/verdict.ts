/** Whether a person's decision counted, also when its answer was lost. The page shows the server's word, never a hope. */
import type { Decision } from '@tacho/contract/approval.ts'
import type { NewDecision, OperatorApproval } from '@tacho/contract/operator/approval.ts'
import { CallError } from '@tacho/client/throwing.ts'
import { api, refusalOf } from '../api.ts'
import { exact } from '../ui/format.ts'
import { approvalWord } from './approval-status.tsx'

export interface Verdict {
  /** Null: not known. */
  counted: boolean | null
  text: string
}

type Decided = Pick<OperatorApproval, 'status' | 'decidedBy' | 'decidedAt' | 'importedAt'>

/** Rejects if the server refused for another reason than the state of the request. */
export async function decideApproval(
  params: { environmentId: string; approvalId: string },
  body: NewDecision,
  me: string | undefined,
): Promise<Verdict> {
  try {
    return verdictOn(await api.decideApproval({ params, body }), body.decision, me)
  } catch (error) {
    if (refusalOf(error)?.status === 409) return verdictOn(await api.readApproval({ params }), body.decision, me)
    if (!(error instanceof CallError && isLost(error))) throw error
  }
  try {
    const found = verdictOn(await api.readApproval({ params }), body.decision, me)
    return { ...found, text: `${found.text} The answer was lost, so the request was read again.` }
  } catch {
    return { counted: null, text: 'The answer was lost: it is not known whether your decision counted. Look again.' }
  }
}

/** The decision may have been stored without its answer. */
function isLost({ result }: CallError): boolean {
  return result.reason !== 'refused' || result.status >= 500
}

export function verdictOn(approval: Decided, wanted: Decision, me: string | undefined): Verdict {
  const { status, decidedBy, decidedAt } = approval
  if (approval.importedAt !== null) return not('An import brought this request. No agent waits for it.')
  if (status === 'PENDING') return not('The request still waits. Decide again.')
  if (status === 'EXPIRED') return not('The request expired before.')
  const word = approvalWord(status).toLowerCase()
  const isMine = decidedBy !== null && decidedBy.id === me
  if (isMine && status === wanted) return { counted: true, text: `Your decision counts: ${word}.` }
  const at = decidedAt === null ? '' : ` at ${exact(Date.parse(decidedAt))}`
  return not(`${isMine ? 'You' : (decidedBy?.name ?? 'Another person')} ${word} it${at}.`)
}

const not = (text: string): Verdict => ({ counted: false, text: `Your decision did not count. ${text}` })
