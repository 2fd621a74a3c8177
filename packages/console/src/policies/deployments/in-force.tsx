import { useState } from 'react'
import { Author } from '../../web/ui/chip.tsx'
import { DamagedChip } from '../../web/ui/state.tsx'
import { Button } from '../../web/ui/button.tsx'
import { Nothing, Section } from '../../web/ui/section.tsx'
import { Time } from '../../web/text/times.tsx'
import { ActDialog, type Act, type Simulated } from './deploy-dialog.tsx'
import { useInForce, type Item, DAMAGED_DEPLOYMENT } from './queries.ts'

interface Props {
  workspaceId: string
  item: Item
  name: string
  newestVersion: string
  canDeploy: boolean
  simulation?: Simulated | undefined
}

/** The version in force in each environment, and acts to change it. */
export function InForceSection({ workspaceId, item, name, newestVersion, canDeploy, simulation }: Props) {
  const places = useInForce(workspaceId, item)
  const [act, setAct] = useState<Act | null>(null)
  return (
    <Section title="In force">
      {places.length === 0 && <Nothing>This workspace has no environment.</Nothing>}
      <ul>
        {places.map(({ environment, deployment, isRead }) => (
          <li
            key={environment.id}
            className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line py-1.5 text-sm last:border-0"
          >
            <bdi className="w-32 truncate font-medium" title={environment.name}>
              {environment.name}
            </bdi>
            {deployment === null ? (
              <span className="flex-1 text-soft">{isRead && 'not deployed'}</span>
            ) : (
              <span className="min-w-0 flex-1">
                version {deployment.version} {deployment.damaged && <DamagedChip note={DAMAGED_DEPLOYMENT} />}{' '}
                {deployment.version !== newestVersion && <span className="text-amber">newest is {newestVersion}</span>}{' '}
                <span className="text-soft">
                  deployed <Time at={deployment.deployedAt} /> by{' '}
                  <Author name={deployment.deployedBy} importedAt={deployment.importedAt} />
                </span>
                {deployment.share && (
                  <span className="block">
                    <b className="font-medium">{deployment.share.percent} % of sessions</b> get version{' '}
                    {deployment.share.version} {deployment.share.damaged && <DamagedChip note={DAMAGED_DEPLOYMENT} />}{' '}
                    <span className="text-soft">
                      begun <Time at={deployment.share.startedAt} /> by <bdi>{deployment.share.startedBy}</bdi>
                    </span>
                  </span>
                )}
              </span>
            )}
            {canDeploy && isRead && (
              <span className="flex flex-wrap gap-1.5">
                <Button onClick={() => setAct({ kind: 'deploy', environment, deployment })}>
                  {deployment === null ? 'Deploy…' : 'Change…'}
                </Button>
                {deployment?.share && (
                  <>
                    <Button
                      look="quiet"
                      onClick={() => setAct({ kind: 'deploy', environment, deployment, share: deployment.share })}
                    >
                      Raise…
                    </Button>
                    <Button look="quiet" onClick={() => setAct({ kind: 'end share', environment, deployment })}>
                      End share…
                    </Button>
                  </>
                )}
                {deployment !== null && (
                  <>
                    {places.length > 1 && (
                      <Button look="quiet" onClick={() => setAct({ kind: 'promote', environment, deployment })}>
                        Promote…
                      </Button>
                    )}
                    <Button look="quiet" onClick={() => setAct({ kind: 'roll back', environment, deployment })}>
                      Roll back…
                    </Button>
                  </>
                )}
              </span>
            )}
          </li>
        ))}
      </ul>
      {act && (
        <ActDialog
          workspaceId={workspaceId}
          act={act}
          item={item}
          name={name}
          newestVersion={newestVersion}
          places={places}
          simulation={simulation}
          onClose={() => setAct(null)}
        />
      )}
    </Section>
  )
}
