/**
 * Finds files of a repository that were deleted or changed while a session began: a hook of the repository may remove
 * its own settings before our hook reads them. The index of git lists the repository's files. It is read without git,
 * because git runs programs that a repository names.
 *
 *   "DIRC" | version | number of entries | entries: 40 bytes, 20 bytes of SHA-1, flags (2 or 4 bytes), name, padding to 8 bytes
 */
import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'

const INDEX_BYTES_MAX = 32 * 1_048_576
const FILE_BYTES_MAX = 1_048_576
const HEAD_BYTES = 12
const HASH_AT = 40
const FLAGS_AT = 60
const NAME_AT = 62
const EXTENDED = 0x4000
const SKIP_WORKTREE = 0x4000
/** Qwen Code adds this member to settings without it when it starts. */
const ADDED_VERSION = /,\s{0,99}"\$version": ?\d{1,9}(?=\s{0,99}\}\s{0,99}$)/
/** A change in the minute before a session is not a person's: people start the session later. */
const MOMENT_MS = 60_000

/** @param isWatched gets the path in the project, with slashes. Returns an empty list if the index cannot be read. */
export function vanishedIn(project: string, isWatched: (file: string) => boolean, now = Date.now()): string[] {
  try {
    return [...entriesOf(readIndex(project))].flatMap(([file, hash]) => {
      if (!isWatched(file)) return []
      const stats = statSync(path.join(project, file), { throwIfNoEntry: false })
      if (!stats) return [`${file} (deleted)`]
      const isNew = Math.abs(now - stats.ctimeMs) < MOMENT_MS && stats.isFile() && stats.size <= FILE_BYTES_MAX
      return isNew && !isContent(readFileSync(path.join(project, file)), hash) ? [`${file} (changed just now)`] : []
    })
  } catch {
    return []
  }
}

function readIndex(project: string): Buffer {
  const git = path.join(project, '.git')
  // In a worktree, `.git` is a file that names the folder.
  const folder = statSync(git).isDirectory()
    ? git
    : path.resolve(
        project,
        readFileSync(git, 'utf8')
          .replace(/^gitdir: /, '')
          .trimEnd(),
      )
  const file = path.join(folder, 'index')
  if (statSync(file).size > INDEX_BYTES_MAX) throw new Error('the index is too large')
  return readFileSync(file)
}

function* entriesOf(index: Buffer): Generator<readonly [file: string, hash: string]> {
  const version = index.readUInt32BE(4)
  // Version 4 shortens names. Git writes it only if configured to.
  if (index.toString('latin1', 0, 4) !== 'DIRC' || version > 3) return
  let at = HEAD_BYTES
  for (let left = index.readUInt32BE(8); left > 0; left--) {
    const isExtended = (index.readUInt16BE(at + FLAGS_AT) & EXTENDED) !== 0
    // A sparse checkout leaves files out.
    const isLeftOut = isExtended && (index.readUInt16BE(at + NAME_AT) & SKIP_WORKTREE) !== 0
    const nameAt = at + NAME_AT + (isExtended ? 2 : 0)
    const end = index.indexOf(0, nameAt)
    if (end < 0) return
    if (!isLeftOut) yield [index.toString('utf8', nameAt, end), index.toString('hex', at + HASH_AT, at + FLAGS_AT)]
    // At least one zero ends the name.
    at += (end - at + 8) & ~7
  }
}

function isContent(content: Buffer, hash: string): boolean {
  return hashOf(content) === hash || hashOf(Buffer.from(content.toString().replace(ADDED_VERSION, ''))) === hash
}

/** Hash of a file's content, as in git. */
function hashOf(content: Buffer): string {
  return createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex')
}
