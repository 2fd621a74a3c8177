/** The packed SDK of tests. The processes of a test run share it, because making it takes seconds. */
import { cpSync, existsSync, globSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { packSdk } from '../../../scripts/pack-sdk.mjs'

/** Where they share it. The first process that needs it makes it. */
const SHARED_PACKAGE = 'TEST_PACKAGE'

/** Places the package as the folder `package`, and its tarball. @returns the path of the tarball */
export async function placeSdk(folder: string): Promise<string> {
  const shared = process.env[SHARED_PACKAGE]
  if (shared === undefined) return packSdk(folder)
  if (!existsSync(shared)) await shareSdk(shared)
  cpSync(shared, folder, { recursive: true })
  const [tarball] = globSync('*.tgz', { cwd: folder })
  if (tarball === undefined) throw new Error(`${shared} has no tarball`)
  return path.join(folder, tarball)
}

async function shareSdk(shared: string): Promise<void> {
  const made = mkdtempSync(`${shared}-`)
  await packSdk(made)
  try {
    // At the end, so that no process takes part of it for the whole.
    renameSync(made, shared)
  } catch (error) {
    if (!existsSync(shared)) throw error
    // Another process was faster.
    rmSync(made, { recursive: true })
  }
}
