/** Credentials of client commands, and the address that they are for. */
import { readFileSync } from 'node:fs'
import { wrongUsage } from './stop.ts'
import { chosenProfile, type Profile, type Variables } from './profiles.ts'
import { readUrl, trimmedText } from './server-address.ts'

export interface Account {
  url: string
  token: string
  /** Null if the token does not come from a profile. */
  profile: Profile | null
}

/**
 * Address and operator token: from --token-file or TACHO_OPERATOR_TOKEN, else from the profile in use. The token is never
 * in a flag, because other users can read the arguments of a process.
 */
export function readAccount(
  { url, tokenFile }: { url?: string | undefined; tokenFile?: string | undefined },
  variables: Variables = process.env,
): Account {
  if (tokenFile !== undefined || variables['TACHO_OPERATOR_TOKEN'] !== undefined) {
    return { url: readUrl(url, variables), token: readOperatorToken(tokenFile, variables), profile: null }
  }
  const chosen = chosenProfile(variables)
  if (chosen === null) {
    throw wrongUsage(
      'No operator token: run `tacho login`, set TACHO_OPERATOR_TOKEN, or pass a file with --token-file ' +
        "(the server's first start prints a token; `tacho recover` makes a new one).",
    )
  }
  const { name, profile } = chosen
  const isNamed = url !== undefined || variables['TACHO_URL'] !== undefined
  const wanted = isNamed ? readUrl(url, variables) : profile.url
  if (wanted === profile.url) return { url: wanted, token: profile.token, profile }
  throw wrongUsage(
    `The token of the profile ${JSON.stringify(name)} is for ${profile.url}, not for ${wanted}: run \`tacho login --url ${wanted}\`.`,
  )
}

function readOperatorToken(tokenFile: string | undefined, variables: Variables): string {
  if (tokenFile !== undefined) return operatorToken('The file of --token-file', fileText(tokenFile))
  return operatorToken('TACHO_OPERATOR_TOKEN', variables['TACHO_OPERATOR_TOKEN'] ?? '')
}

/** The API key of commands that record or guard. */
export function readApiKey(variables: Variables = process.env): string {
  const keyVariable = variables['TACHO_API_KEY']
  if (keyVariable === undefined) {
    throw wrongUsage(
      "No API key: set TACHO_API_KEY (the server's first start prints a key; `tacho keys create` makes one).",
    )
  }
  const key = credential('TACHO_API_KEY', keyVariable)
  if (key.startsWith(OPERATOR_TOKEN)) {
    throw wrongUsage('TACHO_API_KEY is an operator token: recording needs an API key (`tacho keys create` makes one).')
  }
  return key
}

/** Prefixes of credentials, which show their kind. */
const OPERATOR_TOKEN = 'tacho-operator_'
const API_KEY = 'tacho_'

/** Checks that a text looks like an operator token. `name` is its source, for the error. */
export function operatorToken(name: string, credentialText: string): string {
  const token = credential(name, credentialText)
  if (token.startsWith(API_KEY)) {
    throw wrongUsage(
      `${name} is an API key: operator commands need an operator token (\`tacho recover\` makes a new one).`,
    )
  }
  return token
}

function credential(name: string, credentialText: string): string {
  const text = trimmedText(name, credentialText, 'unset it or fill it in')
  if (!/^[\x21-\x7e]+$/.test(text)) throw wrongUsage(`${name} contains characters that no key or token has.`)
  return text
}

function fileText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw wrongUsage(
      `The token file ${JSON.stringify(file)} cannot be read (${(error as NodeJS.ErrnoException).code}).`,
    )
  }
}
