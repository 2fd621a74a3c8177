import path from 'node:path'

/**
 * The folder that contains packages/, for files that are not code. The sources of this file are four folders below it, the built
 * program (packages/cli/dist) is three.
 */
export const ROOT = path.resolve(import.meta.dirname, import.meta.filename.endsWith('.ts') ? '../../../..' : '../../..')
