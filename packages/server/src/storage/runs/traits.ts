/** Traits find a run. They are lines in its row, one per name, because a page of runs examines many rows. */

export const TRAIT_KINDS = ['tool', 'model', 'policy', 'prompt', 'tag', 'meta', 'loop'] as const
export type TraitKind = (typeof TRAIT_KINDS)[number]

export type Traits = Record<TraitKind, string[]>

/** A name cannot break a line, because JSON escapes line breaks. A `meta` is `key=value`; a `loop` is a tool. */
export function traitLine(kind: TraitKind, name: string): string {
  return `${kind}:${JSON.stringify(name)}\n`
}

/** Null: any name of this kind. A `meta` without a value: any value. */
export function soughtTrait(kind: TraitKind, name: string | null): string {
  if (name === null) return `\n${kind}:`
  if (kind === 'meta' && !name.includes('=')) return `\n${traitLine(kind, name).slice(0, -2)}=`
  return `\n${traitLine(kind, name)}`
}

export const NO_TRAITS = '\n'
/** Of one run. Further names are dropped. */
export const TRAITS_CHARS = 4_096

export function addTraits(traits: string, ofEvent: string): string {
  if (traits.includes(`\n${ofEvent}`)) return traits
  return ofEvent.split(/(?<=\n)/).reduce((all, line) => {
    if (all.includes(`\n${line}`)) return all
    const others = line.startsWith('meta:') ? withoutKey(all, line) : all
    return others.length + line.length > TRAITS_CHARS ? all : others + line
  }, traits)
}

/** The latest value of a key counts. */
function withoutKey(traits: string, line: string): string {
  const at = traits.indexOf(`\n${line.slice(0, line.indexOf('=') + 1)}`)
  return at < 0 ? traits : traits.slice(0, at) + traits.slice(traits.indexOf('\n', at + 1))
}

export function readTraits(text: string): Traits {
  const traits: Traits = { tool: [], model: [], policy: [], prompt: [], tag: [], meta: [], loop: [] }
  for (const line of text.split('\n')) {
    const kind = TRAIT_KINDS.find((one) => line.startsWith(`${one}:`))
    if (kind) traits[kind].push(JSON.parse(line.slice(kind.length + 1)) as string)
  }
  return traits
}

export function readMetadata({ meta }: Pick<Traits, 'meta'>): Record<string, string> {
  return Object.fromEntries(
    meta.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)] as const),
  )
}
