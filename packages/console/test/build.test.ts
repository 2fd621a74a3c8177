/** The files that the browser loads before it shows a page. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'

const ROOT = path.resolve(import.meta.dirname, '../../..')
const DIST = path.join(ROOT, 'packages/console/dist')
const SHELL_BYTES = 150_000

const build = () =>
  spawnSync(path.join(ROOT, 'scripts/node'), ['scripts/build-console.mjs'], { cwd: ROOT, encoding: 'utf8' })

test('the shell has less than 150 kB of script, gzipped, and nothing inline', () => {
  assert.equal(build().status, 0)
  const page = readFileSync(path.join(DIST, 'index.html'), 'utf8')
  const scripts = [...page.matchAll(/(?:src|href)="\.\/(assets\/[^"]+\.js)"/g)].map(([, file = '']) => file)
  assert.ok(scripts.length > 0)
  const bytes = scripts.map((file) => gzipSync(readFileSync(path.join(DIST, file))).length)
  const sum = bytes.reduce((all, one) => all + one, 0)
  assert.ok(sum < SHELL_BYTES, `${sum} bytes in ${scripts.join(', ')}`)
  assert.doesNotMatch(page, /<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=/)
})

test('the service worker is one file at a fixed address, and all icons of the app exist', () => {
  assert.equal(build().status, 0)
  const worker = readFileSync(path.join(DIST, 'service-worker.js'), 'utf8')
  assert.doesNotMatch(worker, /\bimport\b|\bcaches\b|'fetch'/)
  const manifest = JSON.parse(readFileSync(path.join(DIST, 'manifest.webmanifest'), 'utf8')) as {
    icons: { src: string; sizes: string }[]
  }
  for (const { src, sizes } of manifest.icons) {
    const png = readFileSync(path.join(DIST, src))
    assert.equal(`${png.readUInt32BE(16)}x${png.readUInt32BE(20)}`, sizes, src)
  }
})

test('what is newer than its sources is not built again', () => {
  assert.equal(build().status, 0)
  const before = statSync(path.join(DIST, 'index.html')).mtimeMs
  assert.equal(build().stdout, '')
  assert.equal(statSync(path.join(DIST, 'index.html')).mtimeMs, before)
})
