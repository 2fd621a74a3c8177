/** Used where no process ends: browsers and edge workers. package.json chooses between this file and node.ts with whole.ts. */
import type { HostProcess } from './node.ts'
import type { Whole } from './whole.ts'

export const host: HostProcess | undefined = undefined
export const whole: Whole | undefined = undefined
