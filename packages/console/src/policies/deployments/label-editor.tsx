/** A form for rules of labels, with a row for each rule. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { TOOL_LABEL_PATTERN } from '@tacho/contract/engine/words.ts'
import type { ToolLabel } from '@tacho/contract/policies/tool-labels.ts'
import { faultsOfLabels } from '@tacho/policy/history/tool-labels.ts'
import { useId } from 'react'
import { Button } from '../../web/ui/button.tsx'

/** A rule in the form: labels are separated by commas. */
export interface LabelDraft {
  tool: string
  output: string
  does: string
  when: string
  /** The tool's original name in the ready set. */
  was?: string
}

export const draftsOf = (rules: readonly ToolLabel[]): LabelDraft[] =>
  rules.map(({ tool, output = [], does = [], when = '' }) => ({
    tool,
    output: output.join(', '),
    does: does.join(', '),
    when,
  }))

export const rulesOf = (drafts: readonly LabelDraft[]): ToolLabel[] =>
  drafts.map(({ tool, output, does, when }) => ({
    tool: tool.trim(),
    ...(output.trim() !== '' && { output: labelsOf(output) }),
    ...(does.trim() !== '' && { does: labelsOf(does) }),
    ...(when.trim() !== '' && { when: when.trim() }),
  }))

const labelsOf = (text: string): string[] =>
  text
    .split(/[,\s]+/)
    .filter((label) => label !== '')
    .filter((label, at, all) => all.indexOf(label) === at)

/** Faults that are shown while a person types. The service checks more, and names the faulty rule. */
function faultOf(draft: LabelDraft): string | null {
  const [rule] = rulesOf([draft])
  if (!rule || rule.tool === '') return 'Name a tool.'
  const labels = [...(rule.output ?? []), ...(rule.does ?? [])]
  if (labels.length === 0) return 'Give a label for its output, for what it does, or both.'
  const wrong = labels.find((label) => !new RegExp(TOOL_LABEL_PATTERN).test(label))
  if (wrong !== undefined)
    return `A label has lower-case letters, digits, dashes and underscores, and begins with a letter: not ${wrong}`
  return faultsOfLabels([rule])[0] ?? null
}

export const areValid = (drafts: readonly LabelDraft[]): boolean => drafts.every((draft) => faultOf(draft) === null)

const FIELDS = [
  ['tool', 'Tool', 'read_mail or send_*'],
  ['output', 'Its output is', 'untrusted'],
  ['does', 'It does', 'external'],
  ['when', 'Only where', 'tool.input.internal == false'],
] as const

interface Props {
  rules: readonly LabelDraft[]
  onChange: (rules: LabelDraft[]) => void
  /** Names of tools to choose from. */
  tools: readonly string[]
}

export function LabelEditor({ rules, onChange, tools }: Props) {
  const listId = useId()
  return (
    <>
      <datalist id={listId}>
        {tools.map((tool) => (
          <option key={tool} value={tool} />
        ))}
      </datalist>
      <ol aria-label="Rules">
        {rules.map((rule, index) => {
          const fault = faultOf(rule)
          const note = `${listId}-${index}`
          return (
            <li
              key={index}
              className="grid grid-cols-2 gap-2 border-b border-line py-2 lg:grid-cols-[2fr_2fr_2fr_3fr_auto]"
            >
              {FIELDS.map(([name, word, example]) => (
                <label key={name} className="min-w-0 text-xs text-soft">
                  <span className={index === 0 ? '' : 'lg:sr-only'}>{word}</span>
                  <input
                    value={rule[name]}
                    onChange={({ target }) => onChange(rules.with(index, { ...rule, [name]: target.value }))}
                    placeholder={example}
                    maxLength={LIMITS.textChars}
                    list={name === 'tool' ? listId : undefined}
                    aria-describedby={fault === null ? undefined : note}
                    aria-invalid={fault !== null}
                    autoComplete="off"
                    spellCheck={false}
                    className="field h-9 w-full font-mono text-sm text-ink"
                  />
                </label>
              ))}
              <Button
                look="quiet"
                className="self-end max-lg:col-span-2 max-lg:justify-self-start"
                aria-label={`Remove rule ${index + 1}`}
                onClick={() => onChange(rules.toSpliced(index, 1))}
              >
                Remove
              </Button>
              {fault !== null && (
                <p id={note} className="col-span-full text-sm text-red [overflow-wrap:anywhere]">
                  {fault}
                </p>
              )}
            </li>
          )
        })}
      </ol>
      <Button
        className="mt-2"
        disabled={rules.length >= LIMITS.toolLabelRules}
        onClick={() => onChange([...rules, { tool: '', output: '', does: '', when: '' }])}
      >
        Add a rule
      </Button>
    </>
  )
}
