import Type, { type Static } from 'typebox'

export const Check = Type.Object(
  {
    name: Type.String(),
    ok: Type.Boolean(),
    detail: Type.String({ description: 'The result, and what to do if it is not ok' }),
  },
  { $id: 'Check', description: 'One check of the installation' },
)
export type Check = Static<typeof Check>

export const DoctorReport = Type.Object(
  { ok: Type.Boolean(), version: Type.String(), checks: Type.Array(Check) },
  { $id: 'DoctorReport' },
)
export type DoctorReport = Static<typeof DoctorReport>
