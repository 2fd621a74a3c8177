/** The ways to connect an agent are the same in the README and in the console, and their pages exist. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { CONNECTIONS } from '../src/record/connections.ts'

const ROOT = new URL('../../../', import.meta.url)

test('every way to connect an agent names a page that exists and explains it', () => {
  for (const { name, page } of CONNECTIONS) assert.ok(existsSync(new URL(page, ROOT)), `${name}: ${page}`)
})

/** The README shows both languages of a framework in one row; the console has a row for each. */
test('the README has the same ways as the console', () => {
  const readme = readFileSync(new URL('README.md', ROOT), 'utf8')
  const frameworks = [...readme.matchAll(/^\| ([^|]+?) \|([^|]*)\|([^|]*)\| (yes|no) \|$/gm)].flatMap(
    ([, row = '', typescript = '', python = '', guards]) => {
      const ways = [typescript, python].map((cell) => /^ \[`([^`]+)`\]\(([^)]+)\) $/.exec(cell))
      const isInBoth = ways.every((way) => way !== null)
      return ways.flatMap((way, index) => {
        if (way === null) return []
        const language = index === 0 ? 'TypeScript' : 'Python'
        const name = row === 'Your own code' ? language : isInBoth && index === 1 ? `${row}, Python` : row
        return [{ name, line: way[1] ?? '', guardsTools: guards === 'yes', page: way[2] ?? '' }]
      })
    },
  )
  const others = [...readme.matchAll(/^\| ([^|]+?) \| `([^`]+)` \| (yes|no) \| \[([^\]]+)\]/gm)].map(
    ([, name = '', line = '', guards, page = '']) => ({ name, line, guardsTools: guards === 'yes', page }),
  )
  const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1)
  assert.deepEqual([...frameworks, ...others].toSorted(byName), CONNECTIONS.toSorted(byName))
})
