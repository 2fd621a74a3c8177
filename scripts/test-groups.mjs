// Which test files share a process, and in which order processes start. A process runs several files one after another,
// because loading the server takes longer than most files of its tests.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'

/** Of this run: others in the same clone have their own. */
export const RUN_FOLDER = `.cache/tests/${process.pid}`
const FILES_PER_PROCESS = 24

/** Files that change or measure their process. */
const ALONE = [
  'packages/sdk-integrations/', // instruments modules
  'packages/sdk/test/masking-part', // loads the SDK as on an edge platform
  'packages/server/test/storage/sqlite/cache-memory', // measures the heap
  'packages/guards/test/same-decisions', // sets an environment variable, as does the next
  'packages/sdk-conformance/test/python',
  'packages/guards/test/wire/clients', // the same
  'packages/guards/test/wire/bytes', // measures the heap
  'packages/server/test/jobs/messages/mail-sender', // changes the trusted certificates
]

/** Started first, because they take long and often wait: at the end, nothing would run beside them. */
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
 * @param {number} processes how many run at the same time
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

/** Parts of about the same length. */
function chunks(list, size) {
  const count = Math.ceil(list.length / size)
  return Array.from({ length: count }, (_, at) => list.filter((_, index) => index % count === at))
}
