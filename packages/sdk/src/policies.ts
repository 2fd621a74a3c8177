/** Loaded only when a tool is guarded or a call is decided. */
export { decide, type Action, type Decision, type Policy } from '@tacho/policy/decide.ts'
export { inputHash } from '@tacho/policy/input-hash.ts'
export { sealedInputHash, sealInput } from '@tacho/policy/sealed-input.ts'
export type { Facts } from '@tacho/policy/variables.ts'
