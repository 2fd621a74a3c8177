/** Asks before what cannot be undone. */
import { wrongUsage } from './stop.ts'

export interface ConfirmOptions {
  yes?: true | undefined
  json?: true | undefined
}

/** Ends the command if the answer is no, or if there is neither --yes nor a terminal to ask on. */
export async function assertConfirmed(question: string, options: ConfirmOptions): Promise<void> {
  if (options.yes) return
  if (!canAsk(options)) throw wrongUsage(`${question} This cannot be undone: add --yes. Nothing was changed.`)
  if (!(await confirmed(question))) throw wrongUsage('Nothing was changed.')
}

export function canAsk({ json }: ConfirmOptions): boolean {
  return !json && process.stdin.isTTY && process.stdout.isTTY
}

/** Ctrl-C ends the command. */
export async function confirmed(question: string): Promise<boolean> {
  const { confirm, isCancel } = await import('@clack/prompts')
  const answer = await confirm({ message: question, initialValue: false })
  if (isCancel(answer)) process.exit(130)
  return answer
}
