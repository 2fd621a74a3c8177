/** What a plot shows. Pure. */
/** No green, red or amber unless it is an outcome. */
export const SERIES_COLOURS = ['accent', 'cyan', 'pink', 'olive', 'violet', 'edge'] as const
export type SeriesColour = (typeof SERIES_COLOURS)[number] | 'green' | 'red' | 'soft'

export interface Series {
  name: string
  colour: SeriesColour
  /** Null: nothing is known of that time. */
  values: readonly (number | null)[]
}
