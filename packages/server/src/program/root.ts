import path from 'node:path'

/** Sources are four folders below it, the built program (packages/cli/dist) is three. */
export const ROOT = path.resolve(import.meta.dirname, import.meta.filename.endsWith('.ts') ? '../../../..' : '../../..')
