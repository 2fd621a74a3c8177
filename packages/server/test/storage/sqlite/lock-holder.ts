/** Opens a store, prints the result and waits to be killed. Used by lock.test.ts. */
import { openSqliteStorage } from '../../../src/storage/sqlite/open.ts'

const [directory = ''] = process.argv.slice(2)
const onTrouble = (error: Error) => console.log(error.message)

await openSqliteStorage({ directory, minFreeDiskBytes: 0, onTrouble }).then(
  () => console.log('open'),
  (error: Error) => console.log(error.name, error.message),
)
setInterval(() => undefined, 1_000)
