import type { DeploymentChange } from '@tacho/contract/policies/deployment.ts'
import { Author } from '../../web/ui/chip.tsx'
import { More } from '../../web/ui/button.tsx'
import { Refused } from '../../web/ui/states.tsx'
import { Nothing, Section } from '../../web/ui/section.tsx'
import { Time } from '../../web/text/times.tsx'
import { useDeploymentChanges, type Item } from './queries.ts'

const ACTS: Record<DeploymentChange['action'], string> = {
  DEPLOY: 'deployed',
  PROMOTE: 'promoted',
  ROLL_BACK: 'rolled back',
  SHARE: 'changed',
}

const actOf = ({ action, to, share }: DeploymentChange): string => (to === null && !share ? 'removed' : ACTS[action])

function whatChanged({ from, to, share }: DeploymentChange): string {
  if (share)
    return share.percent === 0
      ? `share of version ${share.version} ended`
      : `version ${share.version} for ${share.percent} % of sessions`
  if (to === null) return `version ${from}`
  return `${from === null ? '' : `version ${from} → `}version ${to}`
}

interface Props {
  environment: { id: string; name: string }
  /** The item whose history is shown; absent: all items. */
  item?: Item
}

/** Publications of an environment, newest first. */
export function DeploymentHistory({ environment, item }: Props) {
  const list = useDeploymentChanges(environment.id, item)
  return (
    <Section title={`Changes in ${environment.name}`}>
      <Refused error={list.error} />
      {!list.isPending && list.items.length === 0 && <Nothing>Nothing has been deployed here yet.</Nothing>}
      <ul>
        {list.items.map((change) => (
          <li
            key={`${change.publication} ${change.kind} ${change.id}`}
            className="flex flex-wrap gap-x-3 border-b border-line py-1.5 text-sm last:border-0"
          >
            <span className="w-20 text-soft">
              <Time at={change.at} />
            </span>
            <span className="min-w-0 flex-1">
              {!item && <bdi className="font-medium">{change.name} </bdi>}
              {whatChanged(change)}{' '}
              <span className="text-soft">
                {actOf(change)} by <Author name={change.by} importedAt={change.importedAt} />
              </span>
              {change.note !== null && (
                <span dir="auto" className="block text-soft">
                  {change.note}
                </span>
              )}
            </span>
          </li>
        ))}
      </ul>
      <More list={list} label="Show older changes" />
    </Section>
  )
}
