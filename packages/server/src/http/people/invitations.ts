/**
 * Opening the link only shows a page, whose post accepts the invitation.
 *
 *   pending --accepted | revoked | replaced--> ended          (refused from expiresAt on)
 */
import { randomBytes } from 'node:crypto'
import { includesRole } from '@tacho/contract/engine/words.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Acceptance, Invitation, OpenedInvitation } from '@tacho/contract/people/operator.ts'
import type { FastifyRequest } from 'fastify'
import {
  invitationLink,
  newInvitation,
  parseInvitation,
  sameHash,
  hashPassword,
  verifyPassword,
} from '../../domain/people/credential.ts'
import { isEmail, lowerCase } from '../../domain/people/identity.ts'
import { HOUR_MS, isoTime } from '../../storage/engine/times.ts'
import { uuidv7 } from '../../storage/engine/uuid.ts'
import {
  ANY_EMAIL,
  type FoundInvitation,
  type InvitationRow,
  type NewOperator,
  type AuditEntry,
} from '../../storage/people/operators.ts'
import { foundOr, refuse, type Refusal } from '../web/reply-error.ts'
import type { Attempts } from './attempts.ts'
import { newRecordId } from './sign-in-records.ts'
import { entryOf, personalEntry } from './audit.ts'
import { refuseField } from '../web/field.ts'
import { listById } from '../web/paging.ts'
import { pick, isoOf } from '../../domain/web/shown.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'

/** Wrong tokens that one process logs per hour. */
const GUESSES_PER_HOUR = 20
const NO_INVITATION = refuse('not_found', 'The invitation is unknown, used, revoked or expired')

