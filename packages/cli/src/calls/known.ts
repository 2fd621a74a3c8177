/** Names what a command's argument did not find, and the command that lists it. */
import { Refused } from './operator-client.ts'
import { wrongUsage, type Stop } from '../stop.ts'

/** The reply of a call about one thing, by its id in the command. */
export async function known<Reply>(
  noun: 'approval' | 'issue' | 'run',
  id: string,
  call: Promise<Reply>,
): Promise<Reply> {
  const reply = await orNull(call)
  if (reply !== null) return reply
  throw unknown(noun, id, `${noun}s list`)
}

export function unknown(noun: string, given: string, listing: string): Stop {
  return wrongUsage(`Unknown ${noun} ${JSON.stringify(given)}: \`tacho ${listing}\` shows all.`)
}

/** Null if the server has no such thing: the id is unknown, or has not the form of an id. */
export async function orNull<Reply>(call: Promise<Reply>): Promise<Reply | null> {
  try {
    return await call
  } catch (error) {
    if (error instanceof Refused && namesNothing(error.result)) return null
    throw error
  }
}

function namesNothing(result: Refused['result']): boolean {
  if (result.reason !== 'refused') return false
  const { code, errors = [] } = result.problem
  return code === 'not_found' || (errors.length > 0 && errors.every(({ path }) => /^\/\w+Id$/.test(path)))
}
