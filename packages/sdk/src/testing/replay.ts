/** Replays a tape for a function of your tests. `tacho replay` in a process beside this one has the cursor, for all languages. */

export interface ReplayOptions {
  /** `tools`: models are live, and tools are answered by the tape. */
  mode?: 'strict' | 'tools' | undefined
  /** Paths that may differ, such as `tool.input.requestId` or `model.system`. */
  ignore?: readonly string[] | undefined
  from?: number | undefined
  model?: string | undefined
  readOnly?: readonly string[] | undefined
  stubs?: string | undefined
  policies?: string | undefined
  /** Default: TACHO_PROGRAM, or `tacho`. */
  program?: string | undefined
}

/**
 * `tacho replay` for a function, in any test runner. The function gets the user's first message. It makes its clients of
 * Tacho and of models itself, because they find the tape in variables. One replay at a time in a process.
 *
 * @throws AssertionError with the first step at which the agent left the tape; else what `agent` throws.
 */
export async function replay<T>(
  tape: string,
  agent: (input: string) => T,
  { program, ...options }: ReplayOptions = {},
): Promise<Awaited<T>> {
  const { env } = process
  if (env['TACHO_REPLAY']) throw new Error('A replay runs already.')
  const former = { ...env }
  // Set at once: from now on nothing guarded runs, and no other replay begins.
  let host: { kill(): void } | undefined
  let variables: Record<string, string> = { TACHO_REPLAY: 'http://127.0.0.1:9' }
  Object.assign(env, variables)
  try {
    const { spawn } = await import('node:child_process')
    const { AssertionError } = await import('node:assert')
    const { createInterface } = await import('node:readline')
    const flags = Object.entries(options).flatMap(([name, value]) =>
      [value ?? []].flat().map((one) => `--${name.replace(/[A-Z]/g, '-$&').toLowerCase()}=${one}`),
    )
    const child = spawn(program ?? env['TACHO_PROGRAM'] ?? 'tacho', ['replay', '--serve', ...flags, '--', tape], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    host = child
    let fault = ''
    child.on('error', ({ message }) => (fault = message))
    child.stdin.on('error', () => {})
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
    const answer = async () => {
      const { value } = await lines.next()
      if (!value) throw new Error(`tacho replay does not answer. ${fault}`)
      return JSON.parse(value)
    }
    const opening = await answer()
    Object.assign(env, (variables = opening.variables))
    let result: { value: Awaited<T> } | undefined
    let cause: unknown
    try {
      result = { value: await agent(opening.input) }
    } catch (error) {
      cause = error
    }
    child.stdin.end(result ? 'COMPLETED\n' : 'FAILED\n')
    const { fault: message } = await answer()
    if (message) throw Object.assign(new AssertionError({ message }), { cause })
    if (!result) throw cause
    return result.value
  } finally {
    host?.kill()
    for (const name in variables) {
      if (former[name] === undefined) delete env[name]
      else env[name] = former[name]
    }
  }
}
