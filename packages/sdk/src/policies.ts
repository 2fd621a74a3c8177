/** Loaded only when a tool is guarded or a call is decided. */
export { decide, type Action, type Decision, type Policy } from '@tacho/policy/decide.ts'
export { RecordedHistory } from '@tacho/policy/history/recorded-history.ts'
export {
  faultsOfLabels,
  labelsOfCall,
  preparedFor,
  readHistory,
  type ToolLabels,
} from '@tacho/policy/history/tool-labels.ts'
export type { CarriedHistory } from '@tacho/policy/history/run-history.ts'
export { inputHash } from '@tacho/policy/input/input-hash.ts'
export { sealedInputHash, sealInput } from '@tacho/policy/input/sealed-input.ts'
export type { Facts } from '@tacho/policy/language/variables.ts'
