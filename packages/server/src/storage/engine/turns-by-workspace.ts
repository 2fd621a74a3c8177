/** Workspaces take turns, and within a workspace its keys and operators do. */

export interface Holder {
  workspace: string
  credential: string
}

export class TurnsByWorkspace<Item extends { holder: Holder }> {
  size = 0
  readonly #workspaces = new Map<string, Map<string, Item[]>>()

  push(item: Item): void {
    const { workspace, credential } = item.holder
    const queues = this.#workspaces.get(workspace) ?? new Map<string, Item[]>()
    const queue = queues.get(credential) ?? []
    queue.push(item)
    queues.set(credential, queue)
    this.#workspaces.set(workspace, queues)
    this.size += 1
  }

  shift(mayStart: (item: Item) => boolean): Item | null {
    for (const [workspace, queues] of this.#workspaces) {
      for (const [credential, queue] of queues) {
        const [item] = queue
        if (!item || !mayStart(item)) continue
        queue.shift()
        this.size -= 1
        queues.delete(credential)
        if (queue.length > 0) queues.set(credential, queue)
        this.#workspaces.delete(workspace)
        if (queues.size > 0) this.#workspaces.set(workspace, queues)
        return item
      }
    }
    return null
  }
}
