/** Child processes that answer calls, because load must not share a thread with other work. */
import { fork } from 'node:child_process'
import { once } from 'node:events'

export interface Child<Args, Result> extends AsyncDisposable {
  call(args: Args): Promise<Result>
}

type Answer<Result> = { result: Result } | { error: string }

/** Starts a module that calls `answer`. It answers one call after the other and ends with this process. */
export function startChild<Args, Result>(module: URL): Child<Args, Result> {
  const child = fork(module, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const exited = once(child, 'exit')
  return {
    async call(args) {
      child.send(args as object)
      const [answer] = (await Promise.race([once(child, 'message'), exited.then(() => [{ error: 'it ended' }])])) as [
        Answer<Result>,
      ]
      if ('error' in answer) throw new Error(`${module.pathname}: ${answer.error}`)
      return answer.result
    },
    async [Symbol.asyncDispose]() {
      if (child.connected) child.disconnect()
      await exited
    },
  }
}

/** In the child process: answers each call with `work`. */
export function answer<Args, Result>(work: (args: Args) => Promise<Result> | Result): void {
  async function perform(args: Args): Promise<Answer<Result>> {
    try {
      return { result: await work(args) }
    } catch (error) {
      return { error: error instanceof Error ? (error.stack ?? error.message) : String(error) }
    }
  }
  process.on('message', (args) => void perform(args as Args).then((answered) => process.send?.(answered)))
  process.on('disconnect', () => process.exit(0))
}
