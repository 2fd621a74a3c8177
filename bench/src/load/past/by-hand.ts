/**
 * The rules of past-policies.ts as handwritten code for this case only. It looks up single words in a map, without normalising
 * them, so it finds no other spellings, and it stores only what these ten rules need.
 */
import type { HistoryCall } from '@tacho/policy/history/run-history.ts'
import type { NextCall } from '../../benchmarks/past-policies.ts'

const NONE: ReadonlySet<string> = new Set()

export class RunByHand {
  readonly #labels = new Set<string>()
  readonly #origins = new Map<string, Set<string>>()
  readonly #paid = new Set<string>()
  readonly #verified = new Set<unknown>()
  #failed = 0
  #refused = false

  said(words: string): void {
    this.#read(words, ['user'])
  }

  ended({ tool, input, ok, decision, does, labels, output }: HistoryCall): void {
    if (!ok) this.#failed++
    if (decision === 'BLOCK' && does.includes('external')) this.#refused = true
    if (ok && tool === 'pay') this.#paid.add(JSON.stringify([input?.['account'], input?.['amount']]))
    if (ok && tool === 'verify') this.#verified.add(input?.['customer'])
    for (const label of labels) this.#labels.add(label)
    this.#read(output as string, labels)
  }

  decide({ tool, input, labels }: NextCall): number {
    let matches = 0
    const isUntrusted = this.#labels.has('untrusted')
    if (labels.includes('external') && isUntrusted && this.#labels.has('private')) matches++
    if (tool === 'pay') {
      const of = this.#originOf(input['account'])
      if (!of.has('user') && !of.has('ours')) matches++
      const reference = this.#originOf(input['reference'])
      if (reference.has('untrusted') && !reference.has('user')) matches++
      if (this.#paid.has(JSON.stringify([input['account'], input['amount']]))) matches++
    }
    if (tool === 'send_email') {
      if ((input['recipients'] as string[]).some((person) => this.#isForeign(person))) matches++
      if (this.#originOf(input['subject']).has('untrusted')) matches++
    }
    if (tool === 'refund' && !this.#verified.has(input['customer'])) matches++
    if (
      labels.includes('destructive') &&
      isUntrusted &&
      !['delete', 'remove'].some((each) => this.#originOf(each).has('user'))
    )
      matches++
    if (this.#failed > 40) matches++
    if (this.#refused) matches++
    return matches
  }

  #isForeign(person: string): boolean {
    const of = this.#originOf(person)
    return !of.has('user') && !of.has('ours') && !person.endsWith('@example.com')
  }

  #originOf(value: unknown): ReadonlySet<string> {
    return this.#origins.get(value as string) ?? NONE
  }

  #read(text: string, labels: readonly string[]): void {
    for (const word of text.split(' ')) {
      const known = this.#origins.get(word)
      if (known) for (const label of labels) known.add(label)
      else this.#origins.set(word, new Set(labels))
    }
  }
}
