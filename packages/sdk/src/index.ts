export { Tacho } from './tacho.ts'
export type { Outcome, OpenSpan, Run, RunHandle, RunOptions, LlmCall, ToolCall } from './run.ts'
export type { TachoOptions, Capture } from './options.ts'
export type { MaskingOptions } from './mask.ts'
export type { Counters, Diagnostic, DiagnosticLevel, DropReason, OnDiagnostic } from './diagnostics.ts'
export type { ScoreDetails, ScoreValue } from './score.ts'
export type { EventType, NewEvent } from './event.ts'
export type { Payload } from './payload.ts'
export type { FlushResult } from './sender.ts'
export type { Configuration, DeployedPolicy, DeployedPrompt } from './configuration/configuration.ts'
export type { Prompt, VariablesOf } from './configuration/prompt.ts'
export type { ConfigurationOptions } from './configuration/options.ts'
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
export type { IssueRecordCounters, IssueReport, RecordKind } from './issue-records.ts'
export type { RuntimeConfiguration } from './lazy-control.ts'
