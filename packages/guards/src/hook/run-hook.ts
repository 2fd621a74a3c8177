/**
 * One call of a hook. Records what the agent reports; before a tool call, lets the policies decide.
 *
 *   PreToolUse --ALLOW, a person approved--> no answer: the agent's own rules decide
 *              --WARN--> a message      --BLOCK, rejected, too late, no policies--> deny
 *
 * Events go to the spool first. The hooks after a tool, and those of the session, deliver them together with the events
 * that earlier hooks left.
 */
import { randomUUID } from 'node:crypto'
import { keepConditionsIn } from '@tacho/policy/compile.ts'
import { Tacho, ToolBlockedError, type Run } from '@tacho/sdk'
import { openState, stateRoot } from '../state.ts'
import type { HookAccount } from './account.ts'
import { AGENTS, signalsOf, type AgentName } from './agents.ts'
import { deny, notConfigured, warn } from './answer.ts'
import { closeCalls, recordStart, recordStarts, sessionRun } from './session/call-events.ts'
import { openAskedPeople } from './session/asked-people.ts'
import { isCommandOf } from './command.ts'
import { callInShort, denialText } from './denial.ts'
import { openHandoffs } from './session/handoffs.ts'
import { httpFetch } from '../http-fetch.ts'
import { watchOutage, type Outage } from './outage.ts'
import { openJudgedCalls } from './session/judged-calls.ts'
import { openKeptConditions } from './kept-conditions.ts'
import { openCalls, type StoredCall } from './session/open-calls.ts'
import { endOf, eventOf, exitCodeOf, subagentOf, toolCallOf, type HookRecord } from './record.ts'
import { openLastDecisions } from './session/last-decisions.ts'
import { hashOf, refuseAgain, Refusals } from '../refusals.ts'
import { FRESH_MS } from './session/plain-calls.ts'
import type { Looked } from './repository.ts'
import { openSessionCalls } from './session/session-calls.ts'
import { openSessionPast } from './session/session-past.ts'
import { openSessionRefusals } from './session/session-refusals.ts'
import { noteJudged, placeOf, toolCallIn, type Judged } from './tool-call.ts'
import type { Place } from './written-paths.ts'

export interface HookOptions {
  readonly agent: AgentName
  readonly approvalTimeoutMs: number
  /** Decision about tools if no policies were ever loaded. */
  readonly unconfigured: 'deny' | 'ask'
  /** The hooks are installed for one project, and do not report sessions outside of it. */
  readonly isProject: boolean
  /** Whether the hook is installed for the whole machine. */
  readonly isManaged: boolean
}

/**
 * A hook after a tool confirms policies that are older than this, and the hooks of prompts and sessions always do. A hook
 * before a tool uses policies up to FRESH_MS old, so it rarely has to wait for the service.
 */
const FRESH_AFTER_MS = 15_000
/** Longest wait for newer policies. After it, the last known ones decide. */
const CONFIGURATION_WAIT_MS = 1_000
/** Longest wait for delivery. Codex gives the end of a session 3 seconds. */
const DELIVERY_MS = 1_500
/** Longest wait for delivery after the agent stopped the hook: the agent no longer waits. */
const STOPPED_MS = 500
const OLD_CONFIGURATION_MS = 60_000

/** Policies that are older than this are not used. */
const POLICIES_MAX_AGE_MS = 7 * 24 * 3_600_000

/** The steps at which the agent's own session files are compared with the judged calls. */
const COMPARED = new Set(['SessionStart', 'Stop', 'SubagentStop', 'SessionEnd'])

/** State for the hook after a tool. It should not run, because the tool was refused. */
const NOT_ALLOWED = { inputHash: null, approvalId: null, isRefused: true }

const NOT_CONFIGURED = 'Tacho has no policies for this machine of the last 7 days, so the tool was not run.'

