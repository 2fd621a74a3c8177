/** `tacho login, logout, whoami`. */
import type { Command } from 'commander'
import { operatorClient } from '../engine/operator-client.ts'
import { operatorToken, readAccount } from '../engine/credentials.ts'
import { readUrl } from '../engine/server-address.ts'
import { asOperator, withJson, type OutputOptions, type ServerOptions, connect } from '../engine/options.ts'
import { DEFAULT_PROFILE, knownProfiles, readProfiles, writeProfiles } from '../engine/profiles.ts'
import { wrongUsage } from '../engine/stop.ts'
import { printable, printJson, printLine } from '../engine/output.ts'
import { askSecret } from '../engine/ask.ts'

interface LoginOptions extends ServerOptions {
  profile: string
}

interface LogoutOptions extends OutputOptions {
  profile?: string
}

export function addLogin(command: Command): void {
  asOperator(command)
    .option('--profile <name>', 'name under which to keep it', DEFAULT_PROFILE)
    .addHelpText(
      'after',
      `
Asks for the operator token, or reads it from standard input, --token-file or TACHO_OPERATOR_TOKEN. The token is kept
in ~/.config/tacho/profiles.json, which only you can read, and is sent to this address only.

Examples:
  tacho login
  tacho login --url https://tacho.example.com --profile work
  tacho login --token-file token.txt`,
    )
    .action(login)
}

export function addLogout(command: Command): void {
  withJson(command)
    .option('--profile <name>', 'the profile to forget; without it, the one in use')
    .addHelpText('after', '\nThe token stays valid: revoke it with `tacho tokens revoke`.')
    .action(logout)
}

async function login(options: LoginOptions): Promise<void> {
  const url = readUrl(options.url)
  const isGiven = options.tokenFile !== undefined || process.env['TACHO_OPERATOR_TOKEN'] !== undefined
  const token = isGiven
    ? readAccount(options).token
    : operatorToken('The token', await askSecret(`Operator token for ${url}: `))
  const me = await operatorClient(url, token).readMe()
  const profiles = readProfiles()
  const earlier = profiles.byName.get(options.profile)
  // Keep the environment in use only if the server is the same.
  const environment = earlier?.url === url ? earlier.environment : null
  profiles.byName.set(options.profile, { url, token, environment })
  writeProfiles({ ...profiles, current: options.profile })
  if (options.json) return printJson({ profile: options.profile, url, name: me.name })
  printLine(`Signed in to ${url} as ${printable(me.name)}. Profile: ${printable(options.profile)}.`)
}

function logout(options: LogoutOptions): void {
  const profiles = readProfiles()
  const name = options.profile ?? profiles.current
  if (!profiles.byName.delete(name))
    throw wrongUsage(`No profile ${JSON.stringify(name)}: ${knownProfiles(profiles.byName)}.`)
  writeProfiles(profiles)
  if (options.json) return printJson({ profile: name })
  printLine(`Forgot the token of the profile ${printable(name)}.`)
}

export function addWhoami(command: Command): void {
  asOperator(command).addHelpText('after', '\nExample:\n  tacho whoami --json').action(whoami)
}

async function whoami(options: ServerOptions): Promise<void> {
  const me = await connect(options).readMe()
  if (options.json) return printJson(me)
  printLine(`${me.kind === 'token' ? 'Operator token' : 'Operator'} ${printable(me.name)} (${me.id})`)
  if (me.installation) printLine('  runs the whole installation')
  if (me.everywhere !== null) printLine(`  ${me.everywhere} of every workspace`)
  for (const { name, role } of me.workspaces) printLine(`  ${role} of workspace ${printable(name)}`)
}
