export { Tacho } from './tacho.ts'
export type { Outcome, OpenSpan, Run, RunHandle, RunOptions, LlmCall, ToolCall } from './recording/run.ts'
export type { TachoOptions, Capture } from './options.ts'
export type { MaskingOptions } from './recording/mask.ts'
export type { Counters, Diagnostic, DiagnosticLevel, DropReason, OnDiagnostic } from './delivery/diagnostics.ts'
export type { EventType, NewEvent, Payload, ScoreDetails, ScoreValue } from './recording/event.ts'
export type { FlushResult } from './delivery/diagnostics.ts'
export type {
  Configuration,
  ConfigurationOptions,
  DeployedPolicy,
  DeployedPrompt,
  ToolLabels,
} from './configuration/configuration.ts'
export type { Prompt, VariablesOf } from './configuration/prompt.ts'
export type { ConfigurationListener, ConfigurationState } from './configuration/source.ts'
export { ToolBlockedError, type BlockCode, type BlockFacts, type PendingCall } from './guard/blocked.ts'
export type { BudgetOptions, Detection, DetectorAction, LoopOptions } from './guard/detectors.ts'
export type {
  Action,
  Authorization,
  Call,
  CallDecision,
  GuardDefaults,
  GuardRules,
  LocalPolicy,
} from './guard/rules.ts'
export type { IssueRecordCounters, IssueReport, RecordKind } from './delivery/issue-records.ts'
export type { RuntimeConfiguration } from './lazy-control.ts'
