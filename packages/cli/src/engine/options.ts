/** Flags that several commands share. */
import { InvalidArgumentError, Option, type Command } from 'commander'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { operatorClient, type OperatorClient } from './operator-client.ts'
import { readAccount } from './credentials.ts'
import { COMMON_OPTIONS } from './help.ts'
import { showExactTimes } from './display.ts'

export interface OutputOptions {
  json?: true
}

/** Options for the length of a list. */
export interface PageOptions {
  limit: number
  all?: true
}

export interface ServerOptions extends OutputOptions {
  url?: string
  tokenFile?: string
}

export interface EnvironmentOptions extends ServerOptions {
  environment?: string
}

export function withJson(command: Command): Command {
  return command.addOption(common('--json', 'print JSON instead of text'))
}

export function withUrl(command: Command): Command {
  return command.addOption(
    common('--url <address>', 'address of the server (TACHO_URL; default http://localhost:4680)'),
  )
}

/** Adds the flags of commands that call the operator API. */
export function asOperator(command: Command): Command {
  return withJson(withUrl(command))
    .addOption(
      common('--token-file <file>', 'file with the operator token, instead of TACHO_OPERATOR_TOKEN or `tacho login`'),
    )
    .addOption(common('--utc', 'print exact times in UTC on a terminal too'))
    .on('option:utc', showExactTimes)
}

/** Adds the flags of commands for one environment. */
export function inEnvironment(command: Command): Command {
  return asOperator(
    command.addOption(
      common(
        '-e, --environment <workspace/environment>',
        'names, or the id of the environment (TACHO_ENVIRONMENT, or that of `tacho use`); optional if there is only one',
      ),
    ),
  )
}

function common(flags: string, about: string): Option {
  return new Option(flags, about).helpGroup(COMMON_OPTIONS)
}

export function connect(options: ServerOptions): OperatorClient {
  const { url, token, profile } = readAccount(options)
  const environmentVariable = process.env['TACHO_ENVIRONMENT']
  const { id, workspaceId } = profile?.environment ?? {}
  const defaults =
    environmentVariable === undefined
      ? { environment: id, workspace: workspaceId }
      : { environment: environmentVariable }
  return operatorClient(url, token, defaults)
}

/** A whole number from 1 to `maximum`, for commander. */
export function wholeNumber(maximum: number): (text: string) => number {
  return (text) => {
    const value = /^[1-9][0-9]{0,15}$/.test(text) ? Number(text) : Number.NaN
    if (value <= maximum) return value
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${maximum}.`)
  }
}

const MOST = 1_000_000

/** Adds the flags of commands that list. */
export function withPages(command: Command, byDefault: number): Command {
  return command
    .option('-n, --limit <number>', 'maximum to show', wholeNumber(MOST), byDefault)
    .option('--all', 'show all, ignoring --limit')
}

/** Number of items to show; Infinity for all. */
export function mostOf({ limit, all }: PageOptions): number {
  return all ? Number.POSITIVE_INFINITY : limit
}

/** Size of a page, one more than `most` if possible, to find out whether there are more. */
export function pageSize(most: number): number {
  return Math.min(most + 1, LIMITS.operatorPageMax)
}

/** Adds the flag of commands whose effect cannot be undone. */
export function withYes(command: Command): Command {
  return command.option('-y, --yes', 'do not ask')
}

/** The networks from which a key or token is valid. The server checks them. */
export const ALLOW_FROM = 'addresses and networks from which it is valid, separated by commas; default: anywhere'

export const ANYWHERE = 'anywhere'

export const networksFrom = (networkList: string): string[] =>
  networkList.split(',').map((networkText) => networkText.trim())

/** Parses networks. A parser must not return null, which Commander turns into an empty text. */
export const networksOrAny = (networkList: string): string[] | typeof ANYWHERE =>
  networkList === ANYWHERE ? ANYWHERE : networksFrom(networkList)

export const allowedFrom = ({ allowedAddresses }: { allowedAddresses: string[] | null }): string =>
  allowedAddresses?.join(',') ?? ANYWHERE
