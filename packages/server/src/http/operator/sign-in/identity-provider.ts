import type { Role } from '@tacho/contract/operator/access.ts'
import { domainOf, isEmail, lowerCase } from '../../../domain/email.ts'
import { isStorableText } from '../../../domain/text.ts'
import { uuidv7 } from '../../../storage/uuid.ts'
import type { NewOperator } from '../../../storage/operators.ts'
import type { Storage } from '../../../storage/storage.ts'
import { personalEntry } from '../audit.ts'

export const PROVIDER_ID = 'oidc'

export interface AdmissionOptions {
  storage: Storage
  domain: string | null
  domainRole: Role
  now: () => number
}

export type Profile = Record<string, unknown>

/** A text such as "true" does not count as verified. */
export function verifiedEmail(profile: Profile): string | null {
  const { email, email_verified: verified } = profile
  return typeof email === 'string' && verified === true && isEmail(email) ? lowerCase(email) : null
}

/** Only a person whom this admits gets an account, and so a session. */
export function createAdmission({ storage, domain, domainRole, now }: AdmissionOptions) {
  return async function admit(profile: Profile): Promise<void> {
    const email = verifiedEmail(profile)
    if (email === null) return
    const linked = await linkedOperatorEmail(String(profile['sub']))
    // A linked account stays with its person even if the provider changes the address.
    if (linked !== null && linked !== email) return
    await verify(email)
    for (const { id, workspaceId, role } of await storage.findInvitationsFor(email, now())) {
      const operator = (await storage.findOperatorByEmail(email)) ?? newOperator(email, profile)
      const person = { id: operator.id, email }
      const detail = { role, by: 'identity provider' }
      const audit = personalEntry(person, now(), 'operator.accept_invitation', workspaceId, detail)
      await storage.acceptInvitation(id, operator, now(), [audit])
    }
    if (domain === null || domainOf(email) !== domain || (await storage.findOperatorByEmail(email))) return
    const operator = newOperator(email, profile)
    const audit = personalEntry(operator, now(), 'operator.join_by_domain', null, { role: domainRole, domain })
    await storage.createOperator(operator, domainRole, [audit])
  }

  async function linkedOperatorEmail(subject: string): Promise<string | null> {
    const where = [
      { field: 'providerId', operator: 'eq', value: PROVIDER_ID } as const,
      { field: 'accountId', operator: 'eq', value: subject } as const,
    ]
    const [account] = await storage.findSignIn('account', { where, limit: 1 })
    if (!account) return null
    return (await storage.findOperator(null, String(account['userId'])))?.email ?? null
  }

  /** Ends the password and sessions of anyone who used this address without owning it. */
  async function verify(email: string): Promise<void> {
    const operator = await storage.findOperatorByEmail(email)
    if (!operator || operator.emailVerified === 1) return
    const audit = personalEntry(operator, now(), 'operator.verify_email', null, { ended: 'password and sessions' })
    await storage.verifyOperatorEmail(operator.id, now(), [audit])
  }

  function newOperator(email: string, profile: Profile): NewOperator {
    const { name } = profile
    const given = typeof name === 'string' && isStorableText(name) ? Array.from(name.trim()).slice(0, 100).join('') : ''
    const createdAt = now()
    const id = uuidv7(createdAt)
    return { id, name: given || email, email, emailVerified: 1, createdAt, password: null }
  }
}
