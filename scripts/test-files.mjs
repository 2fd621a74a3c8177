// Runs test files one after another in this process, each as a test of its name: its hooks run before and after its own
// tests. Loading the server takes longer than most files of its tests.
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'

/** @param {string[]} files relative to the root of the repository */
export function runFiles(files) {
  for (const file of files) void test(file, async () => void (await import(pathToFileURL(file).href)))
}
