/** A row of what an API shows: its times are milliseconds. */
export type RowFor<Shown, Time extends keyof Shown = Extract<keyof Shown, `${string}At`>> = Omit<Shown, Time> & {
  [Name in Time]: null extends Shown[Name] ? number | null : number
}

/** A change of a row. An undefined member stays as it is. */
export type PatchOf<Row, Changeable extends keyof Row> = { [Name in Changeable]?: Row[Name] | undefined }
