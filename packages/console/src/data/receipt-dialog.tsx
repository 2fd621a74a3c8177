/** The receipt of an erasure. It never names the erased data. */
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { api } from '../web/api.ts'
import { counted, exact, number } from '../web/text/format.ts'
import { Button } from '../web/ui/button.tsx'
import { Code, Copy } from '../web/ui/copy.tsx'
import { Dialog } from '../web/ui/overlay.tsx'
import { PagePending, Trouble } from '../web/ui/states.tsx'
import { KIND_WORDS } from './erase-dialog.tsx'

interface Props {
  environmentId: string
  erasureId: string
  onClose: () => void
}

export function ReceiptDialog({ environmentId, erasureId, onClose }: Props) {
  const { data, error, refetch } = useQuery({
    queryKey: ['erasures', environmentId, 'one', erasureId],
    queryFn: ({ signal }) => api.readErasure({ params: { environmentId, erasureId } }, { signal }),
  })
  const at = (time: string | null) => (time === null ? 'not yet' : exact(Date.parse(time)))
  return (
    <Dialog title="Receipt of an erasure" onClose={onClose} className="w-full max-w-xl">
      <div className="max-h-[85dvh] overflow-y-auto p-5">
        <h2 className="text-lg font-semibold">Receipt of an erasure</h2>
        {data ? (
          <>
            <dl className="mt-3 grid grid-cols-1 gap-x-4 gap-y-1 text-sm sm:grid-cols-[9rem_minmax(0,1fr)]">
              <Fact name="What">{KIND_WORDS[data.kind]}</Fact>
              <Fact name="Payload field">{data.field?.join('.') ?? 'none was searched'}</Fact>
              <Fact name="Reason">{data.reason ?? 'none was written'}</Fact>
              <Fact name="Requested">
                {at(data.createdAt)}, by {data.requestedBy.name}
              </Fact>
              <Fact name="Invisible since">{at(data.effectiveAt)}</Fact>
              <Fact name="Deleted">{at(data.finishedAt)}</Fact>
              <Fact name="Runs">
                {number(data.runs)}
                {data.runningRuns > 0 && `, of which ${number(data.runningRuns)} had not ended`}
                {data.toSearch > 0 && `; ${counted(Math.max(data.searched, data.toSearch), 'run')} searched`}
              </Fact>
              <Fact name="Events">
                {number(data.events)}, of which {number(data.eventsDeleted)} are deleted from the store
              </Fact>
              <Fact name="Approvals">{number(data.approvals)}</Fact>
              <Fact name="Issues">
                {counted(data.issueRecords, 'record')}, {counted(data.issues, 'issue')} without another record
              </Fact>
              <Fact name="Receipt" code={data.id} />
              <Fact name="Hash of the id" code={data.subjectHash} />
              {data.checksum !== '' && <Fact name="Checksum of the runs" code={data.checksum} />}
            </dl>
            <p className="mt-4 mb-1 text-sm text-soft">A person who knows the erased id can check the hash:</p>
            <Code
              label="Command that computes the hash"
              text={`printf '%s' '${data.id} ${data.kind} the-erased-id' | sha256sum`}
            />
          </>
        ) : error ? (
          <Trouble error={error} retry={() => void refetch()} />
        ) : (
          <PagePending />
        )}
        <div className="mt-4 flex justify-end">
          <Button onClick={onClose}>Close</Button>
        </div>
      </div>
    </Dialog>
  )
}

function Fact({ name, code, children }: { name: string; code?: string; children?: ReactNode }) {
  return (
    <>
      <dt className="text-soft">{name}</dt>
      <dd className="min-w-0 [overflow-wrap:anywhere]">
        {code === undefined ? (
          <bdi>{children}</bdi>
        ) : (
          <>
            <code className="font-mono text-xs">{code}</code> <Copy text={code} />
          </>
        )}
      </dd>
    </>
  )
}
