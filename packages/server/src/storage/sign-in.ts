/** The tables of sign-in in the sign-in library's form: few kinds of records, found and changed by conditions. */

export type SignInModel = 'user' | 'session' | 'account' | 'verification' | 'twoFactor'

/** Fields have the library's names; flags are 0 and 1, times are milliseconds. */
export type SignInRecord = Record<string, string | number | null>

export interface SignInCondition {
  field: string
  operator: 'eq' | 'ne' | 'lt' | 'lte' | 'gt' | 'gte' | 'in'
  value: string | number | null | readonly string[]
}

export interface SignInFind {
  where: SignInCondition[]
  limit: number
  /** Newest first. */
  newestFirst?: boolean
}

export interface SignInStore {
  findSignIn(model: SignInModel, find: SignInFind): Promise<SignInRecord[]>
  createSignIn(model: SignInModel, record: SignInRecord): Promise<SignInRecord>
  /** The changed records. */
  updateSignIn(
    model: SignInModel,
    where: SignInCondition[],
    set: SignInRecord,
    increment: Record<string, number>,
  ): Promise<SignInRecord[]>
  /** The deleted records. With `one`, at most one, which only one caller gets. */
  deleteSignIn(model: SignInModel, where: SignInCondition[], one: boolean): Promise<SignInRecord[]>
}