/** Returns the text to print. Rejects if the hook itself fails; then a tool must not run. */
export async function runHook(
  { ignored, ...account }: HookAccount,
  record: HookRecord,
  options: HookOptions,
): Promise<string> {
  const { agent } = options
  const state = openState(account)
  const outage = watchOutage(state.directory, httpFetch, record.event === 'SessionStart')
  const asked = openAskedPeople(state.directory)
  const asking = asked.watch(agent, record)
  const isBeforeTool = record.event === 'PreToolUse'
  const isAfterTool = record.event.startsWith('PostToolUse')
  const cacheFreshMs = isBeforeTool ? FRESH_MS : isAfterTool ? FRESH_AFTER_MS : 0
  const tacho = new Tacho({
    apiKey: account.apiKey,
    baseUrl: account.url,
    clientId: state.clientId,
    fetch: isBeforeTool ? withoutDelivery(outage.fetch, asking.see) : outage.fetch,
    spool: state.spool,
    configuration: { cacheFile: state.configurationFile, cacheMaxAgeMs: POLICIES_MAX_AGE_MS, cacheFreshMs },
    guard: { whenUnconfigured: 'block', configurationWaitMs: CONFIGURATION_WAIT_MS, loop: false },
    // Agents show what a hook prints on stderr only when it fails.
    onDiagnostic: ({ level, message }) => {
      if (level === 'error') process.stderr.write(`tacho: ${message}\n`)
    },
  })
  const { sessionId } = record
  const calls = openCalls(state.directory)
  const handoffs = openHandoffs(state.directory, tacho, calls)
  const called = openSessionCalls(state.directory)
  const rejected = openSessionRefusals(state.directory)
  const judged = openJudgedCalls(stateRoot())
  const decisions = openLastDecisions(state.directory)
  // Each call of a hook is a new process.
  const past = openSessionPast(state.directory)
  const toolCalls = called.count(sessionId)
  const usedBefore = { toolCalls, ...(isBeforeTool ? past.read(sessionId, toolCalls) : { labels: null }) }
  const run = sessionRun(tacho, { agent, sessionId, subagent: subagentOf(record) }, usedBefore)
  const labels = () => tacho.configuration.state.current?.toolLabels
  let answer = ''
  /** Texts for the agent's user. */
  const hookTexts: string[] = []
  let deliveryMs = DELIVERY_MS
  if (isBeforeTool) {
    // The agent waits, so the next hook delivers.
    deliveryMs = 0
    const place = placeOf(record)
    const conditions = openKeptConditions(state.directory, account)
    keepConditionsIn(conditions)
    const stop = stopSignal()
    const decided = await decide(tacho, run, record, { ...options, url: account.url, place, stop }, rejected)
    asking.end()
    // The agent stopped the hook. Deliver now: an approver must not have to wait for the next hook.
    if (stop.aborted) deliveryMs = STOPPED_MS
    answer = decided.answer
    if (decided.outcome === 'refused')
      past.add(sessionId, { ...toolCallIn(agent, record, place), isRefused: true }, labels())
    conditions.save()
    noteJudged(state.directory, record, { agent, place, ...decided })
  } else if (isAfterTool) {
    const { callId } = record
    const opened = calls.take(record)
    hookTexts.push(...recordCall(tacho, run, record, agent, opened))
    if (opened) handoffs.ended(opened, record.fields['tool_response'])
    if (callId !== '' && !judged.of(sessionId)(callId)) {
      const { reportUnjudged } = await import('./session/unjudged.ts')
      judged.add(sessionId, [callId])
      hookTexts.push(reportUnjudged(tacho, run, agent, [toolCallOf(record).toolName]))
    }
    await tacho.configuration.ready(CONFIGURATION_WAIT_MS)
    past.add(sessionId, { ...toolCallOf(record), approvalId: opened?.approvalId }, labels())
    called.add(sessionId)
  } else {
    for (const call of await closeCalls(tacho, calls, record, Date.now())) handoffs.ended(call, null)
    if (record.event.startsWith('Subagent')) handoffs.step(agent, record)
    if (record.event === 'SessionEnd') handoffs.sessionEnded(sessionId)
    const event = eventOf(record)
    if (event) run.record({ type: event.type, label: event.label, payload: event.payload, eventId: record.eventId })
  }
  if (!isBeforeTool) {
    recordStarts(tacho, calls, record)
    asked.recordLeft(tacho)
  }
  if (record.event === 'SessionStart') {
    calls.deleteOld(Date.now())
    handoffs.deleteOld(Date.now())
    called.deleteOld(Date.now())
    rejected.deleteOld(Date.now())
    past.deleteOld(Date.now())
    decisions.deleteOld(Date.now())
    judged.deleteOld(Date.now())
    hookTexts.push(...(await greeting(tacho, ignored)))
    const { reportStarted } = await import('./repository.ts')
    hookTexts.push(...reportStarted(tacho, run, state.directory, { ...lookedAt(options), cwd: placeOf(record).cwd }))
  }
  if (COMPARED.has(record.event)) {
    const { filesToCompare, recordUnjudged, takeUnjudged } = await import('./session/unjudged.ts')
    const unjudgedCalls = await takeUnjudged(agent, filesToCompare(options, record, judged), judged)
    for (const [session, unseen] of unjudgedCalls) hookTexts.push(recordUnjudged(tacho, agent, session, unseen))
  }
  if (hookTexts.length > 0) answer = warn(hookTexts.join(' '), agent)
  await tacho.ready()
  // Events that are not delivered stay in the spool.
  if (deliveryMs > 0) {
    const isNext = isAfterTool || record.event === 'UserPromptSubmit'
    const confirmed = isNext && tacho.configuration.ready(CONFIGURATION_WAIT_MS)
    await Promise.race([Promise.all([tacho.flush(deliveryMs), confirmed]), outage.noticed])
  }
  await tacho.shutdown(0)
  return answer
}