export function invitationsRoutes(
  { serve, storage, now, publicUrl, refreshCredentials }: OperatorDeps,
  attempts: Attempts,
): void {
  let guesses = { since: -Infinity, count: 0 }

  serve(['listInvitations', 'listInstallationInvitations'], ({ workspace, paging }) =>
    listById(paging, (page) => storage.listInvitations(workspace?.id ?? null, page), toInvitation),
  )

  serve(['invite', 'inviteEverywhere'], async ({ body, workspace, actor, at, audit }) => {
    if (!isEmail(body.email)) return refuseField('email', 'must be an e-mail address')
    const workspaceId = workspace?.id ?? null
    if (!includesRole(actor.roleIn(workspaceId ?? '') ?? 'viewer', body.role)) {
      return refuse('forbidden', 'You cannot grant a role above your own')
    }
    const { id, hash, text } = newInvitation(randomBytes)
    const row: InvitationRow = {
      id,
      hash,
      email: lowerCase(body.email),
      workspaceId,
      role: body.role,
      invitedBy: actor.name,
      inviter: { kind: actor.kind, id: actor.id },
      createdAt: at,
      expiresAt: at + LIMITS.invitationMs,
      endedAt: null,
    }
    const detail = { email: row.email, role: row.role, expiresAt: isoTime(row.expiresAt) }
    if ((await storage.createInvitation(row, audit(id, detail))) === 'member') {
      return refuse('conflict', `${row.email} already has a role there`)
    }
    return { ...toInvitation(row), link: invitationLink(publicUrl(), text) }
  })

  serve(['revokeInvitation', 'revokeInstallationInvitation'], async ({ params, workspace, at, audit }) => {
    const { invitationId: id } = params
    const row = await storage.revokeInvitation(workspace?.id ?? null, id, at, audit(id))
    return toInvitation(foundOr(row, refuse('not_found', 'The invitation does not exist')))
  })

  serve('openInvitation', async ({ request, body }) => {
    attempts.from(request.ip)
    const invitation = await find(body.token, request)
    attempts.passed(request.ip)
    const { email, role, workspaceId, invitedBy, expiresAt } = invitation
    const workspace = workspaceId === null ? null : await storage.findWorkspace(workspaceId)
    if (workspaceId !== null && workspace === null) return NO_INVITATION
    return {
      email,
      role,
      workspace: workspace?.name ?? null,
      invitedBy,
      expiresAt: isoTime(expiresAt),
      account: accountOf(invitation),
    }
  })

  serve('acceptInvitation', async ({ request, body }) => {
    attempts.from(request.ip)
    const invitation = await find(body.token, request)
    const { id, workspaceId, role, invitedBy } = invitation
    const email = invitation.email === ANY_EMAIL ? lowerCase(body.email ?? '') : invitation.email
    if (!isEmail(email)) return refuseField('email', 'must be your e-mail address: this invitation names none')
    const creates = invitation.createsAccount && invitation.operator === null
    const operator = creates ? await future(email, body, request) : await present(invitation, body, request)
    const at = now()
    const person = { id: operator.id, email }
    const detail = { invitation: id, role, invitedBy }
    const entry = personalEntry(person, at, 'operator.accept_invitation', workspaceId, detail, request)
    const outcome = await storage.acceptInvitation(id, operator, at, [entry])
    if (outcome === 'gone') return NO_INVITATION
    if (outcome === 'member')
      return refuse('conflict', `${email} has a role there, which an invitation does not change`)
    if (outcome === 'changed') return refuse('conflict', 'An account with this address was just created: try again')
    if (invitation.operator === null) attempts.succeeded(email, request.ip)
    await refreshCredentials()
    return { email, role, created: invitation.operator === null }
  })

  async function find(token: string, request: FastifyRequest): Promise<FoundInvitation> {
    const presented = parseInvitation(token)
    const row = presented && (await storage.findInvitation(presented.id, now()))
    const isKnown = row !== null && presented !== null && sameHash(row.hash, presented.hash)
    if (isKnown && row.endedAt === null && row.expiresAt > now()) return row
    logGuess(row, isKnown ? 'ended' : 'unknown', request)
    throw NO_INVITATION
  }

  /** Guesses come from strangers, so their number is bounded. An admin of the workspace sees guesses at its invitations. */
  function logGuess(row: FoundInvitation | null, why: 'ended' | 'unknown', request: FastifyRequest): void {
    const at = now()
    if (at - guesses.since >= HOUR_MS) guesses = { since: at, count: 0 }
    guesses.count++
    if (guesses.count > GUESSES_PER_HOUR) {
      const isFirst = guesses.count === GUESSES_PER_HOUR + 1
      if (isFirst) request.log.warn('many unknown invitations: the audit log has no more of them this hour')
      return
    }
    const scope = {
      actor: { kind: 'operator', id: '', name: 'unknown' } as const,
      workspace: row?.workspaceId ? { id: row.workspaceId } : null,
      environment: null,
    }
    const target = { kind: 'invitation', id: row?.id ?? '' }
    append(entryOf({ scope, request }, at, 'operator.accept_invitation.refused', target, { why }), request)
  }

  /** Not awaited: the reply's time would reveal what exists. */
  function append(entry: AuditEntry, request: FastifyRequest): void {
    void storage
      .appendAudit([entry])
      .catch((err: unknown) => request.log.error({ err }, 'could not log a refused acceptance'))
  }

  async function present(
    { id, operator, email, createsAccount }: FoundInvitation,
    { password }: Acceptance,
    request: FastifyRequest,
  ): Promise<{ id: string }> {
    if (createsAccount && operator?.passwordHash === null) {
      throw refuse('conflict', `${email} signs in at the identity provider; signing in accepts the invitation`)
    }
    attempts.on(email)
    // An address without an account takes as long and gets the same answer, because owners of a workspace may invite
    // any address.
    const isRight = await attempts.inTurn(request, () => verifyPassword(password, operator?.passwordHash ?? null))
    if (!isRight || operator === null) {
      if (operator !== null) logRefused(operator.id, email, id, request)
      throw createsAccount ? wrongPassword(email) : NO_OWN_ACCOUNT
    }
    attempts.succeeded(email, request.ip)
    return { id: operator.id }
  }

  function logRefused(id: string, email: string, invitation: string, request: FastifyRequest): void {
    const detail = { why: 'wrong_password', invitation }
    append(personalEntry({ id, email }, now(), 'operator.sign_in.refused', null, detail, request), request)
  }

  async function future(email: string, { name, password }: Acceptance, request: FastifyRequest): Promise<NewOperator> {
    if (Array.from(password).length < LIMITS.passwordCharsMin) {
      throw refuseField('password', `must have at least ${LIMITS.passwordCharsMin} characters`)
    }
    const createdAt = now()
    const hash = await attempts.inTurn(request, () => hashPassword(password))
    return {
      id: uuidv7(createdAt),
      name: name ?? email,
      email,
      emailVerified: 0,
      createdAt,
      password: { accountId: newRecordId(), hash },
    }
  }
}

const wrongPassword = (email: string): Refusal =>
  refuse('forbidden', `${email} already has an account: enter its password`)

const NO_OWN_ACCOUNT = refuse(
  'forbidden',
  'The password is wrong, or the address has no account with a password here. Sign in at the identity provider, or ask an owner of the whole installation for an account',
)

function accountOf({ operator, createsAccount }: FoundInvitation): OpenedInvitation['account'] {
  // Hidden from owners of a workspace, who may invite any address.
  if (!createsAccount) return 'unknown'
  if (operator === null) return 'none'
  return operator.passwordHash === null ? 'identity-provider' : 'password'
}

function toInvitation(row: InvitationRow): Invitation {
  return {
    ...pick(row, 'id', 'workspaceId', 'email', 'role', 'invitedBy'),
    ...isoOf(row, 'createdAt', 'expiresAt'),
  }
}
