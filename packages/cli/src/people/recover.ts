import type { Command } from 'commander'
import { findDatabaseUrl, readDataDir, withDataDir, type DataDirOptions, storeAct } from '../data/store.ts'
import { withJson, type OutputOptions } from '../engine/options.ts'
import { counted, printJson, printLine } from '../engine/output.ts'
import { wrongUsage } from '../engine/stop.ts'

interface Options extends DataDirOptions, OutputOptions {
  databaseUrl?: string
  operatorToken?: true
  apiKeyFor?: string
  revokeOld?: true
}

export function addRecover(command: Command): void {
  withJson(withDataDir(command))
    .option('--database-url <url>', 'database that holds the store (TACHO_DATABASE_URL); its servers can keep running')
    .option('--operator-token', 'make a new operator token; the default')
    .option('--api-key-for <workspace/environment>', 'make a new API key with every scope')
    .option('--revoke-old', 'revoke all earlier operator tokens, or all earlier keys of that environment')
    .addHelpText(
      'after',
      `
Stop the server that uses the data directory first. Everyone with write access to the directory or the database can
run this command: protect both.

Examples:
  tacho recover --data-dir /var/lib/tacho
  tacho recover --api-key-for default/development --revoke-old --json`,
    )
    .action(recover)
}

async function recover(options: Options): Promise<void> {
  const dataDir = readDataDir(options)
  // --data-dir wins over the database variables.
  const databaseUrl = options.dataDir === undefined ? findDatabaseUrl(options.databaseUrl) : null
  const apiKeyFor = options.apiKeyFor === undefined ? undefined : splitNames(options.apiKeyFor)
  const made = await storeAct((offline) =>
    offline.recover({
      dataDir,
      databaseUrl,
      operatorToken: options.operatorToken === true || apiKeyFor === undefined,
      ...(apiKeyFor === undefined ? {} : { apiKeyFor }),
      revokeOld: options.revokeOld === true,
    }),
  )
  if (options.json) return printJson(made)
  const { operatorToken, apiKey, revokedOperatorTokens, revokedApiKeys } = made
  printLine('Save this; it is not shown again:')
  if (operatorToken !== null) printLine(`  Operator token  ${operatorToken}`)
  if (apiKey !== null) printLine(`  API key         ${apiKey}`)
  if (!options.revokeOld) return
  printLine(`Revoked: ${counted(revokedOperatorTokens, 'operator token')}, ${counted(revokedApiKeys, 'API key')}.`)
}

function splitNames(text: string): { workspace: string; environment: string } {
  const slash = text.indexOf('/')
  if (slash > 0 && slash < text.length - 1) {
    return { workspace: text.slice(0, slash), environment: text.slice(slash + 1) }
  }
  throw wrongUsage(`--api-key-for must be workspace/environment, not ${JSON.stringify(text)}.`)
}
