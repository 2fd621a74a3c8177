import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { POLICY_ACTIONS, SEVERITIES } from '@tacho/contract/engine/words.ts'
import { templateFault } from '@tacho/contract/policies/call-template.ts'
import { compileCondition } from '@tacho/policy/compile.ts'
import { POLICY_LIMITS } from '@tacho/policy/limits.ts'
import { useQueryClient } from '@tanstack/react-query'
import { useMemo, type ReactNode } from 'react'
import { Field } from '../web/ui/field.tsx'
import { Choice } from '../web/ui/filters.tsx'
import { ConditionEditor } from './condition-editor.tsx'
import type { Draft } from './draft.ts'
import { recordedIn } from './completion.ts'
import { actionWord, severityWord } from './action-chip.tsx'

interface Props {
  environmentId: string
  draft: Draft
  onChange: (draft: Draft) => void
  readOnly: boolean
}

export function DraftFields({ environmentId, draft, onChange, readOnly }: Props) {
  const cache = useQueryClient()
  const recorded = useMemo(() => recordedIn(cache, environmentId), [cache, environmentId])
  const set = (change: Partial<Draft>) => onChange({ ...draft, ...change })
  return (
    <div className="flex flex-col gap-3">
      <div>
        <p className="mb-1 text-sm font-medium">Condition</p>
        <ConditionEditor
          value={draft.condition}
          onChange={(condition) => set({ condition })}
          readOnly={readOnly}
          recorded={recorded}
        />
        <Verdict condition={draft.condition} />
      </div>
      <div className="grid gap-3 sm:grid-cols-2">
        <Labelled name="When it is true">
          <Choice
            label="When it is true"
            value={draft.action}
            options={POLICY_ACTIONS.map((action) => [action, actionWord(action)])}
            onChange={(action) => set({ action: action as Draft['action'] })}
            className="h-10 w-full text-base"
          />
        </Labelled>
        <Labelled name="Severity">
          <Choice
            label="Severity"
            value={draft.severity}
            options={SEVERITIES.map((severity) => [severity, severityWord(severity)])}
            // For a critical policy, the author must choose explicitly that standing approvals are allowed.
            onChange={(severity) =>
              set({ severity: severity as Draft['severity'], ...(severity === 'CRITICAL' && { grants: 'never' }) })
            }
            className="h-10 w-full text-base"
          />
        </Labelled>
      </div>
      <Labelled name="When it cannot be evaluated">
        <Choice
          label="When it cannot be evaluated"
          value={draft.onError}
          options={[
            ['act', 'It counts as true'],
            ['ignore', 'It counts as false'],
          ]}
          onChange={(onError) => set({ onError: onError as Draft['onError'] })}
          className="h-10 w-full text-base"
        />
      </Labelled>
      {draft.onError === 'ignore' && (draft.action === 'BLOCK' || draft.action === 'REQUIRE_APPROVAL') && (
        <p className="text-sm text-amber">
          ! A field that a call lacks, or a wrong name in the condition, lets the call through without a word.
        </p>
      )}
      {draft.action === 'REQUIRE_APPROVAL' && (
        <Labelled name="Who must approve">
          <Choice
            label="Who must approve"
            value={String(draft.approvers)}
            options={[
              ['1', 'One person'],
              ['2', 'Two people, never the one who runs the agent'],
            ]}
            onChange={(approvers) => set({ approvers: approvers === '2' ? 2 : 1 })}
            className="h-10 w-full text-base"
          />
        </Labelled>
      )}
      {draft.action === 'REQUIRE_APPROVAL' && draft.approvers === 1 && (
        <Labelled name="The person who approves">
          <Choice
            label="The person who approves"
            value={draft.grants}
            options={[
              ['allow', 'May also allow calls to come'],
              ['never', 'Allows this one call only'],
            ]}
            onChange={(grants) => set({ grants: grants as Draft['grants'] })}
            className="h-10 w-full text-base"
          />
        </Labelled>
      )}
      {draft.action === 'REQUIRE_APPROVAL' && (
        <TemplateField template={draft.template} onChange={(template) => set({ template })} readOnly={readOnly} />
      )}
      <Field
        label="Name"
        maxLength={LIMITS.nameChars}
        readOnly={readOnly}
        value={draft.name}
        onChange={(event) => set({ name: event.target.value })}
      />
      <Field
        label="What it is for"
        maxLength={LIMITS.descriptionChars - POLICY_LIMITS.messageChars - 'Message: '.length - 1}
        readOnly={readOnly}
        value={draft.purpose}
        onChange={(event) => set({ purpose: event.target.value })}
      />
      <Field
        label="What it says"
        hint="The model and the approver read it, for example: over 500 needs finance: ask ada."
        maxLength={POLICY_LIMITS.messageChars}
        readOnly={readOnly}
        value={draft.message}
        onChange={(event) => set({ message: event.target.value })}
      />
    </div>
  )
}

/**
 * The text of the policy's approval requests. Without it, a request begins with the amount and the fields of the
 * condition.
 */
function TemplateField({
  template,
  onChange,
  readOnly,
}: Pick<Props, 'readOnly'> & { template: string; onChange: (template: string) => void }) {
  const fault = template.trim() === '' ? null : templateFault(template.trim())
  return (
    <Field
      label="How a request reads"
      hint="Fields of the input in braces, and what the buttons name between two **: Refund **{amount} {currency}** · {order_id}. Empty: found from the input and the condition."
      maxLength={LIMITS.policyTemplateChars}
      readOnly={readOnly}
      value={template}
      fault={fault && `It cannot be saved: ${fault}.`}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

function Labelled({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <p aria-hidden className="mb-1 text-sm font-medium">
        {name}
      </p>
      {children}
    </div>
  )
}

/** The first fault in words, because a screen reader does not announce the squiggle. */
function Verdict({ condition }: { condition: string }) {
  const compiled = condition.trim() === '' ? null : compileCondition(condition)
  const [fault] = compiled?.ok === false ? compiled.faults : []
  return (
    <p role="status" className={`mt-1 min-h-5 text-sm ${fault ? 'text-red' : 'text-soft'}`}>
      {compiled === null
        ? 'For example: tool.name == "refund" && tool.input.amount > 100.0'
        : fault
          ? `Line ${fault.position.line}, column ${fault.position.column}: ${fault.message}`
          : '✓ The condition is valid.'}
    </p>
  )
}
