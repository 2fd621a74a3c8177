// No instruction may fetch a package that a stranger could publish, or has published, under one of our names.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** What is published, by us. An owner who publishes a package adds its name here, and the documents may name it. */
const PUBLISHED = { npm: [], PyPI: [] }

/** Each ends with the name that a program would fetch. */
const NPM =
  /\b(?:npx|npm exec|npm (?:install|i|add)|pnpm (?:add|dlx)|yarn (?:add|dlx)|bun add|bunx|deno add npm:)\s+((?:-\S+\s+)*)(@?tacho(?:\/[a-z-]+)?)(?=[\s@`'"]|$)/gm
const PYPI =
  /\b(?:pip3? install|uv add|uv pip install|uvx|pipx (?:run|install)|poetry add)\s+((?:-\S+\s+)*)(tacho(?:[-_][a-z]+)?)(?=[\s=[<>~`'"]|$)/gm

const files = execFileSync('git', ['ls-files'], { encoding: 'utf8', maxBuffer: 2 ** 26 })
  .trim()
  .split('\n')
  // What the hooks must refuse, and what was once written, are no instructions.
  .filter(
    (file) =>
      !/^(CHANGELOG\.md|package-lock\.json|docs\/decisions\/|scripts\/check-names|packages\/guards\/test\/)/.test(file),
  )

for (const file of files) {
  const text = readFileSync(file, 'utf8')
  for (const [registry, form] of [
    ['npm', NPM],
    ['PyPI', PYPI],
  ]) {
    for (const match of text.matchAll(form)) {
      if (PUBLISHED[registry].includes(match[2])) continue
      const line = text.slice(0, match.index).split('\n').length
      console.error(
        `${file}:${line}: "${match[0]}" would fetch a stranger's package: ${match[2]} is not ours on ${registry}`,
      )
      process.exitCode = 1
    }
  }
}
