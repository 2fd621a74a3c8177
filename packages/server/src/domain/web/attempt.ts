/** Undefined if it throws: for readers that say in no other way that a text is invalid. */
export function attempt<Value>(read: () => Value): Value | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