/**
 * The agent waits for a hook before a tool, so events stay in the spool until the next hook delivers them. When a
 * person is asked, events are sent at once: the approver reads the call in its event, and an issue record claims the
 * approval.
 */
function withoutDelivery(fetch: Outage['fetch'], see: (url: string, body: unknown) => void): Outage['fetch'] {
  let isAsking = false
  return (url, options) => {
    see(url, options.body)
    isAsking ||= url.includes('/firewall-approvals')
    const isRecorded = url.endsWith('/events/batch') || url.endsWith('/issue-records')
    return isRecorded && !isAsking ? Promise.reject(new Error('the next hook delivers')) : fetch(url, options)
  }
}

/** Aborts when the agent gives up: its user interrupted it, or its own timeout passed. */
function stopSignal(): AbortSignal {
  const stop = new AbortController()
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(name, () => stop.abort('cancelled'))
  return stop.signal
}

async function decide(
  tacho: Tacho,
  run: Run,
  record: HookRecord,
  {
    agent,
    approvalTimeoutMs,
    unconfigured,
    url,
    place,
    stop,
  }: HookOptions & {
    url: string
    place: Place
    stop: AbortSignal
  },
  rejected: ReturnType<typeof openSessionRefusals>,
): Promise<{ answer: string } & Pick<Judged, 'outcome' | 'facts'>> {
  const refused = (answer: string) => ({ answer, outcome: 'refused' as const, facts: NOT_ALLOWED })
  // A new key for each hook: an agent may run two hooks for one call, and a session may be continued.
  const call = { ...toolCallIn(agent, record, place), key: randomUUID() }
  const { toolName } = call
  const { sessionId } = record
  const refusals = rejected.read(sessionId)
  if (refusals) await tacho.configuration.ready(CONFIGURATION_WAIT_MS)
  const revision = (): string | null => tacho.configuration.state.current?.revision ?? null
  const refusal = refusals?.of(toolName, call.input, revision())
  if (refusal) {
    const text = `Tacho: a person rejected ${callInShort(call)} before. ${refuseAgain(run, call, refusal)}`
    return refused(deny(text, agent))
  }
  try {
    const authorization = await run.within(() => tacho.authorize(call, { approvalTimeoutMs }, stop))
    const { action, reason, inputHash, approvalId } = authorization
    const facts = { inputHash, approvalId }
    if (action !== 'WARN') return { answer: '', outcome: 'allowed', facts }
    const answer = warn(`Tacho warns about ${toolName}: ${reason ?? 'a policy matched'}.`, agent)
    return { answer, outcome: 'warned', facts }
  } catch (error) {
    if (!(error instanceof ToolBlockedError)) throw error
    const known = refusals ?? new Refusals()
    if (known.add(toolName, call.input, error, revision())) rejected.write(sessionId, known)
    if (error.code === 'not_configured') {
      const reason = `${NOT_CONFIGURED} Check that ${url} answers and that the API key of "tacho hook install" is right; then try again.`
      return refused(notConfigured(reason, agent, unconfigured))
    }
    return refused(deny(`${denialText(error, call)}${ageOf(tacho)}`, agent))
  }
}

