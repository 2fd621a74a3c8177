/** Packs the SDK for tests. The processes of a test run share one package, because packing takes seconds. */
import { cpSync, existsSync, globSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { packSdk } from '../../../scripts/pack-sdk.mjs'

/** Environment variable with the folder of the shared package. The first process that needs the package makes it. */
const SHARED_PACKAGE = 'TEST_PACKAGE'

/** Copies the package to `folder`, as the folder `package` and as a tarball. @returns the path of the tarball */
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
    // Rename at the end, so that no process uses an incomplete package.
    renameSync(made, shared)
  } catch (error) {
    if (!existsSync(shared)) throw error
    // Another process was faster.
    rmSync(made, { recursive: true })
  }
}
