/** Traits find a run. They are lines in its row, one per name, because a page of runs examines many rows. */

export const TRAIT_KINDS = ['tool', 'model', 'policy', 'prompt'] as const
export type TraitKind = (typeof TRAIT_KINDS)[number]

export type Traits = Record<TraitKind, string[]>

/** A name cannot break a line, because JSON escapes line breaks. */
export function traitLine(kind: TraitKind, name: string): string {
  return `${kind}:${JSON.stringify(name)}\n`
}

export const soughtTrait = (kind: TraitKind, name: string): string => `\n${traitLine(kind, name)}`

export const NO_TRAITS = '\n'
/** Of one run. Further names are dropped. */
export const TRAITS_CHARS = 4_096

export function addTraits(traits: string, ofEvent: string): string {
  if (traits.includes(`\n${ofEvent}`)) return traits
  return ofEvent.split(/(?<=\n)/).reduce((all, line) => {
    const isKept = all.includes(`\n${line}`) || all.length + line.length > TRAITS_CHARS
    return isKept ? all : all + line
  }, traits)
}

export function readTraits(text: string): Traits {
  const traits: Traits = { tool: [], model: [], policy: [], prompt: [] }
  for (const line of text.split('\n')) {
    const kind = TRAIT_KINDS.find((one) => line.startsWith(`${one}:`))
    if (kind) traits[kind].push(JSON.parse(line.slice(kind.length + 1)) as string)
  }
  return traits
}
