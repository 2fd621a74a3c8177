// Collects the licences of the packages in a bundle. They must be distributed with the bundle.
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { root } from './build.mjs'

/**
 * @param {string} bundle what contains the packages, for the first line
 * @param {Pick<import('esbuild').Metafile, 'inputs'>} metafile
 * @returns {string}
 */
export function licencesOf(bundle, metafile) {
  const inputs = Object.keys(metafile.inputs)
  const packages = new Set(inputs.flatMap((input) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input) ?? []))
  const texts = [...packages]
    .toSorted((a, b) => (a < b ? -1 : 1))
    .map((folder) => {
      const whole = path.join(root, folder)
      const { name, version, license } = JSON.parse(readFileSync(path.join(whole, 'package.json'), 'utf8'))
      const file = readdirSync(whole).find((entry) => /^licen[cs]e/i.test(entry))
      const text = file ? readFileSync(path.join(whole, file), 'utf8').trim() : `License: ${license}`
      return `${name} ${version}\n\n${text}\n`
    })
  return `${bundle} contains these packages.\n\n${texts.join(`\n${'-'.repeat(80)}\n\n`)}`
}
