/** What an environment keeps, finds, gives out and erases. */
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { SearchSwitch } from '../runs/search/search-switch.tsx'
import { searchSettingsQuery } from '../runs/search/queries.ts'
import { SectionPage } from '../web/ui/section-page.tsx'
import { number } from '../web/text/format.ts'
import { Section } from '../web/ui/section.tsx'
import { Skeleton, Trouble, isBlocking } from '../web/ui/states.tsx'
import { Erasures } from './erasures.tsx'
import { ExportMenu } from './export-menu.tsx'
import { Retention } from './retention.tsx'

const route = getRouteApi('/w/$workspace/$environment/settings/data')

export function DataPage() {
  const { place } = route.useRouteContext()
  const isAdmin = place.may('admin')
  return (
    <SectionPage title="Data" note={`What ${place.environment.name} keeps and for how long.`}>
      <Retention place={place} />
      <SearchIndex environmentId={place.environment.id} isAdmin={isAdmin} />
      <Erasures place={place} />
      <Section title="Export" className="mt-8">
        <p className="mb-3 max-w-2xl text-sm text-soft">
          All runs with their events as they were sent, approvals, issues and configuration, as JSON Lines; or runs and
          events as Parquet, for analysis. The list of runs exports what its filters show. Large environments: <code className="font-mono">tacho export</code>{' '}
          compresses and can resume; <code className="font-mono">tacho restore-export</code> writes one back.
        </p>
        {isAdmin ? (
          <ExportMenu environmentId={place.environment.id} filter={{}} />
        ) : (
          <p className="text-sm">An admin of this workspace can export.</p>
        )}
      </Section>
    </SectionPage>
  )
}

function SearchIndex({ environmentId, isAdmin }: { environmentId: string; isAdmin: boolean }) {
  const { data, error, refetch } = useQuery(searchSettingsQuery(environmentId))
  return (
    <Section title="Search" className="mt-8">
      {isBlocking(error, data) ? (
        <Trouble error={error} retry={() => void refetch()} />
      ) : data ? (
        <>
          <p className="mb-3 max-w-2xl text-sm text-soft">
            {data.state === 'OFF' || data.state === 'REMOVING'
              ? 'Payloads are not indexed, so they cannot be searched.'
              : `Payloads can be searched. ${number(data.indexedEvents)} events are in the index${data.state === 'INDEXING' ? ', and older ones are being added' : ''}.`}
          </p>
          {data.state === 'FAILED' && <p className="mb-3 text-sm text-red">The index stopped: {data.error}</p>}
          {isAdmin && <SearchSwitch environmentId={environmentId} settings={data} />}
        </>
      ) : (
        <Skeleton className="h-9" />
      )}
    </Section>
  )
}
