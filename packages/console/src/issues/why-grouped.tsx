import type { Facts as IssueFacts, Issue } from '@tacho/contract/issues/issue.ts'
import { Copy } from '../web/ui/copy.tsx'
import { Fact, Facts } from '../web/ui/facts.tsx'
import { counted } from '../web/text/format.ts'
import { Section } from '../web/ui/section.tsx'

const NAMES: Record<keyof IssueFacts, string> = {
  detectionType: 'Type',
  errorType: 'Error',
  message: 'Message',
  cause: 'Cause',
  frame: 'In the code',
  agent: 'Agent',
  toolName: 'Tool',
  tools: 'Tools',
  policyId: 'Policy',
  reasonCode: 'Reason code',
  model: 'Model',
}

/** The facts that are hashed: detections with the same ones are the same issue. */
export function WhyGrouped({ issue: { groups } }: { issue: Issue }) {
  return (
    <Section
      title="Why these are grouped"
      note={groups.length > 1 ? `${groups.length} sets of facts, merged by people` : undefined}
    >
      <p className="mb-2 text-sm text-soft">
        {groups.length > 1
          ? 'A detection belongs here when its facts are one of these sets.'
          : 'A detection belongs here when it has exactly these facts.'}
        {groups.some(({ facts }) => facts.message !== undefined) && ' … stands for the parts of a message that vary.'}
      </p>
      <ul className="flex flex-col gap-2">
        {groups.map(({ fingerprint, facts, occurrences }) => (
          <li key={fingerprint} className="rounded-lg border border-line px-3 py-2">
            <Facts>
              {(Object.keys(NAMES) as (keyof IssueFacts)[]).map((name) => {
                const value = facts[name]
                if (value === undefined) return null
                return (
                  <Fact key={name} name={NAMES[name]}>
                    <bdi className="font-mono text-[0.8125rem]">
                      {typeof value === 'string' ? value : value.join(', ')}
                    </bdi>
                  </Fact>
                )
              })}
            </Facts>
            <p className="mt-1.5 flex items-center gap-2 text-xs text-soft">
              <span className="whitespace-nowrap">{counted(occurrences, 'time')}</span>
              <code className="min-w-0 truncate font-mono">{fingerprint}</code>
              <Copy text={fingerprint} />
            </p>
          </li>
        ))}
      </ul>
    </Section>
  )
}
