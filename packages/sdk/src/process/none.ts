/** Where no process ends: browsers and edge workers. package.json chooses between this file and node.ts. */
import type { HostProcess } from './node.ts'

export const host: HostProcess | undefined = undefined
