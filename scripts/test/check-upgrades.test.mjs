import assert from 'node:assert/strict'
import { test } from 'node:test'
import { upgradeFaults, withNotes } from '../check-upgrades.mjs'

const PAGE = `# Operations

### Upgrade notes

What to do.

#### 0.2.0

Schema 9. There is nothing to do.

#### 0.1.0

Schema 4.

- Set a variable.

## Backup
`
const CHANGELOG = '# Changelog\n\n## Unreleased\n\n- New.\n\n## 0.1.0 (2026-12-01)\n\n- First.\n'

test('upgrade notes are whole when each version has its section, and that of this version the newest schema', () => {
  assert.deepEqual(upgradeFaults(PAGE, CHANGELOG, '0.2.0', 9), [])
  // A version that is being released has its heading already.
  assert.deepEqual(upgradeFaults(PAGE, CHANGELOG.replace('- New', '## 0.2.0\n\n- New'), '0.2.0', 9), [])
})

for (const [what, fault, page, version, schema] of [
  ['a version without a section', /#### 0\.3\.0, #### 0\.1\.0/, PAGE, '0.3.0', 9],
  ['a released version without a section', /one section for each version/, PAGE.replace('0.1.0', '0.0.9'), '0.2.0', 9],
  ['a migration that no section names', /name schema 9, and the newest migration is 10/, PAGE, '0.2.0', 10],
  ['a section without a schema', /do not begin with "Schema "/, PAGE.replace('Schema 4.\n\n', ''), '0.2.0', 9],
  ['a section that says nothing', /do not say what to do/, PAGE.replace(' There is nothing to do.', ''), '0.2.0', 9],
  ['a schema that went back', /a newer schema than/, PAGE.replace('Schema 4', 'Schema 12'), '0.2.0', 9],
]) {
  test(`upgrade notes: ${what} is a fault`, () => {
    assert.match(upgradeFaults(page, CHANGELOG, version, schema).join('\n'), fault)
  })
}

test('a new version begins its section, and a new migration changes only the section of this version', () => {
  const begun = withNotes(PAGE, '0.3.0', 9)
  assert.deepEqual(upgradeFaults(begun, CHANGELOG.replace('0.1.0', '0.2.0\n\n## 0.1.0'), '0.3.0', 9), [])
  const migrated = withNotes(PAGE, '0.2.0', 11)
  assert.equal(migrated, PAGE.replace('Schema 9', 'Schema 11'))
})
