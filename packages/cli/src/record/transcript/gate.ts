/** Limits the number and the total size of running tasks. */
export class Gate {
  readonly #mostTasks: number
  readonly #mostBytes: number
  readonly #running = new Set<Promise<void>>()
  #bytes = 0
  #failure: { error: unknown } | null = null

  constructor(mostTasks: number, mostBytes: number) {
    this.#mostTasks = mostTasks
    this.#mostBytes = mostBytes
  }

  /** Resolves when the task has started. Rejects if an earlier one has failed. */
  async enter(bytes: number, task: () => Promise<void>): Promise<void> {
    while (this.#isFull(bytes)) await Promise.race(this.#running)
    if (this.#failure) throw this.#failure.error
    this.#bytes += bytes
    const running = this.#run(bytes, task).finally(() => this.#running.delete(running))
    this.#running.add(running)
  }

  /** Resolves when all tasks have finished. Rejects if one has failed. */
  async empty(): Promise<void> {
    await Promise.all(this.#running)
    if (this.#failure) throw this.#failure.error
  }

  /** A task larger than the limit runs alone. */
  #isFull(bytes: number): boolean {
    if (this.#running.size === 0) return false
    return this.#running.size >= this.#mostTasks || this.#bytes + bytes > this.#mostBytes
  }

  async #run(bytes: number, task: () => Promise<void>): Promise<void> {
    try {
      await task()
    } catch (error) {
      this.#failure ??= { error }
    } finally {
      this.#bytes -= bytes
    }
  }
}