/** Returns a sentence if the tool ran with another input than was judged: a hook or a person changed it afterwards. */
function recordCall(tacho: Tacho, run: Run, record: HookRecord, agent: AgentName, opened: StoredCall | null): string[] {
  const call = toolCallOf(record)
  const { toolName } = call
  const isFailure = endOf(record) === 'failed'
  const isShell = signalsOf(agent, toolName).includes('tool_shell')
  const exitCode = isFailure && isShell ? exitCodeOf(record) : null
  const plainHash = hashOf(toolName, call.input)
  const isChanged = opened !== null && opened.plainHash !== plainHash
  const inputHash = (isChanged ? null : opened?.inputHash) ?? plainHash
  const approvalId = opened?.approvalId ?? null
  const startEventId = opened && !opened.isRefused ? recordStart(tacho, opened) : null
  const payload = {
    ...(opened && { latency: Math.max(0, Date.now() - opened.startedAt) }),
    ...(inputHash !== null && { inputHash }),
    ...(approvalId !== null && { approvalId }),
    ...(startEventId !== null && { startEventId }),
    ...call,
    ...(exitCode !== null && { exitCode }),
  }
  const { eventId: ownId } = record
  const spanId = opened?.spanId
  const eventId = run.record({ type: 'TOOL_CALL', label: toolName, payload, eventId: ownId, spanId })
  const report = (detectionType: string, reasonCode: string): void =>
    run.within(() => tacho.reportIssue({ detectionType, payload: { toolName, reasonCode }, eventId }))
  // Failed tests and empty searches are normal. As issues, they would hide refused calls.
  if (isFailure && exitCode === null) report('TOOL_FAILED', 'tool_error')
  if (opened?.isRefused) {
    const message = `${toolName} ran although it was refused`
    run.record({
      type: 'ERROR',
      label: 'ran refused',
      payload: { code: 'ran_refused', message, toolName, inputHash },
      eventId: `${ownId}-refused`,
    })
    report('TOOL_RAN_REFUSED', 'ran_refused')
    return [`Tacho: ${message}.`]
  }
  if (!isChanged) return []
  const code = approvalId === null ? 'changed_after_decision' : 'changed_after_approval'
  const message = `${toolName} ran with another input than the one that was ${approvalId === null ? 'judged' : 'approved'}`
  const hashes = { inputHash, judgedInputHash: opened.inputHash, approvalId }
  run.record({
    type: 'ERROR',
    label: 'input changed',
    payload: { code, message, toolName, ...hashes },
    eventId: `${ownId}-changed`,
  })
  report('INPUT_CHANGED', code)
  return [`Tacho: ${message}.`]
}

/** Loads the policies, so that the first tool does not wait. Returns messages for the agent's user. */
async function greeting(tacho: Tacho, ignored: string | undefined): Promise<string[]> {
  await tacho.configuration.ready(CONFIGURATION_WAIT_MS)
  const { current, source } = tacho.configuration.state
  const ignoredTexts = ignored === undefined ? [] : [ignored]
  if (!current) {
    ignoredTexts.push(`Tacho cannot be reached. ${NOT_CONFIGURED.replace('the tool was not run', 'no tool runs')}`)
  } else if (source === 'disk') {
    ignoredTexts.push(`Tacho cannot be reached; its last known policies decide${ageOf(tacho)}.`)
  }
  return ignoredTexts
}

/** The age of the policies as text, if the service could not confirm them. */
function ageOf(tacho: Tacho): string {
  const { ageMs, source } = tacho.configuration.state
  if (source !== 'disk' || ageMs === null || ageMs < OLD_CONFIGURATION_MS) return ''
  return ` (policies of ${Math.round(ageMs / 60_000)} minutes ago)`
}

/** Facts for the repository check, if these hooks make it. */
function lookedAt({ agent, isManaged }: HookOptions): Omit<Looked, 'cwd'> {
  const { managed } = AGENTS[agent]
  const emptied = Object.keys((managed?.beside['env'] as object | undefined) ?? {}).map((name) => `env.${name}`)
  // This process has the program and the variables of the installed command.
  const program = `${(process.argv[1] ?? '').replace(/packages\/(cli\/dist\/hook\.cjs|guards\/src\/hook\/main\.ts)$/, '')}packages/cli/bin/tacho`
  const parts = { agent, program, stateFolder: process.env['TACHO_STATE_DIR'] ?? null }
  return {
    agent,
    ignored: new Set(isManaged ? [...(managed?.isAlone ? ['hooks'] : []), ...emptied] : []),
    isOurs: (command, event) => isCommandOf(parts, event, command),
  }
}
