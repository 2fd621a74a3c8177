/** Calls about approvals over HTTP, for tests. */
import { randomUUID } from 'node:crypto'
import type { Approval, Decision } from '@tacho/contract/approvals/approval.ts'
import type { OperatorApproval } from '@tacho/contract/approvals/operator-approval.ts'
import { eventually } from './eventually.ts'
import type { Answer, Service } from './service.ts'

export const HASH = 'ab'.repeat(32)
export const CLIENT = 'client-1'

export interface ApprovalCalls {
  ask(fields?: Record<string, unknown>, headers?: Record<string, string>): Promise<Answer<Approval>>
  read(id: string, query?: string, signal?: AbortSignal): Promise<Answer<Approval>>
  decide(id: string, decision: Decision, reason?: string): Promise<Answer<OperatorApproval>>
  /** Waits until that many long polls and streams are open. */
  untilFollowers(count: number): Promise<void>
}

/** The calls of one client instance and of an operator. */
export function approvalCalls(service: Service): ApprovalCalls {
  const headers = { 'x-service-client-id': CLIENT }
  return {
    ask: (fields = {}, more = {}) =>
      service.api('/firewall-approvals', {
        body: { clientRequestId: randomUUID(), toolName: 'transfer', inputHash: HASH, ...fields },
        headers: { ...headers, ...more },
      }),
    async read(id, query = '', signal) {
      if (!signal) return service.api(`/firewall-approvals/${id}${query}`, { headers })
      const reply = await fetch(`${service.url}/openapi/v1/firewall-approvals/${id}${query}`, {
        headers: { ...headers, 'x-api-key': service.apiKey },
        signal,
      })
      const text = await reply.text()
      return { status: reply.status, headers: reply.headers, text, body: JSON.parse(text) as Approval }
    },
    decide: (id, decision, reason) =>
      service.operator(`/environments/${service.environmentId}/approvals/${id}/decision`, {
        body: { decision, reason },
      }),
    async untilFollowers(count) {
      const isReached = new RegExp(`^tacho_approval_followers ${count}$`, 'm')
      await eventually(async () => isReached.test((await service.call('/metrics')).text), `${count} followers`)
    },
  }
}
