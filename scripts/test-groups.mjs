// Decides which test files share a process, and in which order processes start. A process runs several files one after
// another, because loading the server takes longer than most test files.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'

/** The folder of this run. Other runs in the same clone have other folders. */
export const RUN_FOLDER = `.cache/tests/${process.pid}`
const FILES_PER_PROCESS = 24

/** Files that get their own process, because they change or measure it. */
const ALONE = [
  'packages/sdk-integrations/', // instruments modules
  'packages/sdk/test/masking-part', // loads the SDK as on an edge platform
  'packages/server/test/storage/sqlite/cache-memory', // measures the heap
  'packages/guards/test/same-decisions', // sets an environment variable
  'packages/sdk-conformance/test/python', // sets an environment variable
  'packages/guards/test/wire/clients', // sets an environment variable
  'packages/guards/test/wire/bytes', // measures the heap
  'packages/server/test/jobs/messages/mail-sender', // changes the trusted certificates
]

/** Files that start first: they take long and often wait. At the end, no other file would use the processor meanwhile. */
const FIRST = [
  'packages/contract/test/generated-clients',
  'packages/server/test/http/openapi/schemathesis',
  'packages/sdk-conformance/',
  'bench/',
  'packages/console/',
  'packages/cli/test/',
  'packages/guards/',
  'packages/server/test/process/',
  'packages/server/test/storage/postgres/',
  'packages/server/test/http/',
]

/**
 * Divides test files among processes.
 *
 * @param {string[]} files relative to the root of the repository
 * @param {number} processes number of processes that run at the same time
 * @returns {{ program: string, files: string[] }[]} `program` runs `files`
 */
export function groupFiles(files, processes) {
  const size = Math.min(FILES_PER_PROCESS, Math.ceil(files.length / processes))
  const groups = Object.groupBy(files, (file) =>
    startOf(ALONE, file) < 0 ? `${startOf(FIRST, file)} ${packageOf(file)}` : file,
  )
  mkdirSync(RUN_FOLDER, { recursive: true })
  process.on('exit', () => rmSync(RUN_FOLDER, { recursive: true, force: true }))
  return Object.values(groups)
    .flatMap((members) => chunks(members, size))
    .sort(([a], [b]) => rank(a) - rank(b))
    .map((members, index) => ({ program: write(members, index), files: members }))
}

function startOf(list, file) {
  return list.findIndex((start) => file.startsWith(start))
}

function rank(file) {
  const place = startOf(FIRST, file)
  return place < 0 ? FIRST.length : place
}

function packageOf(file) {
  return file.split('/test/')[0]
}

function write(files, index) {
  const program = `${RUN_FOLDER}/${index}.test.mjs`
  const list = JSON.stringify(files, null, 2)
  writeFileSync(program, `import { runFiles } from '../../../scripts/test-files.mjs'\n\nrunFiles(${list})\n`)
  return program
}

/** Splits a list into parts of about the same length, at most `size`. */
function chunks(list, size) {
  const count = Math.ceil(list.length / size)
  return Array.from({ length: count }, (_, at) => list.filter((_, index) => index % count === at))
}
