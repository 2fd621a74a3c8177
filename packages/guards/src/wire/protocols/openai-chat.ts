import { fields, text, type Fields } from '../../../../sdk/src/integrations/host.ts'
import { CHAT } from '../../../../sdk/src/integrations/openai-methods.ts'
import { callKey, listOf, namedCall, type NamedCall, type Protocol } from './protocol.ts'

export const OPENAI_CHAT: Protocol = {
  ...CHAT,
  name: 'openai-chat',
  refusing: {
    named: ({ choices }) =>
      listOf(choices).flatMap(({ delta, message }) =>
        [delta, message].flatMap((each) => listOf(fields(each)['tool_calls']).flatMap(namedIn)),
      ),
    whole: (answer, refusals) => ({
      ...answer,
      choices: listOf(answer['choices']).map((choice) => wholeChoice(choice, refusals)),
    }),
    stream(refusals) {
      const choices = new Map<unknown, StreamedChoice>()
      return (event) => {
        if (event['choices'] === undefined) return undefined
        return [{ ...event, choices: listOf(event['choices']).map((choice) => pieceOf(choices, choice, refusals)) }]
      }
    },
  },
}

const keyIn = (call: Fields): string => callKey(call['id'], fields(call['function'] ?? call['custom'])['name'])

/** Includes both forms of a call, because a client may read either. */
function namedIn({ id, function: called, custom }: Fields): NamedCall[] {
  return [called, custom].flatMap((form) => namedCall(id, fields(form)['name']) ?? [])
}

function wholeChoice(choice: Fields, refusals: ReadonlyMap<string, string>): Fields {
  const { tool_calls: rawCalls, ...message } = fields(choice['message'])
  const calls = listOf(rawCalls)
  const keptCalls = calls.filter((call) => !refusals.has(keyIn(call)))
  if (keptCalls.length === calls.length) return choice
  const texts = calls.flatMap((call) => refusals.get(keyIn(call)) ?? [])
  const content = [text(message['content']), ...texts].filter(Boolean).join('\n')
  const shownMessage = { ...message, content, ...(keptCalls.length > 0 && { tool_calls: keptCalls }) }
  return { ...choice, message: shownMessage, ...(keptCalls.length === 0 && { finish_reason: 'stop' }) }
}

interface StreamedChoice {
  /** Maps a call's index in the upstream's answer to its new one; undefined for a refused call. */
  readonly indexes: Map<unknown, number | undefined>
  kept: number
}

/** Renumbers the calls after a refused one, because clients keep calls in a list. */
function pieceOf(choices: Map<unknown, StreamedChoice>, choice: Fields, refusals: ReadonlyMap<string, string>): Fields {
  const streamed = choices.get(choice['index']) ?? { indexes: new Map(), kept: 0 }
  choices.set(choice['index'], streamed)
  const { tool_calls: rawCalls, ...delta } = fields(choice['delta'])
  const texts: unknown[] = [text(delta['content'])]
  const calls = listOf(rawCalls).flatMap((call) => {
    const { index } = call
    if (!streamed.indexes.has(index)) {
      const refusal = refusals.get(keyIn(call))
      if (refusal !== undefined) texts.push(`${refusal}\n`)
      streamed.indexes.set(index, refusal === undefined ? streamed.kept++ : undefined)
    }
    const moved = streamed.indexes.get(index)
    return moved === undefined ? [] : [{ ...call, index: moved }]
  })
  const joinedText = texts.filter(Boolean).join('')
  const shownDelta = {
    ...delta,
    ...(joinedText !== '' && { content: joinedText }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
  const isLast = choice['finish_reason'] === 'tool_calls' && streamed.kept === 0 && streamed.indexes.size > 0
  return { ...choice, delta: shownDelta, ...(isLast && { finish_reason: 'stop' }) }
}
