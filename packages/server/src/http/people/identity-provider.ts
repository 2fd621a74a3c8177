/**
 * An identity is an issuer and its `sub`, which is unique only there (OpenID Connect Core 2 and 5.7):
 *
 *   unknown --invitation of its verified address, or its domain--> account --> linked
 *   unknown --verified address of an account without an identity of this issuer--> linked
 *   unknown --verified address of an account with another `sub` of this issuer--> refused, until an invitation
 *   linked --whatever address the provider gives--> the same account
 *
 * At each sign-in, the account gets the roles of the groups in the id token, and loses those of groups no longer there.
 */
import type { Role } from '@tacho/contract/web/route.ts'
import { domainOf, isEmail, lowerCase, groupsIn, rolesOfGroups, type GroupRoles } from '../../domain/people/identity.ts'
import { isStorableText } from '../../domain/web/text.ts'
import { uuidv7 } from '../../storage/engine/uuid.ts'
import type { NewOperator } from '../../storage/people/operators.ts'
import type { Storage } from '../../storage/storage.ts'
import { personalEntry, type AuditedRequest } from './audit.ts'

export const PROVIDER_ID = 'oidc'

export interface AdmissionOptions {
  storage: Storage
  issuer: string
  clientId: string
  domain: string | null
  domainRole: Role
  groupsClaim: string
  groupRoles: GroupRoles | null
  now: () => number
}

/** The library turns this error into a refusal. */
const deactivated = () => new Error('The directory has deactivated the person')

/** How far the clocks of this machine and of the provider may differ. */
const CLOCKS_DIFFER_S = 60

export type Profile = Record<string, unknown>

/** A text such as "true" does not count as verified. */
export function verifiedEmail(profile: Profile): string | null {
  const { email, email_verified: verified } = profile
  return typeof email === 'string' && verified === true && isEmail(email) ? lowerCase(email) : null
}

function claimsOf(idToken: string | undefined): Profile {
  if (idToken === undefined) throw new Error('The answer has no id token')
  return JSON.parse(Buffer.from(idToken.split('.')[1] ?? '', 'base64url').toString()) as Profile
}

/** Only a person that the admission accepts gets an account, and therefore a session. */
export function createAdmission(options: AdmissionOptions) {
  const { storage, issuer, clientId, domain, domainRole, groupsClaim, groupRoles, now } = options
  /**
   * The identity, as the sign-in library looks it up.
   *
   * @throws without an id token for us: the library would fall back to the userinfo endpoint, which proves neither
   *   issuer, audience nor nonce.
   */
  return async function admit(profile: Profile, idToken: string | undefined, request: AuditedRequest): Promise<string> {
    const claims = claimsOf(idToken)
    const accountId = `${issuer} ${subjectOf(claims)}`
    // Read groups only from the id token: the userinfo response is not signed.
    const groups = groupsIn(Object.hasOwn(claims, groupsClaim) ? claims[groupsClaim] : [])
    const managed = await storage.findManagedPerson(accountId, verifiedEmail(profile))
    if (managed?.active === 0) throw deactivated()
    // A directory that manages people also sends their groups, which then count instead.
    const granted = rolesOfGroups(managed?.groups ?? groups ?? [], groupRoles)
    await link(accountId, profile, granted.length > 0, request)
    const operator = await storage.findIdentity(accountId)
    if (operator === null) return accountId
    const isUnreadable = managed === null && groups === null
    const detail = { email: operator.email, by: 'groups', ...(isUnreadable && { unreadable: groupsClaim }) }
    const changed = await storage.applyGroupRoles(
      operator.id,
      granted,
      personalEntry(operator, now(), 'operator.change_role', null, detail, request),
    )
    if (changed === 'deactivated') throw deactivated()
    return accountId
  }

  async function link(accountId: string, profile: Profile, isInGroup: boolean, request: AuditedRequest): Promise<void> {
    const email = verifiedEmail(profile)
    const linked = await storage.findIdentity(accountId)
    if (email === null || (linked !== null && linked.email !== email)) return
    const isInvited = await admitAddress(email, profile, isInGroup, request)
    const operator = linked === null ? await storage.findOperatorByEmail(email) : null
    if (operator === null) return
    const audit = personalEntry({ id: operator.id, email }, now(), 'operator.link_identity', null, { issuer }, request)
    const identity = { operatorId: operator.id, issuer, accountId }
    await storage.linkIdentity(identity, { replaces: isInvited, now: now() }, [audit])
  }

  /** The library has verified signature, issuer, audience and expiry, and that there is a time of issue. */
  function subjectOf({ sub, aud, azp, iat }: Profile): string {
    // A token for several parties must name us as the one that it was issued to (OpenID Connect Core 3.1.3.7).
    const isForUs = azp === undefined ? !Array.isArray(aud) || aud.length === 1 : azp === clientId
    if (!isForUs) throw new Error('The id token is for another party')
    if (!(Number(iat) <= now() / 1000 + CLOCKS_DIFFER_S)) throw new Error('The id token is from the future')
    if (typeof sub !== 'string' || sub === '' || sub.length > 255) throw new Error('The subject is invalid')
    return sub
  }

  /**
   * Accepts invitations for the address, and creates the account if this is allowed. Returns whether there was an
   * invitation.
   */
  async function admitAddress(
    email: string,
    profile: Profile,
    isInGroup: boolean,
    request: AuditedRequest,
  ): Promise<boolean> {
    const audit = (id: string, action: string, workspaceId: string | null, detail: object) => [
      personalEntry({ id, email }, now(), action, workspaceId, detail, request),
    ]
    const present = await storage.findOperatorByEmail(email)
    if (present?.emailVerified === 0) {
      // Ends the password and sessions of anyone who used this address without owning it.
      const entries = audit(present.id, 'operator.verify_email', null, { ended: 'password and sessions' })
      await storage.verifyOperatorEmail(present.id, now(), entries)
    }
    const invitations = await storage.findInvitationsFor(email, now())
    for (const { id, workspaceId, role } of invitations) {
      const account = await storage.findOperatorByEmail(email)
      const operator = account === null ? newOperator(email, profile) : { id: account.id }
      const detail = { role, by: 'identity provider' }
      const entries = audit(operator.id, 'operator.accept_invitation', workspaceId, detail)
      await storage.acceptInvitation(id, operator, now(), entries)
    }
    const isInDomain = domain !== null && domainOf(email) === domain
    if ((isInDomain || isInGroup) && !(await storage.findOperatorByEmail(email))) {
      const operator = newOperator(email, profile)
      const entries = isInDomain
        ? audit(operator.id, 'operator.join_by_domain', null, { role: domainRole, domain })
        : audit(operator.id, 'operator.join_by_group', null, {})
      await storage.createOperator(operator, isInDomain ? domainRole : null, entries)
    }
    return invitations.length > 0
  }

  function newOperator(email: string, profile: Profile): NewOperator {
    const { name } = profile
    const givenName =
      typeof name === 'string' && isStorableText(name) ? Array.from(name.trim()).slice(0, 100).join('') : ''
    const createdAt = now()
    const id = uuidv7(createdAt)
    return { id, name: givenName || email, email, emailVerified: 1, createdAt, password: null }
  }
}
