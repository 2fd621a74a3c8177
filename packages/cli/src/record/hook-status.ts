/** `tacho hook status`: what guards the agents in this folder. */
import { accountFile, readAccount, type HookAccount } from '@tacho/guards/hook/account.ts'
import { AGENT_NAMES } from '@tacho/guards/hook/agents.ts'
import { managedAccountFile } from '@tacho/guards/hook/managed.ts'
import { readStatus, type HookStatus } from '@tacho/guards/hook/status.ts'
import { allItems } from '@tacho/client/items.ts'
import { duration } from '@tacho/contract/engine/format.ts'
import { allWorkspaces, environmentsOf } from '../tenants/tenants.ts'
import { connect } from '../engine/options.ts'
import { counted, printable, printLine, printTable, type Column } from '../engine/output.ts'
import { toned } from '../engine/display.ts'
import { commandsIn, PLACES } from './hook-check.ts'

interface Installed {
  agent: string
  place: string
  file: string
}

export async function status(): Promise<void> {
  const installed = AGENT_NAMES.flatMap((agent): Installed[] =>
    PLACES.flatMap((place) => {
      const { file, commands } = commandsIn(agent, place)
      return commands.length > 0 ? [{ agent, place, file }] : []
    }),
  )
  const isManaged = installed.some(({ place }) => place === 'managed')
  const account = readAccount(isManaged ? managedAccountFile() : accountFile())
  if (account === null) {
    printLine('No address and key are known here, so no tool runs under these hooks: tacho hook install claude-code')
    process.exitCode = 1
    return
  }
  const environment = await environmentOf(account)
  const hookState = await readStatus(account, process.cwd())
  if (hookState.policies === null || installed.length === 0) process.exitCode = 1
  print(hookState, account, environment, installed)
}

function print(
  { project, policies, source, ageMs, last, waiting }: HookStatus,
  { url }: HookAccount,
  environment: string | null,
  installed: readonly Installed[],
): void {
  const now = Date.now()
  const hooks = installed.map(({ agent, place }) => `${agent} (${place})`).join(', ')
  printLine(`Project      ${printable(project)}`)
  printLine(`Hooks        ${hooks || toned('red', 'none: tools run unchecked. tacho hook install claude-code')}`)
  printLine(
    `Service      ${printable(url)}, ${source === 'service' ? 'answers' : toned('red', 'did not confirm the policies')}`,
  )
  printLine(
    `Environment  ${environment === null ? 'that of the key; `tacho login` lets this command name it' : printable(environment)}`,
  )
  printLine(
    `Decided      ${last === null ? 'nothing in this project yet' : `${last.outcome} ${printable(last.toolName)} of ${last.agent}, ${duration(now - last.at)} ago`}`,
  )
  printLine(
    `Waiting      ${waiting.since === null ? 'nothing' : `${counted(waiting.records, 'record')} at most, since ${duration(now - waiting.since)}; the next hook delivers them`}`,
  )
  if (policies === null) return printLine(`Policies     ${toned('red', 'none are known, so every tool is denied')}`)
  const age = source === 'service' || ageMs === null ? 'now' : `${duration(ageMs)} ago`
  const inForce = policies.length === 0 ? 'none are deployed, so every tool may run' : String(policies.length)
  printLine(`Policies     ${inForce}, confirmed ${age}`)
  if (policies.length === 0) return
  printLine()
  const columns: Column[] = [{ title: 'POLICY' }, { title: 'SEVERITY', as: 'word' }, { title: 'ACTION', as: 'word' }]
  printTable(
    columns,
    policies.map(({ name, severity, action }) => [name, severity, action]),
  )
}

/**
 * The environment of a key, found by the key's public part. Null: unknown, for example because no operator is signed
 * in.
 */
async function environmentOf({ url, apiKey }: HookAccount): Promise<string | null> {
  const keyId = /^tacho_([^_]+)_/.exec(apiKey)?.[1]
  try {
    const client = connect({ url })
    for (const workspace of await allWorkspaces(client)) {
      for (const environment of await environmentsOf(client, workspace)) {
        const keys = await allItems(client.listApiKeys, { params: { environmentId: environment.id } })
        if (keys.some(({ id }) => id === keyId)) return `${workspace.name}/${environment.name}`
      }
    }
  } catch {
    // No operator is signed in, or the service is down.
  }
  return null
}
