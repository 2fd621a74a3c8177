import path from 'node:path'
import { ROOT } from '@tacho/server/program/root.ts'

/** What the installed hooks run. They start without the rest of the command: see bin/tacho. */
export const PROGRAM = path.join(ROOT, 'packages/cli/bin/tacho')
