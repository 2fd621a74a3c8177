/**
 * Used on platforms without a process that ends: browsers and edge workers. package.json selects this file, or node.ts
 * with whole.ts.
 */
import type { HostProcess } from './node.ts'
import type { Whole } from './whole.ts'

export const host: HostProcess | undefined = undefined
export const whole: Whole | undefined = undefined
