export function shareLoads<Value>(read: (key: string) => Promise<Value>, keep: (key: string, value: Value) => void) {
  const running = new Map<string, Promise<Value>>()

  function load(key: string): Promise<Value> {
    const shared = running.get(key)
    if (shared) return shared
    const isCurrent = () => running.get(key) === started
    const started = read(key)
      .then((value) => {
        if (isCurrent()) keep(key, value)
        return value
      })
      .finally(() => {
        if (isCurrent()) running.delete(key)
      })
    running.set(key, started)
    return started
  }

  return {
    load,
    /** Running reads of this key may be stale: their callers get the values, but nothing is cached. */
    forget: (key: string) => void running.delete(key),
    forgetAll: () => running.clear(),
  }
}
