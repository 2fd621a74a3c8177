import { useQuery } from '@tanstack/react-query'
import { api } from './api.ts'
import { meQuery } from './queries.ts'
import { StateText } from './ui/state.tsx'
import { Button } from './ui/button.tsx'
import { Forbidden, PagePending, Trouble, isBlocking } from './ui/states.tsx'
import { SectionPage } from './ui/section.tsx'

export function DoctorPage() {
  const { data: me } = useQuery(meQuery)
  const isAllowed = me?.installation === true
  const { data, error, refetch, isFetching } = useQuery({
    queryKey: ['doctor'],
    queryFn: () => api.readDoctor(),
    enabled: isAllowed,
  })
  if (me && !isAllowed) return <Forbidden>Only an owner of the installation runs the doctor.</Forbidden>
  if (isBlocking(error, data)) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <PagePending />
  const failed = data.checks.filter(({ ok }) => !ok).length
  return (
    <SectionPage
      title="Doctor"
      note={
        failed === 0 ? 'Every check of this installation passes.' : `${failed} of ${data.checks.length} checks fail.`
      }
      act={
        <Button busy={isFetching} onClick={() => void refetch()}>
          Check again
        </Button>
      }
    >
      <ul aria-label="Checks" className="overflow-hidden rounded-lg border border-line">
        {data.checks.map(({ name, ok, detail }) => (
          <li key={name} className="flex gap-3 border-b border-line px-3 py-2.5 text-sm last:border-0">
            <span className="w-16 shrink-0">
              <StateText is={ok ? 'OK' : 'FAILED'} />
            </span>
            <span className="min-w-0">
              <span className="block font-medium">{name}</span>
              <bdi className="block text-soft">{detail}</bdi>
            </span>
          </li>
        ))}
      </ul>
    </SectionPage>
  )
}
