/**
 *   starting --> ready --SIGTERM, SIGHUP--> leaving --after the drain delay--> draining --> closed
 *                   '------SIGINT (Ctrl-C) or close()------------------------^
 *
 * starting: opens the store, creates the first tenant in an empty store, and opens the port last. leaving: serves as before, but
 * is not ready and closes each connection after its reply, so that load balancers choose other nodes. draining: accepts
 * nothing new, finishes open requests or cuts them after the drain timeout, and writes what the store has accepted. A
 * signal during the start takes effect once ready, so a first key is always shown. A second signal ends the process
 * immediately. In any state, the process ends CLOSE_MS after the drain timeout at the latest: a database that falls
 * silent may block the start and the close.
 */
import { setTimeout as wait } from 'node:timers/promises'
import path from 'node:path'
import type { Config } from '../config/config.ts'
import { createLog } from './log.ts'
import { CLOSE_MS, nextSignal } from './stopping.ts'
import { openStorage } from './open-storage.ts'
import type { RunningServer, StartOptions } from './server.ts'
import { collectWhenIdle } from '../threads/threads.ts'
import { maxDescriptors, openDescriptors } from './watch-machine.ts'
import { workerLink } from './workers.ts'
import { StorageError, StoreRefused } from '../storage/engine/store.ts'

export async function startServer(config: Config, options: StartOptions = {}): Promise<RunningServer> {
  const { log, onTrouble = () => undefined } = options
  const opening = openStorage(config, { log, onTrouble })
  try {
    // The store's threads load their modules while this thread loads its own. This saves a fifth of the start.
    const [storage, { serveStore }] = await Promise.all([opening, import('./server.ts')])
    return await serveStore(config, storage, options)
  } catch (error) {
    await (await opening).close()
    throw error
  }
}

export async function runServer(config: Config): Promise<void> {
  const link = workerLink()
  const { logger, leave, droppedLines } = createLog(config.logLevel, link && { worker: link.worker })
  process.on('uncaughtException', (err, origin) => {
    logger.fatal({ err, origin }, 'unexpected failure')
    void leave(1)
  })
  // Ignored, because the reader of the first lines may have closed the pipe.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
  const signalled = nextSignal((code) => void leave(code))
  const giveUp = (): void => {
    logger.fatal('did not stop in time; acknowledged events are stored')
    void leave(1)
  }
  void signalled.then(() => setTimeout(giveUp, config.drainDelay + config.drainTimeout + CLOSE_MS))

  const start = startServer(config, {
    log: logger,
    processFacts: { openDescriptors, maxDescriptors, droppedLines },
    print: (text) => (link ? link.print(text) : process.stdout.write(text)),
    link,
    onTrouble(err) {
      logger.fatal({ err }, 'the store failed permanently')
      void leave(1)
    },
  })
  const server = await start.catch((error: unknown) => {
    const text = startErrorText(error, config)
    if (text === null) logger.fatal({ err: error }, 'could not start the server')
    else process.stderr.write(`tacho: ${text}\n`)
    return leave(1)
  })
  link?.ready()
  collectWhenIdle()
  const signal = await signalled
  if (signal !== 'SIGINT' && config.drainDelay > 0) {
    logger.info({ signal, ms: config.drainDelay }, 'not ready any more; serving until load balancers have noticed')
    server.leave()
    await wait(config.drainDelay)
  }
  logger.info({ signal }, 'draining')
  await server.close()
  logger.info('closed')
  await leave(0)
}

export function startErrorText(error: unknown, { host, port, dataDir }: Config): string | null {
  if (error instanceof StoreRefused) return error.message
  if (error instanceof StorageError && error.code === 'storage_full') {
    return `The disk of the data directory ${path.resolve(dataDir)} is full. Free space on it: nothing that was acknowledged is lost.`
  }
  if (!(error instanceof Error)) return null
  const { code = '', syscall = '' } = error as NodeJS.ErrnoException
  // In a worker, listen errors arrive as `bind`.
  if (['listen', 'bind', 'getaddrinfo'].includes(syscall)) {
    if (code === 'EADDRINUSE') {
      return `Port ${port} on ${host} is in use by another program. Stop that program, or choose another port with --port.`
    }
    if (code === 'EACCES')
      return `This user has no permission for port ${port}. Choose a port from 1024 up with --port.`
    return `${JSON.stringify(host)} is not an address this machine can listen on (${code}). Check --host.`
  }
  if (DAMAGE_CODES.test(code)) {
    return `The store in ${path.resolve(dataDir)} is damaged or not a Tacho store (${code}). To restore a backup, use tacho restore.`
  }
  if (DIRECTORY_CODES.test(code)) {
    return `The data directory ${path.resolve(dataDir)} cannot be used (${code}). Check --data-dir.`
  }
  return null
}

const DAMAGE_CODES = /^SQLITE_(NOTADB|CORRUPT)/
const DIRECTORY_CODES =
  /^(EACCES|EPERM|EROFS|ENOTDIR|EEXIST|ENOSPC|ENOENT|EDQUOT|ENAMETOOLONG|SQLITE_(CANTOPEN|READONLY|FULL|IOERR))/
