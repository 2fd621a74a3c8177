/**
 * An index of a tape's tool calls by tool and input. It finds a call among thousands at once, in whatever order the
 * agent asks. An input with masked members is found by its other members, and then compared.
 *
 * Also tells which approvals led to no call: a stop, or the end of the caller, may come between decision and call.
 */
import { hash } from 'node:crypto'
import { STOP_POLICY } from '@tacho/contract/engine/words.ts'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { differencesOf, isIgnored, MARK, type Ignored } from './compare.ts'
import type { ApprovalStep, Tape, ToolStep } from './tape.ts'

export interface AskedCall {
  tool: string
  input: unknown
  agent?: string | undefined
}

const INPUT = ['tool', 'input']

/** Steps that have the same masked members. */
interface Shape {
  ignored: Ignored
  steps: Map<string, ToolStep[]>
}

export class RecordedCalls {
  readonly #ignored: Ignored
  /** By tool, then by the masked paths. */
  readonly #shapes = new Map<string, Map<string, Shape>>()
  readonly #used = new Set<ToolStep>()

  /** @param steps in their order. */
  constructor(steps: readonly ToolStep[], ignored: Ignored) {
    this.#ignored = ignored
    for (const step of steps) {
      const masked = maskedPaths(step.input, INPUT)
      const shapes = entry(this.#shapes, step.tool, () => new Map<string, Shape>())
      const shape = entry(shapes, JSON.stringify(masked), () => ({
        ignored: [...this.#of(step.tool), ...masked],
        steps: new Map<string, ToolStep[]>(),
      }))
      const key = shortKey(step.input, shape.ignored)
      for (const name of [key, withAgent(key, step.agent)]) entry(shape.steps, name, () => []).push(step)
    }
  }

  use(step: ToolStep): void {
    this.#used.add(step)
  }

  /** The first equal call for which `mayCome` is true; one of the same agent if possible. */
  find(asked: AskedCall, mayCome: (step: ToolStep) => boolean): { step?: ToolStep; hasEqual: boolean } {
    let hasEqual = false
    const candidates = [...(this.#shapes.get(asked.tool)?.values() ?? [])].map(({ ignored, steps }) => {
      const key = shortKey(asked.input, ignored)
      return [withAgent(key, asked.agent), key].map((name) => steps.get(name) ?? [])
    })
    for (const ofAgent of [0, 1]) {
      let first: ToolStep | undefined
      for (const lists of candidates) {
        const list = lists[ofAgent] ?? []
        // Skip used steps. Each is skipped once, because it leaves the list.
        while (list[0] && this.#used.has(list[0])) list.shift()
        for (const step of list) {
          if (this.#used.has(step) || this.differences(step, asked.input).length > 0) continue
          hasEqual = true
          if (!mayCome(step)) continue
          if (!first || step.step < first.step) first = step
          break
        }
      }
      if (first) return { step: first, hasEqual }
    }
    return { hasEqual }
  }

  differences({ tool, input }: ToolStep, now: unknown) {
    return differencesOf(input, now, INPUT, this.#of(tool))
  }

  #of(tool: string): Ignored {
    return this.#ignored.map(([of = '', ...path]) => [of === tool ? 'tool' : of, ...path])
  }
}

function entry<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const value = map.get(key) ?? make()
  map.set(key, value)
  return value
}

/** Appends the agent to a key after a line break, which keys do not contain. */
function withAgent(key: string, agent: string | undefined): string {
  return agent === undefined ? `${key}\n` : `${key}\n ${agent}`
}

const KEY_CHARS = 64

/** Hashes a long key: the index would store each long input twice. Found calls are compared in full. */
function shortKey(input: unknown, ignored: Ignored): string {
  const key = keyOf(input, ignored)
  return key.length > KEY_CHARS ? hash('sha256', key, 'base64') : key
}

/** Equal values have equal keys. Ignored members are left out, also at the end of a list. */
function keyOf(value: unknown, ignored: Ignored, path: readonly string[] = INPUT): string {
  if (isIgnored(path, ignored)) return ''
  if (Array.isArray(value)) {
    const items = value.map((item: unknown, at) => keyOf(item, ignored, [...path, String(at)]))
    while (items.at(-1) === '') items.pop()
    return `[${items.join()}]`
  }
  if (!isObject(value)) return JSON.stringify(value) ?? ''
  const members = Object.keys(value)
    .sort()
    .map((name) => [name, keyOf(value[name], ignored, [...path, name])])
  return `{${members.flatMap(([name, member]) => (member === '' ? [] : [`${JSON.stringify(name)}:${member}`])).join()}}`
}

/** Whether an input has masked parts. Its hash then proves nothing. */
export function hasMask(input: unknown): boolean {
  return maskedPaths(input, INPUT).length > 0
}

function maskedPaths(value: unknown, path: readonly string[]): string[][] {
  if (typeof value === 'string') return MARK.test(value) ? [[...path]] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) => maskedPaths(member, [...path, name]))
}

/** By policy id: the number of approvals that were decided before the stop first blocked a call. */
export function stopsOf({ steps }: Tape): Map<string, number> {
  const stops = new Map<string, number>()
  let approvals = 0
  for (const step of steps) {
    if (step.kind === 'approval') approvals++
    const policies = step.kind === 'decision' ? step.policies : []
    for (const id of policies) if (id.startsWith(STOP_POLICY) && !stops.has(id)) stops.set(id, approvals)
  }
  return stops
}

/** Approvals whose call neither ran nor was judged again: a stop prevented it, or the caller was gone. */
export function approvalsThatRanNothing({ steps }: Tape): Set<ApprovalStep> {
  const approvals = steps.filter((step) => step.kind === 'approval' && step.status === 'APPROVED')
  const ranNothing = new Set<ApprovalStep>()
  if (approvals.length === 0) return ranNothing
  const [asked, last] = [new Map<number, string>(), new Map<string, number>()]
  for (const step of steps) {
    if (step.kind !== 'tool' && step.kind !== 'decision') continue
    const call = JSON.stringify([step.tool, step.input])
    // An approval has the same place as its decision.
    if (step.kind === 'decision') asked.set(step.from, call)
    last.set(call, step.from)
  }
  for (const approval of approvals) {
    const call = asked.get(approval.from)
    if (call !== undefined && (last.get(call) ?? 0) <= approval.from) ranNothing.add(approval as ApprovalStep)
  }
  return ranNothing
}
