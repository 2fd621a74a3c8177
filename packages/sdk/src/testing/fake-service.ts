/** An in-memory service behind `fetch`. */
import type { DeployedPolicy } from '../configuration/configuration.ts'
import type { LocalPolicy } from '../guard/rules.ts'
import type { Fetch, FetchReply } from '../delivery/runtime.ts'
import { sha256 } from '../delivery/sha256.ts'

export interface RecordedEvent {
  readonly eventId: string
  readonly clientId: string
  readonly runId: string
  readonly sessionId?: string
  readonly agentId?: string
  readonly agentName: string
  readonly eventType: string
  readonly label: string
  /** Unix time in milliseconds. */
  readonly timestamp: number
  readonly spanId?: string
  readonly parentSpanId?: string
  readonly payload: Readonly<Record<string, unknown>>
}

export interface RecordedIssue {
  readonly clientRecordId: string
  readonly recordKind: 'DETECTION' | 'RECOVERY'
  readonly detectionType: string
  readonly agentId: string
  readonly runId?: string
  readonly eventId?: string
  readonly policyId?: string
  readonly promptVersionId?: string
  readonly payload: Readonly<Record<string, unknown>>
  readonly evidence: Readonly<Record<string, unknown>>
}

export interface RequestedApproval {
  readonly id: string
  readonly clientRequestId: string
  readonly toolName: string
  readonly inputHash: string
  readonly runId?: string
  readonly agentId?: string
  readonly policyId?: string
  readonly reason?: string
  readonly timeoutMs: number
  readonly status: 'PENDING' | 'APPROVED' | 'REJECTED' | 'EXPIRED'
}

export type ApprovalAnswer = 'approve' | 'reject' | 'expire'
export type Approver = ApprovalAnswer | ((request: RequestedApproval) => ApprovalAnswer | Promise<ApprovalAnswer>)

const STATUSES = { approve: 'APPROVED', reject: 'REJECTED', expire: 'EXPIRED' } as const

/** @internal */
export class FakeService {
  readonly events: RecordedEvent[] = []
  readonly issues: RecordedIssue[] = []
  readonly approvals = new Map<string, RequestedApproval>()
  approver: Approver
  policies: readonly DeployedPolicy[] = []
  prompts: Readonly<Record<string, string>> = {}
  /** Every request fails. */
  isDown = false
  readonly #eventIds = new Set<string>()
  /** Evidence of the issue records, as JSON, by client and record. */
  readonly #records = new Map<string, string>()
  #count = 0

  constructor(approver: Approver) {
    this.approver = approver
  }

  setPolicies(policies: readonly LocalPolicy[]): void {
    this.policies = policies.map((policy) => ({ description: null, ...policy }))
  }

  readonly fetch: Fetch = async (url, { method, headers, body }) => {
    if (this.isDown) throw new TypeError('fetch failed')
    const { pathname } = new URL(url)
    const path = pathname.slice(pathname.indexOf('/openapi/v1') + '/openapi/v1'.length)
    const route = `${method} ${path.split('/').slice(0, 2).join('/')}`
    switch (route) {
      case 'POST /events':
        return this.#record(await jsonOf(body, headers))
      case 'POST /issue-records':
        return this.#report(await jsonOf(body, headers))
      case 'GET /runtime-config':
        return this.#configuration(headers['if-none-match'])
      case 'POST /firewall-approvals':
        return this.#ask(await jsonOf(body, headers))
      case 'GET /firewall-approvals':
        return this.#answer(path.split('/')[2] ?? '')
      default:
        return reply(404, { status: 404, code: 'not_found' })
    }
  }

  #record(events: RecordedEvent[]): FetchReply {
    for (const event of events) {
      const key = JSON.stringify([event.runId, event.eventId])
      if (!this.#eventIds.has(key)) this.events.push(event)
      this.#eventIds.add(key)
    }
    return reply(200, { success: true, accepted: events.length, retryableEventIds: [], rejectedEventIds: [] })
  }

  #report(issue: RecordedIssue & { sdkInstanceId: string }): FetchReply {
    const key = JSON.stringify([issue.sdkInstanceId, issue.clientRecordId])
    const evidence = JSON.stringify(issue.evidence)
    const isNew = !this.#records.has(key)
    const isSame = this.#records.get(key) === evidence
    if (isNew) this.#records.set(key, evidence)
    // A claim of an approval is not an issue.
    const isClaim = issue.detectionType === 'APPROVAL_PENDING'
    if (isNew && !isClaim) this.issues.push(issue)
    return reply(202, { recordId: this.#id(), status: 'RECEIVED', isNew, ...(isClaim && !isNew && { isSame }) })
  }

  async #configuration(known: string | undefined): Promise<FetchReply> {
    const prompts = await Promise.all(
      Object.entries(this.prompts).map(async ([name, content]) => {
        const contentHash = await sha256(content)
        const [promptId, versionId] = [uuidLike(await sha256(name)), uuidLike(contentHash)]
        return { promptId, name, versionId, version: '1', content, contentHash }
      }),
    )
    const content = { prompts, policies: this.policies }
    const revision = await sha256(JSON.stringify(content))
    const etag = `W/"${revision}"`
    return known === etag ? reply(304, undefined, { etag }) : reply(200, { revision, ...content }, { etag })
  }

  async #ask(request: Omit<RequestedApproval, 'id' | 'status'>): Promise<FetchReply> {
    const same = [...this.approvals.values()].find((one) => one.clientRequestId === request.clientRequestId)
    const approval: RequestedApproval = same ?? { ...request, id: this.#id(), status: 'PENDING' }
    this.approvals.set(approval.id, approval)
    return reply(201, this.#shown(approval))
  }

  async #answer(id: string): Promise<FetchReply> {
    const approval = this.approvals.get(id)
    if (!approval) return reply(404, { status: 404, code: 'not_found' })
    if (approval.status !== 'PENDING') return reply(200, this.#shown(approval))
    const { approver } = this
    const answer = typeof approver === 'function' ? await approver(approval) : approver
    const decided = { ...approval, status: STATUSES[answer] }
    this.approvals.set(id, decided)
    return reply(200, this.#shown(decided))
  }

  #shown({ id, status, timeoutMs }: RequestedApproval): object {
    const isDecided = status === 'APPROVED' || status === 'REJECTED'
    const now = Date.now()
    const decidedAt = isDecided ? new Date(now).toISOString() : null
    return { id, status, expiresAt: new Date(now + timeoutMs).toISOString(), decidedAt, decisionReason: null }
  }

  #id(): string {
    return uuidLike((++this.#count).toString(16).padStart(32, '0'))
  }
}

function uuidLike(hex: string): string {
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*/, '$1-$2-$3-$4-$5')
}

async function jsonOf<T>(body: string | Uint8Array | undefined, headers: Record<string, string>): Promise<T> {
  if (typeof body === 'string') return JSON.parse(body) as T
  const { body: stream } = new Response(body as Uint8Array<ArrayBuffer>)
  const isPacked = headers['content-encoding'] === 'gzip'
  const unpacked = isPacked ? stream!.pipeThrough(new DecompressionStream('gzip')) : stream
  return (await new Response(unpacked).json()) as T
}

function reply(status: number, json: unknown, headers: Record<string, string> = {}): FetchReply {
  const body = json === undefined ? null : JSON.stringify(json)
  return new Response(body, { status, headers: { 'content-type': 'application/json', ...headers } })
}
