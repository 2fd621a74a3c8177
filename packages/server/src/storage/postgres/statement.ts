/** Statements are prepared once per connection, under a name from a counter. */

export interface Statement {
  name: string
  text: string
}

/** Unbounded, because the program has a bounded number of texts. */
const portable = new Map<string, Statement>()
let count = 0

/** The text numbers its parameters itself: `$1`. Call this once per text. */
export function statement(text: string): Statement {
  return { name: `tacho_${++count}`, text }
}

export function portableStatement(text: string): Statement {
  let known = portable.get(text)
  if (known === undefined) {
    let parameters = 0
    known = statement(text.replaceAll('?', () => `$${++parameters}`))
    portable.set(text, known)
  }
  return known
}
