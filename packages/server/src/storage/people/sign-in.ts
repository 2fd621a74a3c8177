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
  newestFirst?: boolean
}
