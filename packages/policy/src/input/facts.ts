import { copyJson, NotPlainJson } from './json.ts'
import { POLICY_LIMITS } from '../limits.ts'
import { timestampOfMilliseconds } from '../evaluation/time.ts'
import { toolNameOf } from '../language/tool-name.ts'
import { Failure, isMap, type FactReader, Unreadable, type Value } from '../evaluation/value.ts'
import { type Facts, VARIABLE_NAMES, type VariableName } from '../language/variables.ts'

/** Name of the fact that replaces `tool.name` in a condition that reads `tool.server`. */
const OWN = "tool's own name"

export const NO_HISTORY = new Failure('the history of the run is not known')
const NO_OUTPUT = new Failure('the output of a tool is not known before it runs')

const READERS: Record<VariableName | typeof OWN, (facts: Facts) => Value | Failure | undefined> = {
  'tool.name': ({ tool }) => text(tool.name),
  'tool.server': ({ tool }) => nameParts(tool)?.server,
  [OWN]: ({ tool }) => nameParts(tool)?.own,
  'tool.input': ({ tool }) => input(tool.input),
  'tool.annotations': ({ tool }) => input(tool.annotations),
  'tool.labels': ({ tool }) => texts(tool.labels),
  'tool.output': ({ tool }) => output(tool.output),
  'agent.id': ({ agent }) => text(agent?.id),
  'agent.name': ({ agent }) => text(agent?.name),
  'run.id': ({ run }) => text(run?.id),
  'run.cost': ({ run }) => double(run?.cost),
  'run.totalTokens': ({ run }) => int(run?.totalTokens),
  'run.toolCalls': ({ run }) => int(run?.toolCalls),
  'run.labels': ({ run }) => run?.history?.labels ?? NO_HISTORY,
  'run.calls': ({ run }) => run?.history?.calls ?? NO_HISTORY,
  'session.id': ({ session }) => text(session?.id),
  'risk.signals': ({ risk }) => texts(risk?.signals),
  now: ({ now }) => timestampOfMilliseconds(now),
}

/** The slot of the tool's own name, for conditions that read `tool.server`. */
export const OWN_NAME = VARIABLE_NAMES.length

/**
 * Reads each fact at its first use and caches it. A condition without `tool.input` neither copies it nor fails because of
 * it. The slot of a variable is its index in VARIABLE_NAMES. Never throws.
 */
export function factReader(facts: Facts): FactReader {
  const known: (Value | Failure | undefined)[] = []
  const fact = (slot: number) =>
    (known[slot] ??= read(slot === OWN_NAME ? OWN : (VARIABLE_NAMES[slot] as VariableName), facts))
  return { fact, history: historyOf(facts) }
}

function historyOf(facts: Facts): FactReader['history'] {
  try {
    return facts.run?.history ?? undefined
  } catch {
    return undefined
  }
}

function read(name: keyof typeof READERS, facts: Facts): Value | Failure {
  const NoFact = name === 'tool.input' ? Unreadable : Failure
  try {
    return READERS[name](facts) ?? new NoFact(`the fact ${name} has the wrong type`)
  } catch (error) {
    const reason = error instanceof NotPlainJson ? error.reason : 'cannot be read'
    return new NoFact(error instanceof NotPlainJson ? `a value in ${name} ${reason}` : `the fact ${name} ${reason}`)
  }
}

function nameParts({ name, server }: Facts['tool']) {
  const [givenName, givenServer] = [text(name), text(server)]
  return givenName === undefined || givenServer === undefined ? undefined : toolNameOf(givenName, givenServer)
}

function text(value: unknown): string | undefined {
  const factValue = value ?? ''
  return typeof factValue === 'string' ? factValue : undefined
}

function double(value: unknown): number | undefined {
  const factValue = value ?? 0
  return Number.isFinite(factValue) ? (factValue as number) : undefined
}

function int(value: unknown): bigint | undefined {
  const factValue = value ?? 0
  return Number.isSafeInteger(factValue) ? BigInt(factValue as number) : undefined
}

function input(value: unknown): Value | undefined {
  const copied = copyJson(value ?? {}, { values: POLICY_LIMITS.inputValues, levels: POLICY_LIMITS.inputLevels })
  return isMap(copied) ? copied : undefined
}

function output(value: unknown): Value | Failure {
  if (value === undefined) return NO_OUTPUT
  return copyJson(value, { values: POLICY_LIMITS.inputValues, levels: POLICY_LIMITS.inputLevels })
}

function texts(value: unknown): readonly string[] | undefined {
  const factValue = value ?? []
  if (!Array.isArray(factValue) || factValue.length > POLICY_LIMITS.inputValues) return undefined
  const copies: unknown[] = [...factValue] // holes become undefined
  return copies.every((element) => typeof element === 'string') ? copies : undefined
}
