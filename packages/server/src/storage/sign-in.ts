/** The tables of sign-in as the sign-in library sees them: few kinds of records, found and changed by conditions. */

export type SignInModel = 'user' | 'session' | 'account' | 'verification' | 'twoFactor'

/** Fields by the library's names; flags 0 and 1, times in milliseconds. */
export type SignInRecord = Record<string, string | number | null>

export interface SignInCondition {
  field: string
  operator: 'eq' | 'ne' | 'lt' | 'lte' | 'gt' | 'gte' | 'in'
  value: string | number | null | readonly string[]
}

export interface SignInFind {
  where: SignInCondition[]
  limit: number
  /** The newest first. */
  newestFirst?: boolean
}

export interface SignInStore {
  findSignIn(model: SignInModel, find: SignInFind): Promise<SignInRecord[]>
  createSignIn(model: SignInModel, record: SignInRecord): Promise<SignInRecord>
  /** The records as they are afterwards. */
  updateSignIn(
    model: SignInModel,
    where: SignInCondition[],
    set: SignInRecord,
    increment: Record<string, number>,
  ): Promise<SignInRecord[]>
  /** The records as they were. With `one`, at most one, and only one caller ever gets it. */
  deleteSignIn(model: SignInModel, where: SignInCondition[], one: boolean): Promise<SignInRecord[]>
}
