/** The address of the server: --url, TACHO_URL, the profile in use, or the default. */
import { chosenProfile, type Variables } from './profiles.ts'
import { wrongUsage } from './stop.ts'

export const DEFAULT_URL = 'http://localhost:4680'

/** The server's address for commands without an operator token: the flag, the variable, or the profile in use. */
export function knownUrl(flag: string | undefined, variables: Variables = process.env): string {
  const isNamed = flag !== undefined || variables['TACHO_URL'] !== undefined
  return isNamed ? readUrl(flag, variables) : (chosenProfile(variables)?.profile.url ?? DEFAULT_URL)
}

/** The origin of the server, plus the path of a proxy if any, without a trailing slash. */
export function readUrl(flag: string | undefined, variables: Variables = process.env): string {
  const [name, given] = flag === undefined ? ['TACHO_URL', variables['TACHO_URL']] : ['--url', flag]
  if (given === undefined) return DEFAULT_URL
  const url = URL.parse(trimmedText(name, given, `leave it out for ${DEFAULT_URL}`))
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw wrongUsage(`${name} must be an http or https address such as ${DEFAULT_URL}, not ${JSON.stringify(given)}.`)
  }
  if (url.username !== '' || url.password !== '') {
    throw wrongUsage(`${name} must not contain a user name or password.`)
  }
  return url.origin + url.pathname.replace(/\/+$/, '')
}

/** The trimmed text. `name`: its source, for the error; `remedy`: what to do if it is empty. */
export function trimmedText(name: string, sourceText: string, remedy: string): string {
  const text = sourceText.trim()
  if (text === '') throw wrongUsage(`${name} is empty: ${remedy}.`)
  return text
}
