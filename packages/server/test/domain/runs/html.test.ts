import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { anyCharacter } from '../../../../contract/test/any-character.ts'
import { html } from '../../../src/domain/runs/run-page.ts'

const NAMES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }

test('every text comes back from its HTML, and none of it is markup', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), (text) => {
      const { text: written } = html`<p title="${text}">${text}</p>`
      const parts = /^<p title="([^"<>]*)">([^"'<>]*)<\/p>$/.exec(written)
      assert.ok(parts, written)
      const shown = (part = '') => part.replaceAll(/&([^;]+);/g, (_, name: string) => NAMES[name] ?? assert.fail(name))
      const readable = (part: string) =>
        part.replaceAll(/\\u([0-9a-f]{4})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
      assert.equal(readable(shown(parts[1])), readable(text))
      assert.equal(parts[1], parts[2])
    }),
  )
})

test('controls and direction marks are shown, line breaks stay, and HTML is not escaped twice', () => {
  assert.equal(html`${'\u202eexe\0\n\t'}`.text, '\\u202eexe\\u0000\n\t')
  assert.equal(html`<b>${html`${'<'}`}${[html`a`, html`b`]}${1}</b>`.text, '<b>&lt;ab1</b>')
})
