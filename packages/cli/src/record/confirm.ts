/** Asks before settings of an agent change. */
export async function isConfirmed(yes: true | undefined): Promise<boolean> {
  if (yes || (process.stdin.isTTY && (await asked()))) return true
  process.stderr.write('Nothing was changed; add --yes to write.\n')
  process.exitCode = 3
  return false
}

async function asked(): Promise<boolean> {
  const { confirm } = await import('@clack/prompts')
  return (await confirm({ message: 'Write these settings?' })) === true
}
