export async function within<Value, Late>(promise: Promise<Value>, ms: number, late: Late): Promise<Value | Late> {
  const { promise: timeUp, resolve } = Promise.withResolvers<Late>()
  const timer = setTimeout(resolve, ms, late)
  const value = await Promise.race([promise, timeUp])
  clearTimeout(timer)
  return value
}
