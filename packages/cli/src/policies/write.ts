/** `tacho policies create, push`. */
import type { PolicyAction, Severity } from '@tacho/contract/policies/runtime-config.ts'
import type { GrantRule, OnError } from '@tacho/contract/engine/words.ts'
import { POLICY_LIMITS } from '@tacho/policy/limits.ts'
import { messageOf, purposeOf, withMessage } from '@tacho/policy/message.ts'
import { connect } from '../engine/options.ts'
import { printable, printJson, printLine } from '../engine/output.ts'
import { wrongUsage } from '../engine/stop.ts'
import { findWorkspace } from '../tenants/tenants.ts'
import { assertCondition } from './check.ts'
import { findItem } from './versioned-item.ts'
import { readVersion, type WorkspaceOptions } from './list.ts'
import { readCondition } from './source-file.ts'

export interface SourceOptions {
  file?: string
  condition?: string
}

interface PushOptions extends WorkspaceOptions, SourceOptions {
  severity?: Severity
  action?: PolicyAction
  onError?: OnError
  approvers?: 1 | 2
  grants?: GrantRule
  template?: string
  name?: string
  description?: string
  message?: string
  note?: string
}

export async function createPolicy(policyId: string, options: PushOptions): Promise<void> {
  const { severity, action, onError, approvers, grants, template, name, note } = options
  const description = describe(options, null)
  const condition = await sourceOf(options)
  if (condition === null) throw wrongUsage('Give the condition with --file or --condition.')
  if (severity === undefined || action === undefined) throw wrongUsage('Give --severity and --action.')
  const client = connect(options)
  const workspace = await findWorkspace(client, options.workspace)
  const policy = await client.createPolicy({
    params: { workspaceId: workspace.id },
    body: {
      policyId,
      condition,
      severity,
      action,
      ...(onError && { onError }),
      ...(approvers && { approvers }),
      ...(grants && { grants }),
      ...(template !== undefined && { template }),
      name: name ?? null,
      description,
      note: note ?? null,
    },
  })
  if (options.json) printJson(policy)
  else printLine(`Policy ${printable(policyId)} created, version 1. It is not deployed yet.`)
}

export async function pushPolicy(policyId: string, options: PushOptions): Promise<void> {
  const { severity, action, onError, approvers, grants, template, name, note } = options
  const condition = await sourceOf(options)
  const client = connect(options)
  const workspace = await findWorkspace(client, options.workspace)
  const params = { workspaceId: workspace.id, policyId }
  const { newest } = await findItem(client, workspace.id, 'policy', policyId)
  const now = await readVersion(client, params, newest)
  const saved = await client.createPolicyVersion({
    params,
    body: {
      condition: condition ?? now.condition,
      severity: severity ?? now.severity,
      action: action ?? now.action,
      onError: onError ?? now.onError,
      ...(approvers && { approvers }),
      ...(grants && { grants }),
      ...(template !== undefined && { template }),
      name: name ?? now.name,
      description: describe(options, now.description),
      note: note ?? null,
      // The other fields are those of this version, so fail if another operator has changed the policy since.
      follows: newest,
    },
  })
  if (options.json) return printJson(saved)
  if (saved.isNew) printLine(`Version ${saved.version} of ${printable(policyId)} written. It is not deployed yet.`)
  else printLine(`Version ${saved.version} of ${printable(policyId)} already has this content; nothing was written.`)
}

/** The description contains purpose and message. One that is not given stays unchanged. */
function describe({ description, message }: PushOptions, now: string | null): string | null {
  const most = POLICY_LIMITS.messageChars
  if (message !== undefined && Array.from(message).length > most) {
    throw wrongUsage(`--message must have at most ${most} characters.`)
  }
  if (message === undefined && description === undefined) return now
  const versionNote = message ?? messageOf(description) ?? messageOf(now)
  return withMessage(purposeOf(description ?? now), versionNote)
}

/** The condition from the flag or the file. Null if none was given. */
export async function sourceOf({ file, condition }: SourceOptions): Promise<string | null> {
  if (file !== undefined && condition !== undefined) throw wrongUsage('Give either --file or --condition.')
  const source = file === undefined ? condition : await readCondition(file)
  if (source === undefined) return null
  assertCondition(file ?? 'condition', source)
  return source
}
