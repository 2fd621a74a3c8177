export class PendingCalls<Result> {
  readonly #waiting = new Map<number, PromiseWithResolvers<Result>>()
  #lastId = 0

  get size(): number {
    return this.#waiting.size
  }

  start(send: (id: number) => void): Promise<Result> {
    const id = ++this.#lastId
    send(id)
    const call = Promise.withResolvers<Result>()
    this.#waiting.set(id, call)
    return call.promise
  }

  resolve(id: number, result: Result): void {
    this.#waiting.get(id)?.resolve(result)
    this.#waiting.delete(id)
  }

  reject(id: number, error: Error): void {
    this.#waiting.get(id)?.reject(error)
    this.#waiting.delete(id)
  }

  rejectAll(error: Error): void {
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}
